"""The connections of clients: limits that uvicorn does not have, and fewer writes to the socket.

The limits are on the number of connections, size and time of headers, and clients that do not read. A connection that
waits for a request has no client key yet. So its cost is bounded before anything is parsed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
else:
    # The faster one of two classes with the same members, if it is installed.
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol

# More bytes are written at once.
_MAX_JOINED = 1 << 16


class ConnectionLimits(Struct, frozen=True):
    """Limits for each process. Times are in seconds; `stall` is how long a client may read nothing of a response."""

    connections: int = 1000
    header_bytes: int = 64 * 1024
    header_seconds: float = 30.0
    stall_seconds: float = 300.0


class JoiningTransport:
    """Joins the writes of one step of the event loop: the head of a response with its body, the last bytes and the end.

    A write to a socket costs as much as a good part of the conversion.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._joined: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._joined:
            self._loop.call_soon(self._flush)
        self._joined.append(data)
        self._size += len(data)
        if self._size > _MAX_JOINED:
            self._flush()

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


def make_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol class of a server with these limits."""
    return type("LimitedProtocol", (_LimitedProtocol,), {"limits": limits})


class _LimitedProtocol(HttpProtocol):
    limits = ConnectionLimits()
    _timer: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport, self.loop)))
        if len(self.connections) > self.limits.connections:
            transport.abort()
        else:
            self._timer = self.loop.call_later(self.limits.header_seconds, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        cycle = self.cycle
        if cycle and not cycle.response_complete:
            super().data_received(data)
            return
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.header_seconds, self.transport.abort)
        super().data_received(data)
        if self.cycle is not cycle:
            self._stop_timer()
            self._header_bytes = 0
            return
        self._header_bytes += len(data)
        if self._header_bytes > self.limits.header_bytes:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
