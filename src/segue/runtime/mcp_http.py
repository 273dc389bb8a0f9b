"""MCP servers by HTTP (extra `mcp`): compressed responses are refused, and the size of a response is limited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client

from segue.bridge.content_encoding import ACCEPT_ENCODING, find_encoding_error
from segue.runtime.mcp_messages import MAX_BYTES, SurrogateFilter

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


def connect_http(url: str, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[TransportStreams]:
    """Return the transport of a server."""
    return streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BYTES)


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
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Body(response.stream, response, on_error)

    return httpx2.AsyncClient(headers=own_headers, timeout=timeout, event_hooks={"response": [check_response]})


class _Body(httpx2.AsyncByteStream):
    """The body of a response, without halves of surrogate pairs. The SDK limits the events of a stream itself."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, response: httpx2.Response, on_error: Callable[[str], None]
    ) -> None:
        self._stream = stream
        self._request = response.request
        self._is_event_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        self._on_error = on_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        surrogates = SurrogateFilter()
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BYTES and not self._is_event_stream:
                error = f"the response is larger than {MAX_BYTES:,} bytes"
                self._on_error(error)
                raise httpx2.ReadError(error, request=self._request)
            yield surrogates.read(chunk)

    async def aclose(self) -> None:
        await self._stream.aclose()
