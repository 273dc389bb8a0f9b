"""`HttpShell`: runs relays with the HTTP client of the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from segue.bridge import aws
from segue.bridge.driver import UpstreamError
from segue.bridge.entries import AsyncEntries
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError
from segue.http_client import HttpClient, HttpResponse
from segue.runtime.threads import run_in_thread


class HttpUpstream:
    """A provider's response. `timeout` is the longest silence in seconds."""

    def __init__(self, response: HttpResponse, timeout: float) -> None:
        self.response = response
        self.timeout = timeout
        self.status = response.status
        self.headers = response.headers

    async def read(self) -> bytes:
        try:
            return await self.response.read()
        except TransportError as error:
            if error.kind == "timeout":
                raise _timeout_error(self.timeout) from None
            raise UpstreamError(error, error) from None

    async def close(self) -> None:
        self.response.close()


class HttpShell:
    """An `AsyncShell` of `segue.bridge.shell` that keeps its entries in `entries`."""

    def __init__(self, client: HttpClient, entries: AsyncEntries, *, timeout: float) -> None:
        self._client = client
        self._entries = entries
        self._timeout = timeout

    async def send(self, request: HttpRequest) -> HttpUpstream:
        try:
            async with asyncio.timeout(self._timeout):
                return HttpUpstream(await self._client.send(request, silence=self._timeout), self._timeout)
        except TimeoutError:
            raise _timeout_error(self._timeout) from None
        except TransportError as error:
            raise UpstreamError(error, error) from None

    async def authorize(self, signer: aws.CredentialSource) -> aws.Credentials:
        return await run_in_thread(signer.get)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]:
        return await self._entries.load(keys)

    async def save(self, entries: Mapping[str, bytes]) -> None:
        await self._entries.save(entries)

    async def delete(self, keys: Iterable[str]) -> None:
        await self._entries.delete(keys)


def _timeout_error(seconds: float) -> UpstreamError:
    error = TransportError("timeout", f"no data within {seconds:g} s")
    return UpstreamError(error, error)
