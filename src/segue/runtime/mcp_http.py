"""MCP servers by HTTP (extra `mcp`).

Compressed responses are refused. The size of a response, or of each event of a stream, is limited. A message that the
SDK refuses is replaced by a valid one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from segue.bridge.content_encoding import ACCEPT_ENCODING, find_encoding_error
from segue.runtime.mcp_messages import make_readable
from segue.wire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_MAX_BYTES = DEFAULT_LIMITS.bytes
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def connect_http(url: str, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[TransportStreams]:
    """Return the transport of a server."""
    return streamable_http_client(url, http_client=client, max_sse_event_size=None)


def make_http_client(
    headers: dict[str, str], timeout: httpx2.Timeout, on_error: Callable[[str], None]
) -> httpx2.AsyncClient:
    """Return a client. `on_error` gets the reason why a response is refused, which the SDK does not pass on."""
    own_headers = httpx2.Headers(headers)
    own_headers.update(ACCEPT_ENCODING)

    async def check_response(response: httpx2.Response) -> None:
        if error := find_encoding_error(response.headers.get("content-encoding")):
            on_error(error)
            raise httpx2.DecodingError(error, request=response.request)
        is_event_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            reader = _EventReader() if is_event_stream else _BodyReader()
            response.stream = _MessageStream(response.stream, reader, response.request, on_error)

    return httpx2.AsyncClient(headers=own_headers, timeout=timeout, event_hooks={"response": [check_response]})


class _BodyReader:
    """Reads the body of a response, which is one message."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def read(self, chunk: bytes) -> bytes:
        """Return the bytes that are complete; `ValueError` above the limit."""
        self._size += len(chunk)
        if self._size > _MAX_BYTES:
            raise ValueError(f"the response is larger than {_MAX_BYTES:,} bytes")
        self._parts.append(chunk)
        return b""

    def finish(self) -> bytes:
        return make_readable(b"".join(self._parts))


class _EventReader:
    """Reads the events of a stream, which end with an empty line each. Each may be a message."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._is_after_return = False

    def read(self, chunk: bytes) -> bytes:
        """Return the events that are complete, without comments; `ValueError` for one above the limit."""
        events: list[bytes] = []
        rest = chunk[1:] if self._is_after_return and chunk.startswith(b"\n") else chunk
        if chunk:
            self._is_after_return = rest.endswith(b"\r")
        for part in _LINE.findall(rest):
            self._size += len(part)
            if self._size > _MAX_BYTES:
                raise ValueError(f"the event is larger than {_MAX_BYTES:,} bytes")
            self._parts.append(part)
            if part.endswith((b"\r", b"\n")):
                events.append(self._end_line())
        return b"".join(events)

    def _end_line(self) -> bytes:
        line = b"".join(self._parts)
        self._parts = []
        if line.startswith(b":"):
            self._size -= len(line)
            return b""
        self._lines.append(line.rstrip(b"\r\n") + b"\n")
        return self.finish() if self._lines[-1] == b"\n" else b""

    def finish(self) -> bytes:
        """Return the lines of an event, with a message that the SDK can read."""
        lines, self._lines, self._parts, self._size = [*self._lines, *self._parts], [], [], 0
        data = [at for at, line in enumerate(lines) if line.startswith(b"data:")]
        if len(data) == 1:
            message = lines[data[0]].removeprefix(b"data:").removeprefix(b" ").removesuffix(b"\n")
            lines[data[0]] = b"data: %s\n" % make_readable(message)
        return b"".join(lines)


class _MessageStream(httpx2.AsyncByteStream):
    """The body of a response, as its reader returns it."""

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        reader: _BodyReader | _EventReader,
        request: httpx2.Request,
        on_error: Callable[[str], None],
    ) -> None:
        self._stream = stream
        self._reader = reader
        self._request = request
        self._on_error = on_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            try:
                data = self._reader.read(chunk)
            except ValueError as error:
                self._on_error(str(error))
                raise httpx2.ReadError(str(error), request=self._request) from None
            if data:
                yield data
        yield self._reader.finish()

    async def aclose(self) -> None:
        await self._stream.aclose()
