"""The HTTP client of MCP servers: it refuses compressed responses and limits the size of JSON responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2

from segue.runtime.content_encoding import ACCEPT_ENCODING, find_encoding_error
from segue.wire.limits import DEFAULT_LIMITS

_MAX_BYTES = DEFAULT_LIMITS.bytes


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
        # Events arrive one by one, for as long as the connection is open.
        is_event_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not is_event_stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _LimitedStream(response.stream, response.request, on_error)

    return httpx2.AsyncClient(headers=own_headers, timeout=timeout, event_hooks={"response": [check_response]})


class _LimitedStream(httpx2.AsyncByteStream):
    """A response body that raises an error above the limit."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, request: httpx2.Request, on_error: Callable[[str], None]
    ) -> None:
        self._stream = stream
        self._request = request
        self._on_error = on_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > _MAX_BYTES:
                error = f"the response is larger than {_MAX_BYTES:,} bytes"
                self._on_error(error)
                raise httpx2.ReadError(error, request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
