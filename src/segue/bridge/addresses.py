"""IP addresses and host names by their reach: this machine, a private network, or the public internet.

An IPv6 address that embeds an IPv4 address reaches at most as far as that one, whatever the notation. Only networks
that IANA assigned to the public internet are public, so an address of an unassigned network is private.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

Reach: TypeAlias = Literal["machine", "private", "public"]

_LOCALHOST = "localhost"
# The special-purpose registries of IANA (RFC 6890), without the networks that are reached from everywhere.
_PRIVATE_IPV4 = tuple(
    IPv4Network(network)
    for network in [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ]
)
_LOOPBACK_IPV4 = IPv4Network("127.0.0.0/8")
_ASSIGNED_IPV6 = IPv6Network("2000::/3")
_PRIVATE_IPV6 = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))

_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIXTOFOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
# Networks whose addresses embed an IPv4 address, and the number of bits that follow it.
_EMBEDDINGS = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (_MAPPED, 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),  # SIIT
    (_NAT64, 0),
    (IPv6Network("64:ff9b:1::/48"), 0),  # local NAT64 (RFC 8215)
    (_SIXTOFOUR, 80),
    (_TEREDO, 64),
)
# Networks of gateways: the embedded address alone decides.
_GATEWAYS = (_MAPPED, _NAT64, _SIXTOFOUR)
# The bits before the IPv4 address in the interface id of an ISATAP address.
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_MASK_32 = 0xFFFF_FFFF


def find_reach(address: str) -> Reach:
    """Return how far an IP address reaches; `ValueError` if it is none. A zone id is ignored."""
    ip = ip_address(address.partition("%")[0])
    return _ipv4_reach(ip) if isinstance(ip, IPv4Address) else _ipv6_reach(ip)


def _ipv4_reach(ip: IPv4Address) -> Reach:
    # The unspecified address connects to this machine.
    if ip in _LOOPBACK_IPV4 or int(ip) == 0:
        return "machine"
    return "private" if any(ip in network for network in _PRIVATE_IPV4) else "public"


def _ipv6_reach(ip: IPv6Address) -> Reach:
    if int(ip) <= 1:
        return "machine"
    is_assigned = ip in _ASSIGNED_IPV6 and not any(ip in network for network in _PRIVATE_IPV6)
    own: Reach = "public" if is_assigned or any(ip in network for network in _GATEWAYS) else "private"
    return _shortest([own, *map(_ipv4_reach, _iter_embedded(ip))])


def _shortest(reaches: Iterable[Reach]) -> Reach:
    found = set(reaches)
    return "machine" if "machine" in found else "private" if "private" in found else "public"


def _iter_embedded(ip: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address embeds, in each notation that fits."""
    number = int(ip)
    for network, shift in _EMBEDDINGS:
        if ip in network:
            yield IPv4Address(number >> shift & _MASK_32)
    if ip in _TEREDO:
        # The client; above it is the server.
        yield IPv4Address(~number & _MASK_32)
    if number >> 32 & _MASK_32 in _ISATAP:
        yield IPv4Address(number & _MASK_32)


def parse_host(host: str) -> str | None:
    """Return the IP address that a URL's host denotes, in its usual notation; None for a name.

    IPv4 addresses may be short, decimal, octal or hexadecimal, as system libraries accept them: `127.1`, `0x7f000001`.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    text = host.removesuffix(".")
    # inet_aton ignores what follows a blank.
    if not text.isascii() or not text[:1].isdigit() or any(char.isspace() for char in text):
        return None
    try:
        return str(IPv4Address(socket.inet_aton(text)))
    except OSError:
        return None


def find_host_reach(host: str, addresses: Iterable[str] = ()) -> Reach:
    """Return the shortest reach of a host: of its name, and of each IP address that it was resolved to.

    A name without addresses counts as public, unless it is reserved for this machine.
    """
    name = host.rstrip(".").lower()
    if name == _LOCALHOST or name.endswith(f".{_LOCALHOST}"):
        return "machine"
    literal = parse_host(host)
    return _shortest(map(find_reach, addresses if literal is None else (*addresses, literal)))


@lru_cache(maxsize=64)
def is_local(url: str) -> bool:
    """Return whether a URL is on this machine."""
    return find_host_reach(urlsplit(url).hostname or "") == "machine"
