"""The transports and clients of `segue.transport`, for httpx2."""

from __future__ import annotations

from typing import Any

try:
    import httpx2
except ImportError as error:
    raise ImportError("segue.transport needs httpx2, which vendors' SDKs install: pip install httpx2") from error

from segue.transport.library import Library
from segue.transport.methods import AsyncChunks, AsyncMethods, SyncChunks, SyncMethods

__all__ = ["AsyncTransport", "Transport", "async_client", "client"]


class _Stream(SyncChunks, httpx2.SyncByteStream): ...


class _AsyncStream(AsyncChunks, httpx2.AsyncByteStream): ...


class Transport(SyncMethods, httpx2.BaseTransport):
    """A transport for `httpx2.Client`."""

    library = Library(httpx2)
    stream_class = _Stream


class AsyncTransport(AsyncMethods, httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient`."""

    library = Library(httpx2)
    stream_class = _AsyncStream


def client(*models: str, **options: Any) -> httpx2.Client:
    """Return a client with a `Transport` for these models, for the `http_client` of an SDK."""
    return httpx2.Client(transport=Transport(*models, **options), timeout=None)


def async_client(*models: str, **options: Any) -> httpx2.AsyncClient:
    """Return a client with an `AsyncTransport` for these models."""
    return httpx2.AsyncClient(transport=AsyncTransport(*models, **options), timeout=None)
