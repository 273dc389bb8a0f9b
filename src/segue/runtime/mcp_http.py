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
_COMMENTS = re.compile(rb"(?:(?::[^\n]*+)?+\n)*+")
_DATA_LINES = re.compile(rb"(?:\ndata:[^\n]*+)++")


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
        self._body = bytearray()

    def read(self, chunk: bytes) -> bytes:
        """Return the bytes that are complete; `ValueError` above the limit."""
        self._body += chunk
        if len(self._body) > _MAX_BYTES:
            raise ValueError(f"the response is larger than {_MAX_BYTES:,} bytes")
        return b""

    def finish(self) -> bytes:
        return make_readable(bytes(self._body))


class _EventReader:
    """Reads the events of a stream, which end with an empty line each. Each may be a message."""

    def __init__(self) -> None:
        # A buffer and not a list of lines, each of which would take the memory of an object.
        self._buffer = bytearray()
        self._is_after_return = False

    def read(self, chunk: bytes) -> bytes:
        """Return the events that are complete, without comments; `ValueError` for one above the limit."""
        data = chunk.removeprefix(b"\n") if self._is_after_return else chunk
        if chunk:
            self._is_after_return = chunk.endswith(b"\r")
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        buffer = self._buffer
        is_complete = b"\n\n" in data or (data.startswith(b"\n") and buffer.endswith(b"\n"))
        buffer += data
        events: list[bytes] = []
        if is_complete:
            end = buffer.rfind(b"\n\n")
            events = bytes(buffer[:end]).split(b"\n\n")
            del buffer[: end + 2]
        if buffer.startswith((b":", b"\n")) and b"\n" in data:
            _drop_comments(buffer)
        if max(map(len, (buffer, *events))) > _MAX_BYTES:
            raise ValueError(f"the event is larger than {_MAX_BYTES:,} bytes")
        return b"".join(map(_make_event_readable, events))

    def finish(self) -> bytes:
        """Discard an event without an end."""
        return b""


def _drop_comments(buffer: bytearray) -> None:
    """Drop the comments and empty lines before an event."""
    if (comments := _COMMENTS.match(buffer)) is not None:
        end = comments.end()
        # A buffer can't be resized while a match refers to it.
        del comments
        del buffer[:end]


def _make_event_readable(event: bytes) -> bytes:
    """Return the event with its data in one line, as a message that the SDK can read."""
    lines = b"\n%s\n" % event
    fields = [_find_last_line(lines, name) for name in (b"event", b"id", b"retry")]
    message = bytearray()
    for run in _DATA_LINES.finditer(lines):
        # In JSON, line ends are blanks.
        message += run[0].replace(b"\ndata:", b"\n").replace(b"\n", b" ")
    if message or b"\ndata\n" in lines:
        fields.append(b"data: %s\n" % make_readable(bytes(message).strip()))
    return b"".join((*fields, b"\n"))


def _find_last_line(lines: bytes, name: bytes) -> bytes:
    start = lines.rfind(b"\n%s:" % name) + 1
    return lines[start : lines.index(b"\n", start) + 1] if start else b""


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
