"""`HttpServer`: the HTTP server of gateway and emulator: uvicorn with a strict reader and limits for each client.

A connection that waits for a request has no key yet, so its cost is bounded before anything is parsed. Whichever parser
is installed, there is at most one response for each request that the strict reader accepts, and none after a refusal.
"""

from __future__ import annotations

import asyncio
import errno
import http
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import uvicorn
from msgspec import Struct

from segue.errors import InputError, format_os_error
from segue.http_framing import RefusalError, RequestReader

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _HttpProtocol
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
else:
    # The base is one of two classes with the same members, chosen when a server starts.
    _HttpProtocol = object

# More bytes are written at once.
_MAX_JOINED = 1 << 16
_DRAIN_STEP = 0.05
# The maximum number of connections waiting to be accepted.
_BACKLOG = 2048
# The steps of the event loop in which a connection that is being accepted becomes one of the server.
_ACCEPT_STEPS = 3

# What segue logs is printed only if the program configures logging.
logging.getLogger("segue").addHandler(logging.NullHandler())
# Malformed requests and disconnected clients are not logged.
_QUIET_LOGGER = logging.getLogger("segue.http_server")
_QUIET_LOGGER.setLevel(logging.CRITICAL + 1)


class HttpLimits(Struct, frozen=True):
    """Limits for each process. Times are in seconds; None stands for a limit that the application has itself."""

    connections: int = 1000
    head_bytes: int = 64 * 1024
    """The maximum size of request line and headers."""
    head_seconds: float = 30.0
    body_bytes: int | None = None
    body_seconds: float | None = None
    keep_alive_seconds: float = 5.0
    stall_seconds: float = 300.0
    """How long a client may read nothing of a response."""
    linger_seconds: float = 2.0
    """The time a refused client has to read the error before the connection is reset."""


# ---------------------------------------------------------------------------------------------------------- connections


class JoiningTransport:
    """Joins the writes of one step of the event loop: the head of a response with its body, the last bytes and the end.

    A write to a socket costs as much as a good part of a conversion. While `is_held`, reading is not resumed.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.is_held = False
        self._transport = transport
        self._loop = loop
        self._joined: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        if not self.is_held:
            self.is_held = True
            self._transport.pause_reading()

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self._transport.resume_reading()

    def resume_reading(self) -> None:
        if not self.is_held:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        if not self._joined:
            self._loop.call_soon(self._flush)
        self._joined.append(data)
        self._size += len(data)
        if self._size > _MAX_JOINED:
            self._flush()

    def write_eof(self) -> None:
        self._flush()
        # The client may be gone.
        with suppress(OSError):
            if self._transport.can_write_eof():
                self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        # A client that sends too much gets the response before its connection is closed.
        self._flush()
        self._transport.abort()

    def _flush(self) -> None:
        joined, self._joined, self._size = self._joined, [], 0
        if joined and not self._transport.is_closing():
            self._transport.write(b"".join(joined))


class _Connection(_HttpProtocol):
    """uvicorn's protocol behind a strict reader: it gets one request after the other, each after the last response."""

    http_server: HttpServer
    logger: logging.Logger
    _transport: JoiningTransport
    _timer: asyncio.TimerHandle | None = None
    _timed: Literal["head", "body", "rest"] | None = None
    _stall: asyncio.TimerHandle | None = None
    _is_refused = False

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.logger = _QUIET_LOGGER
        limits = self.http_server.limits
        self._reader = RequestReader(limits.head_bytes, limits.body_bytes)

    @property
    def _open_cycle(self) -> RequestResponseCycle | None:
        """The last request, if its response is not complete."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return None if cycle is None or cycle.response_complete else cycle

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = JoiningTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._transport))
        if len(self.connections) > self.http_server.limits.connections or self.http_server.should_exit:
            self.http_server.on_refusal(0, "there are too many connections")
            transport.abort()
        else:
            self._limit_time("head")

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_refused = True
        if self._timer is not None:
            self._timer.cancel()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            self._reader.feed(data)
            self._advance()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_refused and not self.transport.is_closing():
            self._transport.release()
            self._advance()

    def _advance(self) -> None:
        """Pass on what was read: nothing of a request before the response to the last one is complete."""
        reader = self._reader
        while (is_free := reader.part == "body" or self._open_cycle is None) and not self.transport.is_closing():
            try:
                piece = reader.read()
            except RefusalError as refusal:
                self._refuse(refusal.status, refusal.reason)
                return
            if piece is None:
                break
            super().data_received(piece)
            if self._is_refused:
                return
        if reader.part == "body":
            self._limit_time("rest" if self._open_cycle is None else "body")
        elif not reader.has_data:
            self._limit_time(None)
        elif is_free:
            self._unset_keepalive_if_required()
            self._limit_time("head")
        else:
            self._limit_time(None)
            self._transport.hold()

    # ----------------------------------------------------------------------------------------------------- time limits

    def _limit_time(self, part: Literal["head", "body", "rest"] | None) -> None:
        """Start the time limit of a part of a request, unless it runs already.

        The rest is the remaining body of a request that was already answered. It is read and dropped: unread
        bytes would reset the connection, and the response would be lost.
        """
        if part == self._timed:
            return
        self._timed = part
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        limits = self.http_server.limits
        seconds = limits.body_seconds if part == "body" else limits.head_seconds
        if part is not None and seconds is not None:
            self._timer = self.loop.call_later(seconds, self._end_in_time)

    def _end_in_time(self) -> None:
        if self._timed == "rest" or (self._timed == "head" and not self._reader.has_data):
            self.transport.close()
        else:
            name = "headers" if self._timed == "head" else "body"
            self._refuse(408, f"the {name} did not arrive in time")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.http_server.limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    # -------------------------------------------------------------------------------------------------------- refusals

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, reason: str) -> None:
        """Send an error and close. Bytes that still arrive are dropped: unread, they would reset the connection."""
        self._is_refused = True
        self._limit_time(None)
        self._unset_keepalive_if_required()
        cycle = self._open_cycle
        has_response = self._reader.part == "body" and (cycle is None or cycle.response_started)
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        if has_response:
            self.transport.close()
            return
        self.http_server.on_refusal(status, reason)
        text = f"{reason}\n".encode("ascii", "backslashreplace")
        head = (
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
        )
        self._transport.write(head.encode() + text)
        self._transport.write_eof()
        self._transport.release()
        self.flow.resume_reading()
        self._timer = self.loop.call_later(self.http_server.limits.linger_seconds, self.transport.close)


def find_parser() -> type[Any]:
    """Return uvicorn's protocol with the faster parser, if it can be imported."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        return H11Protocol
    return HttpToolsProtocol


