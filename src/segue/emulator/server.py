"""Serves emulated providers over HTTP: uvicorn in a thread, on loopback."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote

from segue.emulator.http_messages import MAX_BODY_BYTES, HttpRequest, HttpResponse, RecordedRequest, RequestLog
from segue.emulator.model.script import Script
from segue.emulator.services import ALL_APIS, EmulationOptions, RecordingOptions, Router, build_router
from segue.emulator.steps import ScriptFunction
from segue.errors import InputError
from segue.http_server import HttpLimits, HttpServer, bind, format_url, start_in_thread

_LOOPBACK = "127.0.0.1"
_LAST_PORT = 65535
# Idle connections stay open for longer than clients keep them, so that no request races with a close.
_LIMITS = HttpLimits(body_bytes=MAX_BODY_BYTES, body_seconds=300.0, keep_alive_seconds=600.0)
_RESET = struct.pack("ii", 1, 0)
_BODILESS = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Emulator:
    """A running provider, or all of them on one port. `stop()` it, or use it in a `with` statement."""

    def __init__(self, router: Router, port: int, *, host: str = _LOOPBACK) -> None:
        self.api = router.name
        """The name of the API, or `all`."""
        self._router = router
        self._socket = bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = format_url(self._socket)
        self._server = HttpServer(self._serve, _LIMITS)
        self._is_running = True
        try:
            self._thread = start_in_thread(f"segue emulate {self.api}", self._run)
        except BaseException:
            self._socket.close()
            raise

    @property
    def base_url(self) -> str:
        """The base URL for the provider's own client; with all APIs, the address without a prefix."""
        return self.url if self.api == ALL_APIS else self.base_urls[self.api]

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL for the client of each API."""
        return {api: self.url + path for api, path in self._router.base_paths.items()}

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, with body, violations and result."""
        return self._router.log.requests

    def assume_stored(self) -> None:
        """Accept references to items that this run has not stored, as if an earlier run had."""
        for service in self._router.services.values():
            service.provider.assumes_stored = True

    def stop(self) -> None:
        """Stop at once and close open connections. May be called twice."""
        if self._is_running:
            self._is_running = False
            self._server.stop()
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def __repr__(self) -> str:
        return f"<Emulator {self.api} on {self.url}{'' if self._is_running else ', stopped'}>"

    def __enter__(self) -> Emulator:
        if not self._is_running:
            raise InputError("this emulator was stopped; start a new one")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, on_ready: Callable[[], None]) -> None:
        asyncio.run(self._listen(on_ready))

    async def _listen(self, on_ready: Callable[[], None]) -> None:
        await self._server.listen(self._socket, on_ready)
        await self._router.close()
        await asyncio.sleep(0)

    # ------------------------------------------------------------------------------------------------------------ ASGI

    async def _serve(self, scope: Mapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        chunks: list[bytes] = []
        size, limit = 0, self._router.max_body_bytes
        while True:
            event = await receive()
            if event["type"] != "http.request":
                return
            # A body that is too large is still read to its end, or the client would not get the error.
            size += len(event.get("body", b""))
            if size <= limit:
                chunks.append(event.get("body", b""))
            if not event.get("more_body"):
                break
        is_complete = size <= limit
        request = _read_request(scope, b"".join(chunks) if is_complete else b"", is_complete=is_complete)
        watcher = asyncio.create_task(_watch(receive, asyncio.current_task()))
        try:
            await self._answer(request, scope, send)
        finally:
            watcher.cancel()

    async def _answer(self, request: HttpRequest, scope: Mapping[str, Any], send: Callable[[Any], Any]) -> None:
        response = await self._router.handle(request)
        if response.delay:
            await asyncio.sleep(response.delay)
        if response.status:
            await self._send(response, send)
        if response.reset:
            await self._reset(scope)

    async def _send(self, response: HttpResponse, send: Callable[[Any], Any]) -> None:
        headers = [] if response.content_type is None else [(b"content-type", response.content_type.encode())]
        headers += [(name.encode(), value.encode(errors="surrogateescape")) for name, value in response.headers]
        content = response.content
        length = (
            len(content)
            if response.declared_length is None and isinstance(content, bytes)
            else response.declared_length
        )
        if length is not None and response.status not in _BODILESS:
            headers.append((b"content-length", str(length).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if isinstance(content, bytes):
            await send({"type": "http.response.body", "body": content, "more_body": response.reset})
        else:
            async with aclosing(content):
                async for chunk in content:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not response.reset and not isinstance(content, bytes):
            await send({"type": "http.response.body", "body": b""})

    async def _reset(self, scope: Mapping[str, Any]) -> None:
        """Reset the TCP connection, as a crash does."""
        # Let the data written before arrive.
        await asyncio.sleep(0.01)
        for connection in list(self._server.server_state.connections):
            if getattr(connection, "client", None) == scope.get("client"):
                transport = _transport(connection)
                raw_socket = transport.get_extra_info("socket")
                if raw_socket is not None:
                    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                transport.abort()
        # Until the connection is lost.
        await asyncio.Event().wait()


async def _watch(receive: Callable[[], Any], answering: asyncio.Task[Any] | None) -> None:
    """Cancel the response when the client does not wait for it any more."""
    while (await receive())["type"] != "http.disconnect":
        pass
    if answering is not None:
        answering.cancel()


def _transport(connection: Any) -> Any:
    return connection.transport


def _read_request(scope: Mapping[str, Any], body: bytes, *, is_complete: bool) -> HttpRequest:
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return HttpRequest(
        method=scope["method"],
        path=unquote(raw_path.decode("latin-1")),
        query=dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)),
        headers={name.decode("latin-1").lower(): _decode_header(value) for name, value in scope["headers"]},
        body=body,
        raw_path=raw_path.decode("latin-1"),
        raw_query=query.decode("latin-1"),
        is_complete=is_complete,
    )


def _decode_header(value: bytes) -> str:
    """Decode a header value: clients send non-ASCII text as UTF-8 or Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def start(
    api: str,
    *,
    port: int = 0,
    host: str = _LOOPBACK,
    script: str | Path | Script | ScriptFunction | None = None,
    strict: bool = True,
    profile: str | None = None,
    keys: str | Iterable[str] = (),
    faults: Iterable[str] | Mapping[str, float] = (),
    seed: int = 0,
    patience: float = 30.0,
    clock: Callable[[], float] = monotonic,
    on_request: Callable[[RecordedRequest], None] | None = None,
    record: str | Path | None = None,
    upstream: str | Mapping[str, str] | None = None,
    replay: str | Path | None = None,
) -> Emulator:
    """Start the emulated provider of this API on loopback; `all` starts those of all APIs on one port.

    `port` 0 chooses a free port. `script` is the text of a script, the path of a file, or a function that returns the
    steps of the reply to a request; without one, and after its end, the built-in model replies. With `strict` off
    invalid bodies are accepted and their violations only recorded. `keys` are the accepted keys (on Bedrock a bearer
    token, or `access key:secret`); by default any key is. `faults` are those of `FaultPlan`; `slow-start` and `stall`
    last `patience` seconds. Prompt caches expire by `clock`, in seconds. `on_request` is called for each request.

    `record` is a folder: requests are sent to `upstream`, a URL or a URL for each API, and each exchange is stored as a
    file without its secrets. `replay` is such a folder: requests are answered from its files, without a network. Both
    exclude the options of emulated providers.
    """
    if port not in range(_LAST_PORT + 1):
        raise InputError(f"a number from 0 to {_LAST_PORT} was expected, not {port!r}", path="port")
    emulation = EmulationOptions(
        script=script,
        strict=strict,
        profile=profile,
        keys=keys,
        faults=faults,
        seed=seed,
        patience=patience,
        clock=clock,
    )
    recording = RecordingOptions(record=record, upstream=upstream, replay=replay)
    return Emulator(build_router(api, RequestLog(on_request), emulation, recording), port, host=host)
