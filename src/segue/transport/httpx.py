"""Transports for httpx 0.28, for SDKs and frameworks that use it."""

from __future__ import annotations

from typing import Any

try:
    import httpx
except ImportError as error:
    raise ImportError("segue.transport.httpx needs httpx: pip install httpx") from error

from segue.transport.library import Library
from segue.transport.methods import AsyncChunks, AsyncMethods, SyncChunks, SyncMethods

__all__ = ["AsyncTransport", "Transport", "async_client", "client"]


class _Stream(SyncChunks, httpx.SyncByteStream): ...


class _AsyncStream(AsyncChunks, httpx.AsyncByteStream): ...


class Transport(SyncMethods, httpx.BaseTransport):
    """A transport for `httpx.Client`."""

    library = Library(httpx)
    stream_class = _Stream


class AsyncTransport(AsyncMethods, httpx.AsyncBaseTransport):
    """A transport for `httpx.AsyncClient`."""

    library = Library(httpx)
    stream_class = _AsyncStream


def client(*models: str, **options: Any) -> httpx.Client:
    """Return a client with a `Transport` for these models, for the `http_client` of an SDK."""
    return httpx.Client(transport=Transport(*models, **options), timeout=None)


def async_client(*models: str, **options: Any) -> httpx.AsyncClient:
    """Return a client with an `AsyncTransport` for these models."""
    return httpx.AsyncClient(transport=AsyncTransport(*models, **options), timeout=None)
