"""The one place that knows the HTTP client (docs/decisions/0008-http-client.md): a letter out, bytes in as they come.

Every way in which a connection can fail is a `TransportError`. What takes too long is the caller's business, but for
the time that a connection may take to be made.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.request import getproxies, proxy_bypass

from segue.runtime.letters import Letter
from segue.runtime.providers import is_local

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Http", "Response", "TransportError", "TransportFault"]

TransportFault = Literal[
    "connect",  # no connection could be made
    "late",  # no connection could be made in time
    "tls",  # the certificate does not hold
    "proxy",  # what stands between does not let it through
    "lost",  # the connection broke
    "garbled",  # what came is no HTTP
]
# Smaller pieces are put together, so that each is worth a packet of its own.
_PIECE = 1 << 16
_LINE = 1 << 17
_HEADERS = 512
_SCHEMES = ("http", "https")


class TransportError(Exception):
    """A connection that failed, in a few words."""

    def __init__(self, kind: TransportFault, said: str) -> None:
        super().__init__(said)
        self.kind: TransportFault = kind


class Response:
    """The head of an answer, and its body as it comes. `close` gives the connection up where the end was not seen."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}

    async def read(self) -> bytes:
        """What has come since, or comes next; nothing at the end."""
        try:
            return await self._answer.content.readany()
        except Exception as error:  # noqa: BLE001  whatever it is, the connection is of no more use
            self.close()
            raise _trouble(error) from None

    def close(self) -> None:
        # After the end the connection has gone back already, and this changes nothing.
        self._answer.close()


class Http:
    """Connections that are kept and used again. It belongs to one event loop; `close` it there."""

    def __init__(self, *, connect: float = 10.0) -> None:
        self._connect = connect
        self._session: aiohttp.ClientSession | None = None

    async def send(self, letter: Letter) -> Response:
        """Sends the letter, and waits for the head of the answer."""
        import aiohttp
        from yarl import URL

        session = self._opened()
        try:
            answer = await session.request(
                letter.method,
                URL(letter.url, encoded=True),
                headers=_told(letter),
                data=_body(letter.body),
                allow_redirects=False,
                **_proxied(letter.url),
            )
        except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise _trouble(error) from None
        return Response(answer)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect),
                max_line_size=_LINE,
                max_field_size=_LINE,
                max_headers=_HEADERS,
            )
        return self._session


def _told(letter: Letter) -> dict[str, str]:
    """Nothing is asked to be packed, so that a stream is read as it is written. The length is told in any case."""
    headers = {"accept-encoding": "identity", **letter.headers}
    if letter.body:
        headers["content-length"] = str(sum(map(len, letter.body)))
    return headers


def _body(pieces: Sequence[bytes]) -> bytes | AsyncIterator[bytes] | None:
    if not pieces:
        return None
    if sum(map(len, pieces)) <= _PIECE:
        return b"".join(pieces)
    return _blocks(pieces)


async def _blocks(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _proxied(url: str) -> dict[str, Any]:
    """The proxy that the environment names. Nobody stands between this machine and itself.

    The client could look by itself; it would then also put what it finds in ~/.netrc in the place of the key.
    """
    from yarl import URL

    place = URL(url, encoded=True)
    if is_local(url) or proxy_bypass(place.host or ""):
        return {}
    proxies = getproxies()
    named = proxies.get(place.scheme) or proxies.get("all")
    if not named:
        return {}
    proxy = URL(named if "://" in named else f"http://{named}")
    if proxy.scheme not in _SCHEMES:
        raise TransportError("proxy", f"proxies of the kind {proxy.scheme}:// are not spoken; set HTTPS_PROXY=http://…")
    return {"proxy": proxy}


def _trouble(error: Exception) -> TransportError:
    if isinstance(error, TransportError):
        return error
    for kinds, fault, words in _known():
        if isinstance(error, kinds):
            return TransportError(fault, words(error))
    return TransportError("garbled", _short(str(error) or type(error).__name__))


@cache
def _known() -> Sequence[tuple[type[Exception] | tuple[type[Exception], ...], TransportFault, Callable[[Any], str]]]:
    """The client's exceptions, the special before the general, and what to say of each."""
    import aiohttp

    right = "is HTTPS_PROXY right?"
    return (
        (aiohttp.ServerTimeoutError, "late", lambda error: "no connection was made in time"),
        (aiohttp.ClientConnectorCertificateError, "tls", lambda error: _certificate(error.certificate_error)),
        (aiohttp.ClientHttpProxyError, "proxy", lambda error: f"the proxy answered {error.status}; {right}"),
        (
            aiohttp.ClientProxyConnectionError,
            "proxy",
            lambda error: f"no connection to the proxy: {_words(error.os_error)}; {right}",
        ),
        (aiohttp.ClientConnectorDNSError, "connect", lambda error: f"there is no host {error.host}"),
        (
            aiohttp.ClientConnectorSSLError,
            "tls",
            lambda error: f"no secure connection to {error.host}: {_words(error.os_error)}",
        ),
        (
            aiohttp.ClientConnectorError,
            "connect",
            lambda error: f"no connection to {error.host}:{error.port}: {_words(error.os_error)}",
        ),
        ((aiohttp.InvalidURL, ValueError), "connect", lambda error: "that is no address"),
        (aiohttp.ClientResponseError, "garbled", lambda error: f"what came is no HTTP: {_short(error.message)}"),
        # A body in wrong pieces, or one that ended early: only the client's own words tell them apart.
        (aiohttp.ClientPayloadError, "lost", lambda error: "the connection was closed in the middle"),
        (aiohttp.ServerDisconnectedError, "lost", lambda error: "the connection was closed without an answer"),
        (ssl.SSLError, "tls", _words),
        (OSError, "lost", _words),
    )


def _certificate(error: Exception) -> str:
    said = getattr(error, "verify_message", None) or _words(error)
    return f"its certificate does not hold: {said}; if one of your own is meant, SSL_CERT_FILE names the file with it"


def _words(error: BaseException) -> str:
    """What the system says, in lower case and without its numbers."""
    if isinstance(error, ssl.SSLError):
        text = error.reason or str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        text = os.strerror(error.errno)
    else:
        text = str(error) or type(error).__name__
    text = _short(text)
    return text[:1].lower() + text[1:]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line[:100] + "…" if len(line) > 100 else line
