"""A recording proxy for one API: sends each request to the real provider and stores the exchange without its secrets.

The client gets the provider's status, headers and body unchanged, as they arrive. An exchange is stored before the
client gets the end of the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec import UNSET

from segue.bridge.addresses import is_local
from segue.bridge.content_encoding import find_encoding_error
from segue.bridge.http_requests import HttpRequest as UpstreamRequest
from segue.bridge.provider_errors import TransportError
from segue.emulator.http_messages import (
    CONNECTION_HEADERS,
    MAX_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    RecordedRequest,
    RequestLog,
)
from segue.emulator.providers.provider import Provider
from segue.emulator.recording_secrets import SecretRemover
from segue.emulator.recordings import Recording, RecordingFolder, ResponsePart, encode_piece
from segue.errors import InputError, format_os_error, require_string, unknown_name_error
from segue.http_client import HttpClient
from segue.http_client import HttpResponse as UpstreamResponse
from segue.wire.base import ApiError


@dataclass(frozen=True)
class Upstream:
    """A base URL. One that is given for all APIs gets the prefix of a request too."""

    base_url: str
    with_prefix: bool = False

    def build_url(self, http_request: HttpRequest) -> str:
        """Return the URL of a request, escaped as the client sent it."""
        path = http_request.raw_path
        if not self.with_prefix:
            path = path.removeprefix(http_request.prefix)
        query = f"?{http_request.raw_query}" if http_request.raw_query else ""
        return _join_paths(self.base_url, path) + query


def _join_paths(base_url: str, path: str) -> str:
    """Join them without repeating the end of the base URL, as in `https://host/v1` and `/v1/messages`."""
    segments = urlsplit(base_url).path.split("/")[1:]
    for start in range(len(segments)):
        end = "/" + "/".join(segments[start:])
        if path == end or path.startswith(f"{end}/"):
            return base_url + path[len(end) :]
    return base_url + path


def parse_upstreams(value: str | Mapping[str, str] | None, apis: Sequence[str]) -> dict[str, Upstream]:
    """Return the upstream of each API. A single URL is that of all of them."""
    if value is None:
        raise InputError("the URL of the real provider is needed with `record`", path="upstream")
    if isinstance(value, Mapping):
        for api in value:
            if api not in apis:
                raise unknown_name_error("API", api, apis, path="upstream")
        if not value:
            raise InputError("the URL of at least one API is needed", path="upstream")
        return {api: Upstream(_check_url(url)) for api, url in value.items()}
    url = _check_url(value)
    return {api: Upstream(url, with_prefix=len(apis) > 1) for api in apis}


def _check_url(url: str) -> str:
    """Return the URL without a final slash. Keys are sent there: only over TLS, or on this machine."""
    require_string(url, "upstream")
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid, parts = False, urlsplit("")
    if not is_valid or any(char.isspace() or not char.isprintable() for char in url):
        raise InputError("a URL such as https://api.example.com was expected", path="upstream")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError("a URL without user name, query and fragment was expected", path="upstream")
    if parts.scheme == "http" and not is_local(url):
        raise InputError("http is allowed for this machine only; use https", path="upstream")
    return url.rstrip("/")


class _Exchange:
    """One exchange in progress: the request, and the response as far as it was received."""

    def __init__(self, http_request: HttpRequest, record: RecordedRequest, number: int) -> None:
        self.secrets = SecretRemover(http_request)
        self.request = self.secrets.clean_request(http_request)
        self.record = record
        self.number = number
        self.is_stored = False
        self._chunks: list[bytearray] = []
        self._is_open = False
        self._received = 0

    def add(self, data: bytes, *, ends_chunk: bool) -> None:
        self._received += len(data)
        if self._is_open:
            self._chunks[-1] += data
        elif data:
            self._chunks.append(bytearray(data))
        self._is_open = not ends_chunk and bool(self._chunks)

    def has_received(self, length: str | None) -> bool:
        """Return whether this content length is reached."""
        return length is not None and length.isdigit() and self._received >= int(length)

    def read_response(self, upstream: UpstreamResponse, *, is_broken: bool) -> ResponsePart:
        """Return the response as it is stored."""
        is_chunked = "chunked" in upstream.headers.get("transfer-encoding", "").lower()
        chunks = list(map(bytes, self._chunks)) if is_chunked else [b"".join(self._chunks)]
        pieces = [encode_piece(chunk) for chunk in self.secrets.clean_chunks(chunks) if chunk]
        return ResponsePart(
            upstream.status,
            self.secrets.clean_response_headers(upstream.header_items),
            body=UNSET if is_chunked else pieces[0] if pieces else "",
            chunks=pieces if is_chunked else UNSET,
            broken=is_broken,
        )


class Recorder:
    """Passes the requests of one API on to its upstream; without one, they are rejected."""

    def __init__(
        self,
        provider: Provider,
        upstream: Upstream | None,
        folder: RecordingFolder,
        client: HttpClient,
        log: RequestLog,
    ) -> None:
        self.provider = provider
        self._upstream = upstream
        self._folder = folder
        self._client = client
        self._log = log

    @property
    def max_body_bytes(self) -> int:
        return MAX_BODY_BYTES

    async def handle(self, http_request: HttpRequest) -> HttpResponse:
        record = self._log.open(self.provider.api, http_request)
        exchange = _Exchange(http_request, record, self._folder.next_number())
        record.path = exchange.request.path
        record.describe(exchange.request.body.json)
        if self._upstream is None:
            error = ApiError(404, f"no upstream is given for {self.provider.api}", "not_found_error")
            return self._refuse(error, http_request, record)
        headers = {name: value for name, value in http_request.headers.items() if name not in CONNECTION_HEADERS}
        url = self._upstream.build_url(http_request)
        body = (http_request.body,) if http_request.body else ()
        try:
            upstream = await self._send(UpstreamRequest(http_request.method, url, headers, body), record)
            encoding_error = find_encoding_error(upstream.headers.get("content-encoding"))
            if encoding_error is not None:
                upstream.close()
                raise TransportError("encoding", encoding_error)
        except TransportError as error:
            status = 504 if error.kind == "timeout" else 502
            return self._refuse(ApiError(status, f"the upstream failed: {error}", "api_error"), http_request, record)
        response = HttpResponse(
            upstream.status,
            b"",
            content_type=None,
            headers=[pair for pair in upstream.header_items if pair[0] not in CONNECTION_HEADERS],
        )
        length = upstream.headers.get("content-length", "")
        response.declared_length = int(length) if length.isdigit() else None
        response.content = self._pass_on(upstream, exchange, response)
        return response

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, request: UpstreamRequest, record: RecordedRequest) -> UpstreamResponse:
        try:
            return await self._client.send(request)
        except asyncio.CancelledError:
            record.unrecorded = "the client disconnected before the response"
            self._log.close(record)
            raise

    def _refuse(self, error: ApiError, http_request: HttpRequest, record: RecordedRequest) -> HttpResponse:
        response = self.provider.make_error_response(error, http_request, record)
        self._log.close(record)
        return response

    async def _pass_on(
        self, upstream: UpstreamResponse, exchange: _Exchange, response: HttpResponse
    ) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives, and store the exchange before its last bytes."""
        length = upstream.headers.get("content-length")
        is_broken = True
        try:
            while True:
                data, ends_chunk = await upstream.read_chunk()
                if not data and not ends_chunk:
                    break
                exchange.add(data, ends_chunk=ends_chunk)
                if exchange.has_received(length):
                    self._store(exchange, upstream, is_broken=False)
                if data:
                    yield data
            is_broken = False
        except TransportError:
            response.reset = True
        finally:
            upstream.close()
            self._store(exchange, upstream, is_broken=is_broken)

    def _store(self, exchange: _Exchange, upstream: UpstreamResponse, *, is_broken: bool) -> None:
        if exchange.is_stored:
            return
        exchange.is_stored = True
        record = exchange.record
        response = exchange.read_response(upstream, is_broken=is_broken)
        record.status, record.streamed = response.status, response.chunks is not UNSET
        recording = Recording(1, self.provider.api, exchange.request, response)
        try:
            record.recording = self._folder.store(exchange.number, recording)
        except OSError as error:
            record.unrecorded = format_os_error(error)
        self._log.close(record)
