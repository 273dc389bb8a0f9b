"""Serves emulated providers over HTTP: uvicorn in a thread, on loopback."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote

import uvicorn
from uvicorn.server import ServerState

from segue.emulator.connection import Connection
from segue.emulator.http_messages import HttpRequest, HttpResponse, RecordedRequest
from segue.emulator.model.script import Script
from segue.emulator.request_log import RequestLog
from segue.emulator.router import ALL_APIS, Router
from segue.emulator.services import EmulationOptions, RecordingOptions, build_router
from segue.emulator.steps import ScriptFunction
from segue.errors import InputError, format_os_error

_LOOPBACK = "127.0.0.1"
_LAST_PORT = 65535
_BACKLOG = 256
"""The maximum number of connections waiting to be accepted."""
_KEEP_ALIVE_SECONDS = 600
"""Longer than clients keep idle connections, so that no request races with a close."""
_RESET = struct.pack("ii", 1, 0)
_BODILESS = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Emulator:
    """A running provider, or all of them on one port. `stop()` it, or use it in a `with` statement."""

    def __init__(self, router: Router, port: int, *, host: str = _LOOPBACK) -> None:
        self.api = router.name
        """The name of the API, or `all`."""
        self._router = router
        try:
            self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        except OSError as error:
            why = "the address is already in use" if error.errno == errno.EADDRINUSE else format_os_error(error)
            raise InputError(f"can't listen on {host}:{port}: {why}", path="port") from None
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{host}:{self.port}"
        self._config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._state = ServerState()
        self._ready = threading.Event()
        self._stop: Callable[[], object] | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"segue emulate {self.api}", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            self._socket.close()
            raise self._failed

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
        if self._stop is not None:
            stop, self._stop = self._stop, None
            stop()
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def __repr__(self) -> str:
        return f"<Emulator {self.api} on {self.url}{'' if self._stop else ', stopped'}>"

    def __enter__(self) -> Emulator:
        if self._stop is None:
            raise InputError("this emulator was stopped; start a new one")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._listen())
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits for the start
            self._failed = error
        finally:
            self._ready.set()

    async def _listen(self) -> None:
        """Run uvicorn's protocol without its server, which checks for shutdown only ten times a second."""
        self._config.load()
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._stop = partial(loop.call_soon_threadsafe, stopped.set)

        connected = partial(Connection, config=self._config, server_state=self._state, app_state={})
        server = await loop.create_server(connected, sock=self._socket, backlog=_BACKLOG)
        self._ready.set()
        await stopped.wait()
        # Connections that are being accepted are not tracked yet and would leak if the server closed first.
        with suppress(NotImplementedError):
            loop.remove_reader(self._socket)
        accepting = asyncio.all_tasks() - self._state.tasks - {asyncio.current_task()}
        await asyncio.gather(*accepting, return_exceptions=True)
        server.close()
        for connection in list(self._state.connections):
            _transport(connection).abort()
        for task in list(self._state.tasks):
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
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
        response = await self._router.handle(
            _read_request(scope, b"".join(chunks) if is_complete else b"", is_complete=is_complete)
        )
        if response.delay:
            await asyncio.sleep(response.delay)
        if response.status:
            await self._send(response, send)
        if response.reset:
            await self._reset(scope, receive)

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

    async def _reset(self, scope: Mapping[str, Any], receive: Callable[[], Any]) -> None:
        """Reset the TCP connection, as a crash does."""
        # Let the data written before arrive.
        await asyncio.sleep(0.01)
        for connection in list(self._state.connections):
            if getattr(connection, "client", None) == scope.get("client"):
                transport = _transport(connection)
                raw_socket = transport.get_extra_info("socket")
                if raw_socket is not None:
                    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                transport.abort()
        while (await receive())["type"] != "http.disconnect":
            pass


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
    last `patience` seconds. `on_request` is called for each request.

    `record` is a folder: requests are sent to `upstream`, a URL or a URL for each API, and each exchange is stored as a
    file without its secrets. `replay` is such a folder: requests are answered from its files, without a network. Both
    exclude the options of emulated providers.
    """
    if port not in range(_LAST_PORT + 1):
        raise InputError(f"a number from 0 to {_LAST_PORT} was expected, not {port!r}", path="port")
    emulation = EmulationOptions(
        script=script, strict=strict, profile=profile, keys=keys, faults=faults, seed=seed, patience=patience
    )
    recording = RecordingOptions(record=record, upstream=upstream, replay=replay)
    return Emulator(build_router(api, RequestLog(on_request), emulation, recording), port, host=host)
