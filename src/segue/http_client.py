"""`HttpClient`: sends requests and streams responses. The only module that uses the HTTP library, aiohttp.

Every connection failure is raised as `TransportError`. The choice of the library is explained in
docs/decisions/0008-http-client.md.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.request import getproxies, proxy_bypass

from segue.bridge.addresses import is_local
from segue.bridge.content_encoding import ACCEPT_ENCODING, find_encoding_error
from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError, TransportErrorKind

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

# Smaller fragments of a body are joined, so that each write fills a packet.
_CHUNK = 1 << 16
_MAX_LINE = 1 << 17
_MAX_HEADERS = 512
_SCHEMES = ("http", "https")
_SOCKS = "socks"
_SOCKS_NAMES = {"socks4a": "socks4", "socks5h": "socks5"}
_SOCKS_SCHEMES = ("socks4", "socks4a", "socks5", "socks5h")
_Received = TypeVar("_Received")


class HttpResponse:
    """Status, headers and streamed body of a response. `close` drops the connection if the body was not fully read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.header_items = tuple((name.lower(), value) for name, value in response.headers.items())
        """All headers in order; a name can occur more than once."""
        self.headers: Mapping[str, str] = dict(self.header_items)
        self._encoding_error = find_encoding_error(", ".join(response.headers.getall("content-encoding", ())))

    async def read(self) -> bytes:
        """Return the next bytes of the body; empty at the end."""
        return await self._receive(self._response.content.readany)

    async def read_chunk(self) -> tuple[bytes, bool]:
        """Return the next bytes of the body, and whether a chunk of a chunked response ends with them.

        The bytes of a chunk are returned as they arrive. At the end of the body there are no bytes and no chunk ends.
        """
        return await self._receive(self._response.content.readchunk)

    async def _receive(self, read: Callable[[], Awaitable[_Received]]) -> _Received:
        if self._encoding_error is not None:
            self.close()
            raise TransportError("encoding", self._encoding_error)
        try:
            return await read()
        except Exception as error:  # noqa: BLE001  after any error the connection can't be used any more
            self.close()
            raise _to_transport_error(error) from None

    def close(self) -> None:
        # At the end of the body the connection is back in the pool already; then this does nothing.
        self._response.close()


class HttpClient:
    """An HTTP client with pooled connections. It belongs to one event loop; `close` it there."""

    def __init__(self, *, connect_timeout: float = 10.0) -> None:
        self._connect_timeout = connect_timeout
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        """A session for each SOCKS proxy; `""` is the one for all other requests."""

    async def send(
        self, request: HttpRequest, body: AsyncIterator[bytes] | None = None, *, silence: float | None = None
    ) -> HttpResponse:
        """Send the request, and wait for the response headers. `body` is sent in place of that of the request.

        `silence` is the longest time in seconds between two reads from the connection; other timeouts are the caller's.
        """
        import aiohttp

        options = _proxy_options(request.url)
        socks_proxy = options.pop(_SOCKS, "")
        session = self._get_session(socks_proxy)
        deadline = asyncio.timeout(request.first_byte)
        try:
            async with deadline:
                response = await session.request(
                    request.method,
                    _parse_url(request.url),
                    headers=_request_headers(request),
                    data=_request_body(request.body) if body is None else body,
                    allow_redirects=False,
                    timeout=_client_timeout(self._connect_timeout, silence),
                    **options,
                )
        except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            if deadline.expired():
                raise TransportError("timeout", f"no response within {request.first_byte:g} s") from None
            raise _to_transport_error(error) from None
        except Exception as error:
            if not socks_proxy:
                raise
            # The errors of the library have no common base with those of aiohttp.
            scheme, why = socks_proxy.partition(":")[0], _shorten(str(error) or type(error).__name__)
            raise TransportError("proxy", f"the {scheme}:// proxy failed: {why}; check ALL_PROXY") from None
        return HttpResponse(response)

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _get_session(self, socks_proxy: str) -> aiohttp.ClientSession:
        import aiohttp

        if socks_proxy not in self._sessions:
            self._sessions[socks_proxy] = aiohttp.ClientSession(
                connector=_make_socks_connector(socks_proxy) if socks_proxy else aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_MAX_LINE,
                max_field_size=_MAX_LINE,
                max_headers=_MAX_HEADERS,
                auto_decompress=False,
            )
        return self._sessions[socks_proxy]


def _make_socks_connector(proxy: str) -> aiohttp.BaseConnector:
    """Return a connector through a SOCKS proxy, by the package aiohttp-socks (extra `socks`)."""
    try:
        library: Any = import_module("aiohttp_socks")
    except ImportError:
        scheme = proxy.partition(":")[0]
        raise TransportError("proxy", f"{scheme}:// proxies need the extra socks: pip install 'segue[socks]'") from None
    # The library resolves names at the proxy by `rdns`, and does not accept the scheme for it.
    scheme, rest = proxy.split("://", 1)
    try:
        return library.ProxyConnector.from_url(
            f"{_SOCKS_NAMES.get(scheme, scheme)}://{rest}", rdns=scheme in _SOCKS_NAMES, limit=0
        )
    except ValueError:
        raise TransportError("proxy", "the address of the SOCKS proxy is not valid; check ALL_PROXY") from None


