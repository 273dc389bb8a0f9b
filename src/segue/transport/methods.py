"""The methods of the transports, for any HTTP library. Each library's module combines them with its base classes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from segue.bridge.actions import Respond
from segue.bridge.entries import EntryMemory
from segue.bridge.envelopes import EnvelopeKeys
from segue.bridge.providers import Config, Environ
from segue.bridge.shell import run_async_exchange, run_exchange
from segue.render.constraints import Policy
from segue.transport.library import AsyncLibraryShell, Library, LibraryShell
from segue.transport.settings import TransportSettings


class TransportOptions:
    """The constructor of all transports.

    `models` are `provider/model` names, the first preferred; the others are used if those before fail before any
    content. A request whose model is one of these names is sent to that model first. `providers` adds or changes
    providers, as the `[providers]` table of a configuration file does. API keys are taken from `environ`, by default
    the environment of the process. `caller` is the API or dialect of the SDK where the host that it sends to does not
    show it. With `pass_through`, requests that segue does not translate are sent to the SDK's own host, unchanged.
    `client_options` are those of the client that sends requests to providers.
    """

    library: ClassVar[Library]

    def __init__(
        self,
        *models: str,
        providers: Config | None = None,
        environ: Environ | None = None,
        caller: str | None = None,
        policy: Policy | None = None,
        envelope_keys: EnvelopeKeys | Path | None = None,
        memory: EntryMemory | None = None,
        pass_through: bool = False,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = TransportSettings(
            models,
            providers=providers,
            environ=environ,
            caller=caller,
            policy=policy,
            envelope_keys=envelope_keys,
            memory=memory,
            pass_through=pass_through,
        )
        self._client_options = client_options or {}
        self._client: Any = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(target.name for target in self._settings.targets)}>"


class SyncMethods(TransportOptions):
    """`handle_request` and `close` of a transport."""

    stream_class: ClassVar[type]

    def handle_request(self, request: Any) -> Any:
        body: bytes = request.read()
        relay = self._settings.open(request.method, str(request.url), dict(request.headers), body)
        client = self._get_client()
        if relay is None:
            return client.send(request, stream=True, auth=None)

        shell = LibraryShell(self.library, client, request.extensions, self._settings.memory)
        chunks = run_exchange(relay, shell, raise_failures=True)
        head = next(chunks)
        assert isinstance(head, Respond)
        return self.library.build_response(head, self.stream_class(chunks), relay)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _get_client(self) -> Any:
        # SDK clients are shared by threads.
        with self._lock:
            if self._client is None:
                self._client = self.library.open_client(self._client_options)
            return self._client


class AsyncMethods(TransportOptions):
    """`handle_async_request` and `aclose` of a transport."""

    stream_class: ClassVar[type]

    async def handle_async_request(self, request: Any) -> Any:
        body: bytes = await request.aread()
        relay = self._settings.open(request.method, str(request.url), dict(request.headers), body)
        client = self._get_client()
        if relay is None:
            return await client.send(request, stream=True, auth=None)

        shell = AsyncLibraryShell(self.library, client, request.extensions, self._settings.memory)
        chunks = run_async_exchange(relay, shell, raise_failures=True)
        head = await anext(chunks)
        assert isinstance(head, Respond)
        return self.library.build_response(head, self.stream_class(chunks), relay)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _get_client(self) -> Any:
        if self._client is None:
            self._client = self.library.open_async_client(self._client_options)
        return self._client


class SyncChunks:
    """The body of a response in chunks; `close` cancels the request to the provider."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks

    def close(self) -> None:
        self._chunks.close()


class AsyncChunks:
    """The same for an event loop."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            if isinstance(chunk, bytes):
                yield chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()
