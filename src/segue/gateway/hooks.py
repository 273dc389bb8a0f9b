"""`Hooks`: webhooks that see a request before it is sent, or a reply before the client gets it.

Each may allow, deny with a text, or replace. One that does not answer in time, or not as it should, denies, or with
`on_failure = "allow"` allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError
from segue.gateway.limits import Denied
from segue.http_client import HttpClient

_HTTP_OK = 200
_MAX_ANSWER = 64 * 2**20
_RETRY_SECONDS = 1.0


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[gateway.hooks]]` table. `timeout` is in seconds, for the whole answer."""

    url: str
    on: Literal["request", "reply"]
    timeout: Annotated[float, Meta(gt=0)] = 5.0
    on_failure: Literal["deny", "allow"] = "deny"

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"{self.url!r} is not a URL")


class HookAnswer(Struct, frozen=True):
    """The answer of a webhook. `body` replaces JSON, `text` other data; `message` is why it denies."""

    action: Literal["allow", "deny", "replace"] = "allow"
    message: str = ""
    body: Raw = Raw()
    text: str = ""


class _HookError(Exception):
    """A webhook did not answer as it should."""


class Hooks:
    """Calls webhooks one after the other; each sees what the one before replaced."""

    def __init__(
        self, hooks: Sequence[HookSettings], open_client: Callable[[], HttpClient], log: Callable[[str], None]
    ) -> None:
        self._hooks = hooks
        self._open_client = open_client
        self._log = log

    def has(self, on: Literal["request", "reply"]) -> bool:
        return any(hook.on == on for hook in self._hooks)

    async def run(self, on: Literal["request", "reply"], facts: Mapping[str, Any], data: bytes) -> bytes | Denied:
        """Return the data to go on with, or why it is denied. What is not JSON is text for hooks."""
        for hook in self._hooks:
            if hook.on != on:
                continue
            content = _encode(data)
            try:
                answer = await self._ask(hook, {"on": on, **facts, **content})
                replaced = bytes(answer.body) if "body" in content else answer.text.encode()
                if answer.action == "replace" and not replaced:
                    raise _HookError(f"it replaces without a {'body' if 'body' in content else 'text'}")
            except _HookError as error:
                outcome = "denied" if hook.on_failure == "deny" else "allowed"
                self._log(f"the hook {hook.url} failed: {error}; the {on} was {outcome}")
                if hook.on_failure == "allow":
                    continue
                message = f"a check of the {on} did not succeed; send the request again"
                return Denied(503, message, retry_after=_RETRY_SECONDS, reason="hook-failed")
            if answer.action == "deny":
                return Denied(403, answer.message or f"the {on} is not allowed here", reason="hook", kind="policy")
            if answer.action == "replace":
                data = replaced
        return data

    async def _ask(self, hook: HookSettings, event: Mapping[str, Any]) -> HookAnswer:
        request = HttpRequest("POST", hook.url, {"content-type": "application/json"}, [msgspec.json.encode(event)])
        try:
            async with asyncio.timeout(hook.timeout):
                response = await self._open_client().send(request)
                try:
                    chunks, size = list[bytes](), 0
                    while data := await response.read():
                        chunks.append(data)
                        size += len(data)
                        if size > _MAX_ANSWER:
                            raise _HookError(f"its answer has more than {_MAX_ANSWER:,} bytes")
                finally:
                    response.close()
        except TimeoutError:
            raise _HookError(f"no answer within {hook.timeout:g} s") from None
        except TransportError as error:
            raise _HookError(str(error)) from None
        if response.status != _HTTP_OK:
            raise _HookError(f"it answered with {response.status}")
        try:
            return msgspec.json.decode(b"".join(chunks), type=HookAnswer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _HookError(f"its answer is not valid: {error}") from None


def _encode(data: bytes) -> Mapping[str, Any]:
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {"text": data.decode("utf-8", "replace")}
    return {"body": Raw(data)}