# --------------------------------------------------------------------------------------------------------------- server


class HttpServer(uvicorn.Server):
    """Serves an ASGI application on a socket. It is stopped by a signal, or by `stop` in any thread.

    `on_refusal` is called with the status and the reason of each request that the application does not get; the status
    is 0 for a connection that is closed at once.
    """

    def __init__(
        self,
        app: Any,
        limits: HttpLimits,
        *,
        has_date: bool = False,
        certificate: Path | None = None,
        private_key: Path | None = None,
        drain_seconds: float = 0.0,
        on_refusal: Callable[[int, str], None] = lambda _status, _reason: None,
    ) -> None:
        self.limits = limits
        self.on_refusal = on_refusal
        self._drain_seconds = drain_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = asyncio.Event()
        protocol = type("Connection", (_Connection, find_parser()), {"http_server": self})
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=has_date,
                proxy_headers=False,
                timeout_keep_alive=cast("int", limits.keep_alive_seconds),
                ssl_certfile=certificate,
                ssl_keyfile=private_key,
            )
        )

    async def listen(self, listening: socket.socket, on_ready: Callable[[], None]) -> None:
        """Serve until the server is stopped. Open requests may end for `drain_seconds`; then they are cancelled."""
        self._loop = asyncio.get_running_loop()
        with self.capture_signals():
            self.config.load()
            server = await self._loop.create_server(self._connect, sock=listening, backlog=_BACKLOG, **self._tls)
            self.servers = [server]
            on_ready()
            while not self.should_exit:
                # The date of responses.
                await self.on_tick(0)
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self._is_stopping.wait()
            await self._close(listening)

    def _connect(self) -> asyncio.Protocol:
        protocol = cast("type[Any]", self.config.http_protocol_class)
        return protocol(config=self.config, server_state=self.server_state, app_state={})

    @property
    def _tls(self) -> dict[str, Any]:
        # A handshake comes before the headers, and its time counts as theirs.
        context = self.config.ssl
        return {} if context is None else {"ssl": context, "ssl_handshake_timeout": self.limits.head_seconds}

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        self._wake()

    def stop(self) -> None:
        """Stop at once; open requests are cancelled."""
        self.should_exit = self.force_exit = True
        self._wake()

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._is_stopping.set)

    async def _close(self, listening: socket.socket) -> None:
        state = self.server_state
        # A connection that is being accepted would leak if the server closed first.
        with suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(state.connections):
            connection.shutdown()
        deadline = time.monotonic() + self._drain_seconds
        while (state.connections or state.tasks) and not self.force_exit and time.monotonic() < deadline:
            await asyncio.sleep(_DRAIN_STEP)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await asyncio.sleep(0)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise `InputError` if the address can't be used."""
    listening = socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET,
        socket.SOCK_STREAM,
        # asyncio sends small writes at once only for sockets created with an explicit protocol.
        socket.IPPROTO_TCP,
    )
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        why = "the address is already in use" if error.errno == errno.EADDRINUSE else format_os_error(error)
        raise InputError(f"can't listen on {host}:{port}: {why}", path="port") from None
    listening.setblocking(False)
    return listening


def format_url(listening: socket.socket, scheme: str = "http") -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def start_in_thread(name: str, run: Callable[[Callable[[], None]], None]) -> threading.Thread:
    """Call `run` in a thread, and return when it has called its argument; raise the error that ends it before."""
    ready = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run(ready.set)
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits for the start
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    ready.wait()
    if failed:
        raise failed[0]
    return thread
