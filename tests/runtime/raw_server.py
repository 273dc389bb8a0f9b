"""A loopback server that sends given bytes, valid or not, and records disconnects."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

RESET = b"<reset>"
"""Resets the connection."""
HANG = b"<hang>"
"""Sends nothing more until the client disconnects."""


def http_response(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    response = "".join(f"{line}\r\n" for line in (f"content-type: {kind}", f"content-length: {len(body)}", *headers))
    return f"HTTP/1.1 {status}\r\n{response}\r\n".encode() + body


def chunked_response(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


class RawServer:
    """`heads` and `bodies` are what came; `connections` counts, `left` is set when a client goes away."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.request_received = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.url = ""
        self._answers = list(answers)

    def header(self, name: str, request: int = 0) -> str | None:
        lines = self.heads[request].split("\r\n")
        found = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(f"{name}:")]
        assert len(found) < 2
        return found[0] if found else None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self.disconnected.set()
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(int(self.header("content-length", -1) or 0)))
        response = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        self.request_received.set()
        text, hangs, _ = response.partition(HANG)
        text, breaks, _ = text.partition(RESET)
        writer.write(text)
        await writer.drain()
        if hangs:
            await reader.read()
            return False
        if breaks:
            # What was written before is to arrive.
            await asyncio.sleep(0.01)
            writer.transport.abort()
            return False
        return b"connection: close" not in text


@asynccontextmanager
async def serve_raw(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncGenerator[RawServer]:
    """Each request gets the next response; the last one repeats."""
    server = RawServer(answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls, limit=1 << 24)
    scheme = "http" if tls is None else "https"
    server.url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()
        while waiting := [task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == "RawServer.serve"]:  # type: ignore[union-attr]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
