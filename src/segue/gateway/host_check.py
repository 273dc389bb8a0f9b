"""`HostCheck`: which requests are let in, by host and origin.

A web page in the user's browser can reach a server on loopback, by a name that resolves to it or by a request from a
foreign page. So a `Host` that is neither loopback nor configured is refused, and so is any foreign `Origin`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from segue.bridge.addresses import is_local
from segue.errors import InputError

_HOST = re.compile(r"(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+")
# RFC 6454: scheme, host and port alone. A browser leaves out the port that the scheme has anyway.
_ORIGIN = re.compile(
    r"(?!(?i:http://[^/]*:80/?$|https://[^/]*:443/?$))[A-Za-z][A-Za-z0-9+.-]*://"
    r"(?:(?:[A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?/?"
)


class Refusal(Struct, frozen=True):
    """Why a request is not let in."""

    status: int
    message: str
    reason: str


class HostCheck:
    """Checks requests before they are read. `hosts` are names besides loopback; `origins` those of allowed pages."""

    def __init__(self, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, headers: Mapping[str, str]) -> Refusal | None:
        """Return the refusal of a request by its headers; None if it is let in."""
        host = _host_name(headers.get("host", ""))
        if host is None or not (host in self._hosts or is_local(f"http://{bracket(host)}")):
            return Refusal(421, f"the host {headers.get('host', '')!r} is not served here", "host")
        origin = headers.get("origin")
        if origin is not None and origin.lower().rstrip("/") not in self._origins:
            return Refusal(403, f"requests from {origin!r} are not allowed", "origin")
        return None


def _host_name(value: str) -> str | None:
    try:
        return urlsplit(f"//{value}").hostname
    except ValueError:
        return None


def bracket(host: str) -> str:
    """Return a host as it is in a URL."""
    return f"[{host}]" if ":" in host else host


def find_host_error(host: str) -> str | None:
    """Return why a name or an address of a host is not valid; None if it is."""
    if _HOST.fullmatch(host) or _is_address(host):
        return None
    name = _host_name(host.rpartition("://")[2])
    if name and (_HOST.fullmatch(name) or _is_address(name)):
        return f"{host!r} is more than a host name; write {name!r}"
    with suppress(UnicodeError):
        if name and _HOST.fullmatch(encoded := name.encode("idna").decode()):
            return f"clients send {host!r} as {encoded!r}; write that"
    return f"{host!r} is not a host name"


def check_names(hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Raise `InputError` for hosts and origins that no request can match, and for wildcards."""
    for index, host in enumerate(hosts):
        path = f"gateway.allowed_hosts[{index}]"
        if host == "*":
            why = "a web page could point its own domain at this machine and so reach the gateway"
            raise InputError(f"'*' is not allowed: {why}; write the names in the URLs of your clients", path=path)
        if "*" in host:
            raise InputError(f"{host!r}: wildcards are not supported; write each name", path=path)
        if not host.strip():
            raise InputError("is empty; write a name in the URLs of your clients, or remove it", path=path)
        if (problem := find_host_error(host)) is not None:
            raise InputError(problem, path=path)
    for index, origin in enumerate(origins):
        path = f"gateway.allowed_origins[{index}]"
        if origin in ("*", "null"):
            why = "any web page could send requests to the gateway, and read the replies"
            raise InputError(f"{origin!r} is not allowed: {why}; write the origins of your pages", path=path)
        if "*" in origin:
            raise InputError(f"{origin!r}: wildcards are not supported; write each origin", path=path)
        if not _ORIGIN.fullmatch(origin):
            what = f"{origin!r} is not an origin" if origin.strip() else "is empty; write an origin"
            raise InputError(f"{what} as browsers send it, such as 'https://ui.example.com'", path=path)


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
