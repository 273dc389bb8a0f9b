"""Exchanges without a network: a bridge with routes to made-up endpoints, whose responses the test gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from segue.bridge import Bridge, Relay, Route, RouteQuery, Router
from segue.bridge.actions import (
    Authorize,
    Delete,
    EndExchange,
    EndResponse,
    Load,
    Read,
    Respond,
    ResponseHead,
    Save,
    Send,
    Wait,
    Write,
)
from segue.bridge.driver import UpstreamError, drive
from segue.bridge.entries import EntryMemory
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.http_requests import HttpRequest
from segue.bridge.listings import ModelEntry
from segue.bridge.provider_errors import TransportError
from segue.bridge.providers import Endpoint
from segue.bridge.secret import Secret
from segue.canonical.blocks import Block, Origin, Text, Thinking, ToolCall
from segue.canonical.request import Reply, Usage
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import RenderContext
from segue.wire.ids import IdMap
from segue.wire.names import ANY_NAME, NameMap
from segue.wire.registry import WIRES
from tests.streams.rendering import stream_reply

KEYS = EnvelopeKeys(b"k" * 32)
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6-terra",
    "azure-foundry": "gpt-5",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.8-flash",
    "bedrock": "us.anthropic.claude-sonnet-5",
    "mistral": "magistral-medium-latest",
    "kimi": "kimi-k2-thinking",
    "deepseek": "deepseek-reasoner",
    "qwen": "qwen3.5-plus",
}
ALIAS = "an-alias"
CALLER_APIS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")


def endpoint(api: str, number: int = 0, **fields: Any) -> Endpoint:
    """Return an endpoint of an API; those with different numbers are on different hosts."""
    made = Endpoint(
        f"p{number}", MODELS[api], api, f"https://host{number}.example/v1", key=Secret(f"upstream-{number}")
    )
    return (
        made if not fields else Endpoint(**{**{name: getattr(made, name) for name in made.__struct_fields__}, **fields})
    )


class Response(NamedTuple):
    """A provider's response. Its body is given in chunks; `failure` breaks the connection after them."""

    chunks: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = {}
    failure: TransportError | None = None


