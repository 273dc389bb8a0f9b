"""`segue.complete` and `segue.acomplete`: one request to any provider's model, in any API's form.

The request body is of one API, and so is the reply, whatever API the model has. Tool calls are returned, not run.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload
from urllib.parse import quote

import msgspec

from segue._conversation import Conversation
from segue._literals import Api, ToolFormat
from segue.bridge.actions import EndResponse, Respond
from segue.bridge.bridge import Bridge
from segue.bridge.entries import AsyncEntryMemory
from segue.bridge.envelope_keys import load_envelope_keys
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import Config, Environ
from segue.bridge.relay import Relay
from segue.bridge.routes import Route, Router
from segue.bridge.shell import run_async_exchange
from segue.canonical.json import encode_json, parse_json_object, to_plain_json
from segue.canonical.request import Usage
from segue.coerce import Body, parse_loosely
from segue.emulator.models import resolve
from segue.errors import InputError, RemoteProtocolError, SegueError
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.reply import parse_reply
from segue.runtime.background_loop import BackgroundLoop
from segue.runtime.http_shell import HttpShell
from segue.wire.base import Wire
from segue.wire.detect_body import detect_source
from segue.wire.registry import WIRES, find_wire
from segue.wire.stream.framing import FrameDecoder

DEFAULT_TIMEOUT = 300.0
_HTTP_OK = 200
_OPTIONS = frozenset(
    {"stream", "source", "fallbacks", "providers", "environ", "timeout", "policy", "envelope_keys", "messages", "model"}
)
# Fields of OpenRouter whose names are almost options.
_VENDOR_FIELDS = ("provider", "models")
_MIN_SIMILARITY = 0.85
_Value = TypeVar("_Value")
_background = BackgroundLoop()
_memory = AsyncEntryMemory()


class Completion(dict[str, Any]):
    """A whole reply in the API of the request. `report` lists what was changed; `target` is the model that replied."""

    def __init__(self, body: Mapping[str, Any], relay: Relay) -> None:
        super().__init__(body)
        self._relay = relay

    @property
    def text(self) -> str:
        """The text of the reply, in any API."""
        return parse_reply(self._relay.wire, dict(self)).text

    @property
    def report(self) -> Report | None:
        return self._relay.report

    @property
    def usage(self) -> Usage | None:
        return self._relay.usage

    @property
    def target(self) -> str | None:
        return self._relay.target


class CompletionStream:
    """The events of a streamed reply, each the payload that the API of the request sends.

    Iterate it with `for` or, from `acomplete`, with `async for`. `close` or `aclose` cancels the reply.
    """

    def __init__(self, relay: Relay, chunks: AsyncGenerator[Respond | bytes | EndResponse, None]) -> None:
        self._relay = relay
        self._payloads = _read_payloads(relay, chunks)
        self._chunks = chunks

    @property
    def report(self) -> Report | None:
        return self._relay.report

    @property
    def usage(self) -> Usage | None:
        return self._relay.usage

    @property
    def target(self) -> str | None:
        return self._relay.target

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        payload = _wait(self._next())
        if payload is None:
            raise StopIteration
        return payload

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        payload = await _await(self._next())
        if payload is None:
            raise StopAsyncIteration
        return payload

    async def _next(self) -> dict[str, Any] | None:
        return await anext(self._payloads, None)

    def close(self) -> None:
        _wait(self._close())

    async def aclose(self) -> None:
        await _await(self._close())

    async def _close(self) -> None:
        await self._payloads.aclose()
        await self._chunks.aclose()

    def __enter__(self) -> CompletionStream:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    async def __aenter__(self) -> CompletionStream:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


@overload
def complete(
    body: Body | Conversation | None = None,
    model: str = "",
    *,
    stream: Literal[False] = False,
    source: Api | None = None,
    fallbacks: Sequence[str] = (),
    providers: Config | None = None,
    environ: Environ | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    policy: Policy | None = None,
    envelope_keys: EnvelopeKeys | Path | None = None,
    **fields: Any,
) -> Completion: ...
@overload
def complete(
    body: Body | Conversation | None = None,
    model: str = "",
    *,
    stream: Literal[True],
    source: Api | None = None,
    fallbacks: Sequence[str] = (),
    providers: Config | None = None,
    environ: Environ | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    policy: Policy | None = None,
    envelope_keys: EnvelopeKeys | Path | None = None,
    **fields: Any,
) -> CompletionStream: ...
def complete(
    body: Body | Conversation | None = None, model: str = "", *, stream: bool = False, **options: Any
) -> Completion | CompletionStream:
    """Send a request to a `provider/model`, and return its reply in the API of the request.

    `body` is a body of any API, or a list of messages; `source` names the API where its shape does not show it, and a
    list without one is of `openai-chat`. More `fields` of the body can be given by name, such as `tools`. A
    `Conversation` is sent in the API of the model, and gets the reply. `emulated/MODEL` needs no key. The models in
    `fallbacks` are used if those before fail before any content. `providers` adds or changes providers, as the
    `[providers]` table of a configuration file does; API keys are taken from `environ`, by default that of the process.
    `timeout` is the longest silence in seconds. It works with and without a running event loop.
    """
    return _wait(_complete(body, model, stream=stream, **options))


@overload
async def acomplete(
    body: Body | Conversation | None = None,
    model: str = "",
    *,
    stream: Literal[False] = False,
    source: Api | None = None,
    fallbacks: Sequence[str] = (),
    providers: Config | None = None,
    environ: Environ | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    policy: Policy | None = None,
    envelope_keys: EnvelopeKeys | Path | None = None,
    **fields: Any,
) -> Completion: ...
@overload
async def acomplete(
    body: Body | Conversation | None = None,
    model: str = "",
    *,
    stream: Literal[True],
    source: Api | None = None,
    fallbacks: Sequence[str] = (),
    providers: Config | None = None,
    environ: Environ | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    policy: Policy | None = None,
    envelope_keys: EnvelopeKeys | Path | None = None,
    **fields: Any,
) -> CompletionStream: ...
async def acomplete(
    body: Body | Conversation | None = None, model: str = "", *, stream: bool = False, **options: Any
) -> Completion | CompletionStream:
    """Send a request as `complete` does, without blocking the event loop."""
    return await _await(_complete(body, model, stream=stream, **options))


async def _complete(
    body: Body | Conversation | None,
    model: str,
    *,
    stream: bool,
    source: Api | None = None,
    fallbacks: Sequence[str] = (),
    providers: Config | None = None,
    environ: Environ | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    policy: Policy | None = None,
    envelope_keys: EnvelopeKeys | Path | None = None,
    **fields: Any,
) -> Completion | CompletionStream:
    _validate(body, model, fallbacks, timeout)
    variables = os.environ if environ is None else environ
    targets = tuple(resolve(name, variables, providers) for name in (model, *fallbacks))
    conversation = body if isinstance(body, Conversation) else None
    if isinstance(body, Conversation):
        if stream or fields:
            raise InputError("not for a conversation: it gets whole replies, by its own options", path=_first(fields))
        first = targets[0]
        rendered = body.render(
            cast("Api", first.api),
            first.model,
            profile=first.profile,
            tool_format=cast("ToolFormat", first.tool_format),
            policy=policy,
        )
        body, source = rendered.data, cast("Api", first.api)
    wire, request, changes = _build_body(body, source, fields)
    route = Route("complete", targets, caller=wire.name, policy=policy or Policy(), keeps_model_name=False)
    keys = envelope_keys if isinstance(envelope_keys, EnvelopeKeys) else load_envelope_keys(envelope_keys)
    router = Router(lambda _query: route)
    bridge = Bridge(router, keys=keys, now=lambda: datetime.now(UTC), random=secrets.token_bytes)
    if wire.stream_path is None and (stream or "stream" in request):
        # The argument decides, also where the body has the field.
        request = {**request, "stream": stream}
    path = wire.base_path + ((stream and wire.stream_path) or wire.path)
    path = path.replace("{model}", quote(targets[0].model, safe=""))
    relay = bridge.open("POST", path, {}, encode_json(request))
    chunks = run_async_exchange(relay, HttpShell(_background.client, _memory, timeout=timeout))
    head = await anext(chunks)
    is_reply = isinstance(head, Respond) and head.status == _HTTP_OK
    if relay.report is not None:
        for change in changes:
            relay.report.add("adjusted", change)
    if is_reply and stream:
        return CompletionStream(relay, chunks)
    data = b"".join([chunk async for chunk in chunks if isinstance(chunk, bytes)])
    if not is_reply:
        raise _find_error(relay, data)
    completion = Completion(parse_json_object(data)[0], relay)
    if conversation is not None:
        conversation.add_reply(completion, source=source)
    return completion


def _first(fields: Mapping[str, object]) -> str:
    return next(iter(fields), "stream")


def _validate(body: object, model: object, fallbacks: object, timeout: object) -> None:
    if isinstance(body, str) and not isinstance(model, str):
        raise InputError("a model's name was expected: the body comes first, then the model", path="model")
    if not model:
        raise InputError("no model is named; pass one such as anthropic/claude-sonnet-5", path="model")
    if isinstance(fallbacks, str) or not isinstance(fallbacks, Sequence):
        raise InputError("a list of model names was expected", path="fallbacks")
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise InputError("a number of seconds above 0 was expected", path="timeout")


def _build_body(
    body: Body | None, source: Api | None, fields: Mapping[str, Any]
) -> tuple[Wire, dict[str, Any], tuple[str, ...]]:
    """Return the API of a body, the body with more fields, and what was changed. Without a body, it is the fields."""
    given = cast("dict[str, Any]", to_plain_json(dict(fields)))
    value, changes = parse_loosely(given if body is None else body, source)
    request = value if body is None else {**value, **given}
    if source is not None:
        wire = find_wire(source, argument="source")
    else:
        is_list = not isinstance(body, Mapping) and value.keys() == {"messages"}
        wire = WIRES["openai-chat" if is_list else detect_source(request)]
    for name in fields:
        _reject_misspelled(name, wire)
    return wire, request, changes


def _reject_misspelled(name: str, wire: Wire) -> None:
    """Raise `InputError` for a field that the API does not have, if it is almost an option or another field."""
    known = {key.partition(".")[0] for key in wire.body_keys} | {wire.conversation_key, *_VENDOR_FIELDS}
    near = get_close_matches(name, known | _OPTIONS, 1, _MIN_SIMILARITY)
    if name not in known and near:
        raise InputError(f"unknown option; did you mean {near[0]!r}? Other fields can be in the body", path=name)


def _find_error(relay: Relay, data: bytes) -> SegueError:
    """Return the error of a request that got no reply."""
    error = relay.invalid or relay.error
    return error if error is not None else RemoteProtocolError(data.decode("utf-8", "replace"))


async def _read_payloads(
    relay: Relay, chunks: AsyncIterator[Respond | bytes | EndResponse]
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the payloads of a stream; after a failure, raise its error at the end."""
    decoder = FrameDecoder()
    async for chunk in chunks:
        for frame in decoder.feed(chunk if isinstance(chunk, bytes) else b""):
            if (payload := _decode_frame(relay.wire, *frame)) is not None:
                yield payload
    if relay.error is not None and relay.finish in (None, "error"):
        raise relay.error


def _decode_frame(wire: Wire, name: str | None, data: bytes) -> dict[str, Any] | None:
    if data.strip() == b"[DONE]":
        return None
    payload = msgspec.json.decode(data, type=dict[str, Any])
    # The names of events are part of the payload, except in Bedrock's framing.
    return {name: payload} if name is not None and wire.base_api == "bedrock" else payload


def _wait(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run work in the background, and wait for it."""
    future = _background.submit(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def _await(work: Coroutine[Any, Any, _Value]) -> _Value:
    return await asyncio.wrap_future(_background.submit(work))
