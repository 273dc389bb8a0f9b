"""`Gateway`: the ASGI application. It lets requests in, runs their relays, and writes one log line for each.

Everything between the two APIs is done by `segue.bridge`. A client that goes away cancels its request at the provider;
a client that reads slowly slows the provider down, because each write waits until the connection takes it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from segue.bridge.actions import Action, Respond, Write
from segue.bridge.bridge import Bridge
from segue.bridge.relay import Relay
from segue.bridge.shell import AsyncShell, run_async_exchange
from segue.gateway.clients import Admission, ClientGate
from segue.gateway.control import Control, LocalResponse
from segue.gateway.guard import Guard, find_key
from segue.gateway.metrics import Metrics
from segue.gateway.request_log import RequestLog, RequestRecord
from segue.gateway.usage import CLIENT_CLOSED_STATUS

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendEvent: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HTTP_OK = 200
_MAX_BODY = 64 * 2**20
_BODY_SECONDS = 60.0
_KEEP_ALIVE_SECONDS = 15.0
_MAX_CONTROL_BODY = 64 * 2**10
_MAX_LOGGED_PATH = 300
# Matching a path takes time quadratic in its length.
_MAX_PATH = 2000
_REQUEST_ID = re.compile("[A-Za-z0-9._:/+=@-]{1,128}")
_TRACE = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class _DisconnectedError(Exception):
    """The client closed the connection before its request was complete."""


class _BodyError(Exception):
    """The body of a request is too large, or did not arrive in time."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gateway:
    """An ASGI application for all APIs. `shell` has the connections to providers and the store."""

    def __init__(
        self,
        bridge: Bridge,
        shell: Callable[[], AsyncShell],
        *,
        guard: Guard,
        clients: ClientGate,
        control: Control,
        metrics: Metrics,
        log: RequestLog,
        max_body: int = _MAX_BODY,
    ) -> None:
        self._bridge = bridge
        self._shell = shell
        self._guard = guard
        self._clients = clients
        self._control = control
        self._metrics = metrics
        self._log = log
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: SendEvent) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        record = RequestRecord(
            _find_request_id(headers),
            scope["method"],
            scope["path"][:_MAX_LOGGED_PATH],
            traceparent=_keep_if(_TRACE, headers.get("traceparent", "")),
        )
        response = _Response(send, record)
        started = time.monotonic()
        self._metrics.active += 1
        try:
            await self._answer(scope, headers, receive, response)
        except (_DisconnectedError, asyncio.CancelledError):
            record.status = CLIENT_CLOSED_STATUS
            record.error = "the client closed the connection"
        except Exception as error:  # noqa: BLE001  a request never ends the server, and its client gets an answer
            # The message of an unexpected error may quote the body.
            await response.send_bug(type(error).__name__)
        finally:
            self._metrics.active -= 1
            record.seconds = time.monotonic() - started
            if record.api:
                self._metrics.add_request(
                    api=record.api,
                    route=record.route,
                    target=record.target,
                    status=record.status,
                    seconds=record.seconds,
                )
                self._metrics.add_findings(record.findings)
            if response.is_logged:
                self._log.write(record)

    async def _answer(self, scope: Scope, headers: Mapping[str, str], receive: Receive, response: _Response) -> None:
        path: str = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else scope["path"]
        query: str = scope["query_string"].decode("latin-1")
        refusal = self._guard.check(headers)
        if refusal is not None:
            await response.send_error(refusal.status, refusal.message)
            return
        if len(path) > _MAX_PATH:
            await response.send_error(414, f"the path has more than {_MAX_PATH:,} characters")
            return
        if self._control.is_change(scope["method"], path, headers):
            await self._change(receive, response)
            return
        local = self._control.answer(scope["method"], path, headers)
        if local is not None:
            await response.send_local(local)
            return
        if headers.get("upgrade", "").strip().lower() == "websocket":
            await response.send_error(426, "WebSocket connections are not supported here; send POST requests")
            return
        key = find_key(headers, query)
        admission = self._clients.admit(key)
        if not isinstance(admission, Admission):
            await response.send_error(admission.status, admission.message, retry_after=admission.retry_after)
            return
        response.record.client = admission.client
        with admission:
            try:
                body = await self._read_body(receive, self._max_body)
            except _BodyError as error:
                await response.send_error(error.status, str(error))
                return
            if admission.client and key:
                # A route that passes the client's credentials on gets those for the provider, not the client key.
                headers = {name: value for name, value in headers.items() if key not in value}
            relay = self._bridge.open(
                scope["method"], f"{path}?{query}" if query else path, headers, body, client=admission.client
            )
            try:
                await self._run(relay, receive, response)
            finally:
                response.record.add_relay(relay)
                if _is_fallback(relay):
                    self._metrics.count("segue_fallbacks_total", route=response.record.route)
                if relay.usage is not None and relay.target is not None:
                    self._metrics.add_usage(relay.target, relay.usage)
                    admission.add_tokens(relay.usage.input + relay.usage.output)

    async def _change(self, receive: Receive, response: _Response) -> None:
        try:
            body = await self._read_body(receive, _MAX_CONTROL_BODY)
        except _BodyError as error:
            await response.send_error(error.status, str(error))
        else:
            await response.send_local(self._control.change(body))

    async def _read_body(self, receive: Receive, limit: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        raise _DisconnectedError
                    chunks.append(event.get("body", b""))
                    size += len(chunks[-1])
                    if size > limit:
                        raise _BodyError(413, f"the body has more than {limit:,} bytes")
                    if not event.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            raise _BodyError(408, "the body did not arrive in time") from None

    async def _run(self, relay: Relay, receive: Receive, response: _Response) -> None:
        """Send the response of a relay while the client is there."""
        watcher = asyncio.create_task(_watch(relay, receive, response, asyncio.current_task()))
        chunks = run_async_exchange(relay, self._shell())
        try:
            async for chunk in chunks:
                if isinstance(chunk, Respond):
                    await response.start(chunk.status, chunk.headers)
                else:
                    await response.write(chunk)
            await response.end()
        finally:
            watcher.cancel()
            await chunks.aclose()


def _find_request_id(headers: Mapping[str, str]) -> str:
    """Return the client's id of a request, if it can stand in a log line and a header; else a new one."""
    return _keep_if(_REQUEST_ID, headers.get("x-request-id", "")) or f"req_{secrets.token_hex(8)}"


def _keep_if(pattern: re.Pattern[str], value: str) -> str:
    return value if pattern.fullmatch(value) else ""


def _is_fallback(relay: Relay) -> bool:
    """Return whether another target than the first one replied."""
    return relay.route is not None and relay.finish is not None and relay.target != relay.route.targets[0].name


async def _watch(relay: Relay, receive: Receive, response: _Response, running: asyncio.Task[None] | None) -> None:
    """Cancel the exchange when the client goes away, and keep a silent stream open."""
    while True:
        try:
            async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                event = await receive()
        except TimeoutError:
            await response.carry_out(relay.keep_alive() if response.is_idle(_KEEP_ALIVE_SECONDS) else ())
            continue
        if event["type"] == "http.disconnect" and running is not None:
            running.cancel()
            return


class _Response:
    """The response to one request."""

    def __init__(self, send: SendEvent, record: RequestRecord) -> None:
        self.record = record
        self.is_logged = True
        self._send = send
        self._is_sending = False
        self._last_write = time.monotonic()

    def is_idle(self, seconds: float) -> bool:
        """Return whether nothing was written for so long, and nothing is being written."""
        return not self._is_sending and time.monotonic() - self._last_write >= seconds

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.record.status = status
        self.record.stream = "content-length" not in headers
        all_headers = {**headers, "x-request-id": self.record.request_id}
        encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in all_headers.items()]
        await self._emit({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes) -> None:
        await self._emit({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._emit({"type": "http.response.body", "body": b"", "more_body": False})

    async def carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Respond):
                await self.start(action.status, action.headers)
            elif isinstance(action, Write):
                await self.write(action.data)

    async def send_local(self, response: LocalResponse) -> None:
        self.is_logged = response.is_logged
        headers = {"content-type": response.content_type, "content-length": str(len(response.data))}
        await self.start(response.status, headers)
        await self._emit({"type": "http.response.body", "body": response.data, "more_body": False})

    async def send_error(self, status: int, message: str, *, retry_after: float | None = None) -> None:
        """Send an error that is independent of the API: most SDKs show its message."""
        self.record.error = message
        data = msgspec.json.encode({"error": {"type": "gateway_error", "message": message, "code": status}})
        headers = {"content-type": "application/json", "content-length": str(len(data))}
        if retry_after is not None:
            headers["retry-after"] = f"{retry_after:.0f}"
        await self.start(status, headers)
        await self._emit({"type": "http.response.body", "body": data, "more_body": False})

    async def send_bug(self, kind: str) -> None:
        """Answer a request that failed in segue itself; a response that has begun is cut off."""
        message = f"this is a bug in segue, please report it: {kind}"
        if self.record.status:
            self.record.status, self.record.error = 500, message
        else:
            await self.send_error(500, message)

    async def _emit(self, event: MutableMapping[str, Any]) -> None:
        self._is_sending = True
        try:
            await self._send(event)
        finally:
            self._is_sending = False
            self._last_write = time.monotonic()