@lru_cache(maxsize=64)
def _client_timeout(connect: float, silence: float | None) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence)


def _request_headers(request: HttpRequest) -> dict[str, str]:
    headers = {**request.headers, **ACCEPT_ENCODING}
    if request.body:
        headers["content-length"] = str(sum(map(len, request.body)))
    return headers


def _request_body(fragments: Sequence[bytes]) -> bytes | AsyncIterator[bytes] | None:
    if not fragments:
        return None
    if sum(map(len, fragments)) <= _CHUNK:
        return b"".join(fragments)
    return _iter_chunks(fragments)


async def _iter_chunks(fragments: Sequence[bytes]) -> AsyncIterator[bytes]:
    buffered: list[bytes] = []
    size = 0
    for fragment in fragments:
        buffered.append(fragment)
        size += len(fragment)
        if size >= _CHUNK:
            yield b"".join(buffered)
            buffered, size = [], 0
    if buffered:
        yield b"".join(buffered)


@lru_cache(maxsize=64)
def _parse_url(url: str) -> URL:
    from yarl import URL

    return URL(url, encoded=True)


def _proxy_options(url: str) -> dict[str, Any]:
    """Return the proxy configured in the environment; none for local URLs. A SOCKS proxy is its address as text.

    aiohttp's own `trust_env` is not used: it would also replace the API key by credentials from ~/.netrc.
    """
    from yarl import URL

    if is_local(url):
        return {}
    target = _parse_url(url)
    if proxy_bypass(target.host or ""):
        return {}
    proxies = getproxies()
    configured = proxies.get(target.scheme) or proxies.get("all")
    if not configured:
        return {}
    proxy = URL(configured if "://" in configured else f"http://{configured}")
    if proxy.scheme in _SOCKS_SCHEMES:
        return {_SOCKS: configured}
    if proxy.scheme not in _SCHEMES:
        raise TransportError("proxy", f"{proxy.scheme}:// proxies are not supported; set HTTPS_PROXY=http://…")
    return {"proxy": proxy}


def _to_transport_error(error: Exception) -> TransportError:
    if isinstance(error, TransportError):
        return error
    for types, kind, describe in _error_table():
        if isinstance(error, types):
            return TransportError(kind, describe(error))
    return TransportError("invalid", _shorten(str(error) or type(error).__name__))


@cache
def _error_table() -> Sequence[
    tuple[type[Exception] | tuple[type[Exception], ...], TransportErrorKind, Callable[[Any], str]]
]:
    """aiohttp's exceptions, subclasses before their bases, with the kind and message for each."""
    import aiohttp

    hint = "check HTTPS_PROXY"
    return (
        (aiohttp.ServerTimeoutError, "timeout", lambda error: "the connection timed out"),
        (
            aiohttp.ClientConnectorCertificateError,
            "tls",
            lambda error: _certificate_error_text(error.certificate_error),
        ),
        (aiohttp.ClientHttpProxyError, "proxy", lambda error: f"the proxy returned {error.status}; {hint}"),
        (
            aiohttp.ClientProxyConnectionError,
            "proxy",
            lambda error: f"can't connect to the proxy: {_system_error_text(error.os_error)}; {hint}",
        ),
        (aiohttp.ClientConnectorDNSError, "connect", lambda error: f"unknown host {error.host}"),
        (
            aiohttp.ClientConnectorSSLError,
            "tls",
            lambda error: f"TLS connection to {error.host} failed: {_system_error_text(error.os_error)}",
        ),
        (
            aiohttp.ClientConnectorError,
            "connect",
            lambda error: f"can't connect to {error.host}:{error.port}: {_system_error_text(error.os_error)}",
        ),
        ((aiohttp.InvalidURL, ValueError), "connect", lambda error: "not a valid URL"),
        (aiohttp.ClientResponseError, "invalid", lambda error: f"not a valid HTTP response: {_shorten(error.message)}"),
        # Wrong chunked encoding, or a body that ended early: aiohttp distinguishes them by message only.
        (aiohttp.ClientPayloadError, "lost", lambda error: "the connection was closed before the end of the response"),
        (aiohttp.ServerDisconnectedError, "lost", lambda error: "the connection was closed without a response"),
        (ssl.SSLError, "tls", _system_error_text),
        (OSError, "lost", _system_error_text),
    )


def _certificate_error_text(error: Exception) -> str:
    reason = getattr(error, "verify_message", None) or _system_error_text(error)
    return f"certificate verification failed: {reason}; for a private CA set SSL_CERT_FILE to its certificate file"


def _system_error_text(error: BaseException) -> str:
    """Return the system's error message, beginning in lower case and without the error number."""
    if isinstance(error, ssl.SSLError):
        text = error.reason or str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        text = os.strerror(error.errno)
    else:
        text = str(error) or type(error).__name__
    text = _shorten(text)
    return text[:1].lower() + text[1:]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line[:100] + "…" if len(line) > 100 else line