class Answer(NamedTuple):
    """What the caller got, and what was sent to providers."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    writes: list[bytes]
    sent: list[HttpRequest]
    waits: list[float]
    relay: Relay

    @property
    def body(self) -> Any:
        return json.loads(self.data)

    @property
    def sent_bodies(self) -> list[Any]:
        return [json.loads(b"".join(request.body)) for request in self.sent]


class Shell:
    """A bridge with one route, and its store."""

    def __init__(
        self,
        *targets: Endpoint,
        keys: EnvelopeKeys = KEYS,
        memory: EntryMemory | None = None,
        has_store: bool = True,
        now: Callable[[], datetime] = lambda: NOW,
        models: tuple[ModelEntry, ...] = (),
        limits: Any = None,
        **route: Any,
    ) -> None:
        numbers = count()
        self.memory = memory or EntryMemory()
        self.queries: list[RouteQuery] = []
        self.route = Route("route", targets, **route)
        options = {} if limits is None else {"limits": limits}
        self.bridge = Bridge(
            Router(self._find, lambda _client: models),
            keys=keys,
            now=now,
            random=lambda size: next(numbers).to_bytes(size),
            has_store=has_store,
            **options,
        )

    def _find(self, query: RouteQuery) -> Route:
        self.queries.append(query)
        return self.route

    def open(
        self,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
        client: str = "",
    ) -> Relay:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.bridge.open(method, path, headers or {}, data, client=client)

    def run(self, path: str, body: object = None, responses: Iterable[Response] = (), **request: Any) -> Answer:
        return carry_out(self.open(path, body, **request), responses, self.memory)


def carry_out(relay: Relay, responses: Iterable[Response], memory: EntryMemory) -> Answer:
    """Carry out the commands of a relay, with these responses of its providers in turn."""
    given, sent, waits, writes = iter(responses), [], [], []
    head: Respond | None = None
    chunks: list[bytes] = []
    current: Response | None = None
    commands = drive(relay)
    result: Any = None
    failure: UpstreamError | None = None
    while True:
        try:
            command = commands.throw(failure) if failure is not None else commands.send(result)
        except StopIteration:
            break
        result = failure = None
        match command:
            case Send():
                sent.append(command.request)
                current = next(given)
                chunks = list(current.chunks)
                if current.status:
                    result = ResponseHead(current.status, current.headers)
                else:
                    assert current.failure is not None
                    failure = UpstreamError(current.failure)
            case Read():
                assert current is not None
                if not chunks and current.failure is not None:
                    failure = UpstreamError(current.failure)
                result = chunks.pop(0) if chunks else b""
            case Authorize():
                result = command.signer.get()
            case Load():
                result = memory.load(command.keys)
            case Save():
                memory.save(command.entries)
            case Delete():
                memory.delete(command.keys)
            case Wait():
                waits.append(command.seconds)
            case Respond():
                assert head is None, "two starts"
                head = command
            case Write():
                assert head is not None, "bytes before the head"
                writes.append(command.data)
            case EndExchange() | EndResponse():
                pass
    assert head is not None, "no response"
    return Answer(head.status, head.headers, b"".join(writes), writes, sent, waits, relay)


# ------------------------------------------------------------------------------------------------------------- requests


def path_of(api: str, *, stream: bool = False, sse: bool = True) -> str:
    base = WIRES[api].base_api
    match base:
        case "openai-chat":
            return "/v1/chat/completions"
        case "openai-responses":
            return "/v1/responses"
        case "anthropic":
            return "/v1/messages"
        case "gemini":
            method = "streamGenerateContent" + ("?alt=sse" if sse else "") if stream else "generateContent"
            return f"/v1beta/models/{ALIAS}:{method}"
        case _:
            return f"/model/{ALIAS}/converse" + ("-stream" if stream else "")


def request_body(api: str, *, stream: bool = False, text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    base = WIRES[api].base_api
    body: dict[str, Any]
    match base:
        case "openai-chat":
            body = {"model": ALIAS, "messages": [{"role": "user", "content": text}]}
        case "openai-responses":
            body = {"model": ALIAS, "input": [{"role": "user", "content": text}]}
        case "anthropic":
            body = {"model": ALIAS, "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}], **fields}
        case _:
            return {"messages": [{"role": "user", "content": [{"text": text}]}], **fields}
    return {**body, **({"stream": True} if stream else {}), **fields}


# -------------------------------------------------------------------------------------------------------------- replies


def make_reply(
    api: str,
    *,
    text: str = "Hello back.",
    thought: str | None = None,
    calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
) -> Reply:
    """Return a reply as a provider of this API sends it. Calls are given by id, tool and arguments."""
    provider = WIRES[api].provider
    blocks: list[Block] = []
    if thought is not None:
        signature = None if WIRES[api].base_api == "openai-chat" else "c2lnbmVk"
        origin = Origin(provider, MODELS[api], identity="absent")
        encrypted = "ZW5jcnlwdGVk" if WIRES[api].base_api == "openai-responses" else None
        blocks.append(Thinking(thought, None if encrypted else signature, encrypted, origin=origin))
    if text:
        blocks.append(Text(text))
    for place, (raw_id, name, arguments) in enumerate(calls):
        blocks.append(ToolCall(name, arguments, id=f"hist_tool_{place}", origin=Origin(provider, raw_id=raw_id)))
    return Reply(tuple(blocks), "tool_calls" if calls else "stop", Usage(11, 7), "reply-1", MODELS[api])


def whole(api: str, reply: Reply | None = None) -> Response:
    wire, reply = WIRES[api], reply or make_reply(api)
    ids = IdMap(wire.id_scheme(parse_model(MODELS[api])), provider=wire.provider)
    for call in reply.calls:
        ids.assign(call, call.name)
    body = wire.render_reply(reply, RenderContext(ids, NameMap(ANY_NAME), Report()))
    return Response([_with_own_ids(json.dumps(body).encode())])


def stream_bytes(api: str, reply: Reply | None = None) -> bytes:
    return _with_own_ids(stream_reply(api, reply or make_reply(api), 9))


def _with_own_ids(data: bytes) -> bytes:
    """Return a reply with item ids as OpenAI makes them: reasoning beside ids of segue is not sent back."""
    return data.replace(b"rs_hist_", b"rs_").replace(b"msg_hist_", b"msg_").replace(b"fc_hist_", b"fc_")


def streamed(api: str, reply: Reply | None = None, size: int = 0, **fields: Any) -> Response:
    """Return a streamed reply, in chunks of this size; 0 for one chunk."""
    return Response(split(stream_bytes(api, reply), size), **fields)


def split(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)] if size else [data]
