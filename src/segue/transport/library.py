"""`Library`: an HTTP library behind one interface. httpx2 and httpx have the same names, so one class serves both."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import anyio
import anyio.to_thread

from segue.bridge import aws
from segue.bridge.actions import Respond
from segue.bridge.content_encoding import ACCEPT_ENCODING
from segue.bridge.driver import UpstreamError
from segue.bridge.entries import EntryMemory
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError, TransportErrorKind
from segue.bridge.relay import Relay

_LOCAL_PATTERNS = ("all://127.0.0.1", "all://localhost", "all://[::1]")


class Library:
    """An HTTP library, given by its module."""

    def __init__(self, module: Any) -> None:
        self._module = module
        # Subclasses before their bases.
        self._kinds: tuple[tuple[type[Exception], TransportErrorKind], ...] = (
            (module.ProxyError, "proxy"),
            (module.TimeoutException, "timeout"),
            (module.ConnectError, "connect"),
            (module.RemoteProtocolError, "lost"),
            (module.NetworkError, "lost"),
        )

    def open_client(self, options: Mapping[str, Any]) -> Any:
        return self._module.Client(**_client_options(options))

    def open_async_client(self, options: Mapping[str, Any]) -> Any:
        return self._module.AsyncClient(**_client_options(options))

    def build_request(self, request: HttpRequest, extensions: Mapping[str, Any]) -> Any:
        """Return the request to a provider. It has the timeouts of the caller's request."""
        return self._module.Request(
            request.method,
            request.url,
            headers={**request.headers, **ACCEPT_ENCODING},
            content=b"".join(request.body) or None,
            extensions={key: extensions[key] for key in ("timeout",) if key in extensions},
        )

    def build_response(self, head: Respond, stream: Any, relay: Relay) -> Any:
        """Return the response to the caller's request, with the report of the conversion."""
        return self._module.Response(
            head.status, headers=dict(head.headers), stream=stream, extensions={"segue": relay.report}
        )

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions of a failed connection."""
        return (self._module.TransportError, self._module.StreamError)

    def wrap(self, error: Exception) -> UpstreamError:
        kinds: list[TransportErrorKind] = [kind for base, kind in self._kinds if isinstance(error, base)]
        return UpstreamError(TransportError((*kinds, "invalid")[0], str(error) or type(error).__name__), error)


def _client_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a client. Servers on this machine are not reached through the environment's proxy."""
    local = {} if "proxy" in options else dict.fromkeys(_LOCAL_PATTERNS)
    return {"follow_redirects": False, **options, "mounts": {**local, **options.get("mounts", {})}}


class LibraryShell:
    """Sends requests with a client of the library, and keeps entries in memory.

    `extensions` are those of the caller's request: its timeouts apply to the provider.
    """

    def __init__(self, library: Library, client: Any, extensions: Mapping[str, Any], memory: EntryMemory) -> None:
        self._library = library
        self._client = client
        self._extensions = extensions
        self.load, self.save, self.delete = memory.load, memory.save, memory.delete

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def send(self, request: HttpRequest) -> LibraryUpstream:
        library = self._library
        try:
            response = self._client.send(library.build_request(request, self._extensions), stream=True, auth=None)
        except library.errors as error:
            raise library.wrap(error) from error
        return LibraryUpstream(library, response)


class AsyncLibraryShell:
    """The same for an event loop."""

    def __init__(self, library: Library, client: Any, extensions: Mapping[str, Any], memory: EntryMemory) -> None:
        self._library = library
        self._client = client
        self._extensions = extensions
        self._memory = memory

    async def send(self, request: HttpRequest) -> AsyncLibraryUpstream:
        library = self._library
        try:
            response = await self._client.send(library.build_request(request, self._extensions), stream=True, auth=None)
        except library.errors as error:
            raise library.wrap(error) from error
        return AsyncLibraryUpstream(library, response)

    async def authorize(self, signer: aws.CredentialSource) -> aws.Credentials:
        return await anyio.to_thread.run_sync(signer.get)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]:
        return self._memory.load(keys)

    async def save(self, entries: Mapping[str, bytes]) -> None:
        self._memory.save(entries)

    async def delete(self, keys: Iterable[str]) -> None:
        self._memory.delete(keys)


class LibraryUpstream:
    """A provider's response, read in chunks."""

    def __init__(self, library: Library, response: Any) -> None:
        self._library = library
        self._response = response
        self._chunks: Iterator[bytes] = response.iter_raw()
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    def read(self) -> bytes:
        try:
            # An empty chunk would mean the end.
            return next((chunk for chunk in self._chunks if chunk), b"")
        except self._library.errors as error:
            raise self._library.wrap(error) from error

    def close(self) -> None:
        self._response.close()


class AsyncLibraryUpstream:
    """The same for an event loop."""

    def __init__(self, library: Library, response: Any) -> None:
        self._library = library
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.aiter_raw()
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def read(self) -> bytes:
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except self._library.errors as error:
            raise self._library.wrap(error) from error
        return b""

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._response.aclose()
