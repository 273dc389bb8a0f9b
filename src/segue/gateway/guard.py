"""The guard of a gateway: which requests are let in, by host, origin and client key.

A web page in the user's browser can reach a server on loopback, by a name that resolves to it or by a request from a
foreign page. So a `Host` that is neither loopback nor configured is refused, and so is any foreign `Origin`.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from segue.bridge.addresses import is_local

KEY_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


class Refusal(Struct, frozen=True):
    """Why a request is not let in."""

    status: int
    message: str


class Guard:
    """Checks requests before they are read. `hosts` are names besides loopback; `origins` those of allowed pages."""

    def __init__(self, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, headers: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a request by its headers; None if it is let in."""
        host = _host_name(headers.get("host", ""))
        if host is None or not (host in self._hosts or is_local(f"http://{_bracket(host)}")):
            return Refusal(421, f"the host {headers.get('host', '')!r} is not served here")
        origin = headers.get("origin")
        if origin is not None and origin.lower().rstrip("/") not in self._origins:
            return Refusal(403, f"requests from {origin!r} are not allowed")
        return None


def _host_name(value: str) -> str | None:
    try:
        return urlsplit(f"//{value}").hostname
    except ValueError:
        return None


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def find_keys(headers: Mapping[str, str], query: str) -> tuple[str, ...]:
    """Return the keys of a request, wherever the APIs have them: of a client, and of its vendor beside it."""
    found = [headers[name].strip() for name in KEY_HEADERS if headers.get(name)]
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(token.strip())
    found += parse_qs(query).get("key", ())
    return tuple(dict.fromkeys(key for key in found if key))


def has_secret(given: Iterable[str], expected: str) -> bool:
    """Return whether a secret is among these; each is compared in constant time."""
    return any(hmac.compare_digest(secret.encode(), expected.encode()) for secret in given)
