"""`Response`: the response to one request of a gateway, and the types of ASGI."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from segue.bridge.actions import Action, Respond, Write
from segue.bridge.caller import respond_error
from segue.error_kinds import ErrorKind
from segue.gateway.body_log import MAX_BODY
from segue.gateway.control_api import LocalResponse
from segue.gateway.limits import Denied
from segue.gateway.request_log import RequestRecord
from segue.wire.registry import WIRES

_UNAUTHORIZED = 401
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendEvent: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Response:
    """The response to one request. `find_api` returns the API that errors of the gateway have the form of."""

    def __init__(self, send: SendEvent, record: RequestRecord, find_api: Callable[[], str]) -> None:
        self.record = record
        self.is_logged = True
        self.kept: bytearray | None = None
        """The beginning of the body, if it is kept."""
        self._send = send
        self._find_api = find_api
        self._is_sending = False
        self.began = self._last_write = time.monotonic()
        self.is_held = False
        """Whether nothing may be sent before the reply is complete."""
        self.denied: Denied | None = None
        """Why a complete reply was not sent."""
        self.waited = 0.0
        """The seconds in which the client was awaited."""

    @property
    def has_begun(self) -> bool:
        return self.record.status != 0

    def is_idle(self, seconds: float) -> bool:
        """Return whether nothing was written for so long, and nothing is being written."""
        return not self._is_sending and time.monotonic() - self._last_write >= seconds

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        await self.start_items(status, headers.items())

    async def start_items(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Begin the response; names of headers may occur more than once."""
        items = [(name, value) for name, value in headers if name != "x-request-id"]
        self.record.status = status
        self.record.stream = all(name != "content-length" for name, _ in items)
        items.append(("x-request-id", self.record.request_id))
        encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in items]
        await self._emit({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes) -> None:
        await self._emit({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        await self._emit({"type": "http.response.body", "body": data, "more_body": False})

    async def carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Respond):
                await self.start(action.status, action.headers)
            elif isinstance(action, Write):
                await self.write(action.data)

    async def send_local(self, response: LocalResponse) -> None:
        self.is_logged = response.is_logged
        self.record.error = response.error
        self.record.reason = "client-key" if response.status == _UNAUTHORIZED else "invalid" if response.error else ""
        await self.start(
            response.status, {"content-type": response.content_type, "content-length": str(len(response.data))}
        )
        await self.end(response.data)

    async def send_error(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        kind: ErrorKind | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Send an error of the gateway in the form of the caller's API, so that SDKs raise the exception of it.

        `reason` is that of the log and the metrics; without one, the kind of the error.
        """
        await self.send_denial(Denied(status, message, retry_after=retry_after, reason=reason, kind=kind))

    async def send_denial(self, denied: Denied) -> None:
        """Send the error for a request that is not admitted."""
        wire = WIRES[self._find_api()]
        error = denied.to_error(wire)
        self.record.api = self.record.api or wire.name
        self.record.error, self.record.reason = denied.message, denied.reason or error.error_kind or "invalid"
        await self.carry_out(respond_error(wire, error))
        await self.end()

    async def send_bug(self, kind: str) -> None:
        """Answer a request that failed in segue itself; a response that has begun is cut off."""
        message = f"this is a bug in segue, please report it: {kind}"
        if self.has_begun:
            self.record.status, self.record.error = 500, message
        else:
            await self.send_error(500, message)

    async def _emit(self, event: MutableMapping[str, Any]) -> None:
        if self.kept is not None and len(self.kept) < MAX_BODY:
            self.kept += event.get("body", b"")
        self._is_sending = True
        started = time.monotonic()
        try:
            await self._send(event)
        finally:
            self._is_sending = False
            self._last_write = time.monotonic()
            self.waited += self._last_write - started
