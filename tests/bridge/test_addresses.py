"""Every notation of an address: an IPv4 address that is not public stays so inside any IPv6 address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.bridge.addresses import find_host_reach, find_reach, is_local, parse_host
from segue.runtime.tool_types import ToolError
from segue.runtime.tools.fetch import FetchedPage, fetch_url, normalize_url
from tests.budget import examples
from tests.runtime.tool_runner import RecordingApprover, run_with_approval

MACHINE = """127.0.0.1 127.255.255.254 0.0.0.0 ::1 :: ::1%lo ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:0:127.0.0.1
64:ff9b::127.0.0.1 64:ff9b:1::127.0.0.1 2002:7f00:1:: 2001:0:7f00:1:: 2001:0:808:808::80ff:fffe
fe80::5efe:127.0.0.1 2606:2800:220:1:200:5efe:127.0.0.1"""
PRIVATE = """10.0.0.1 172.16.5.5 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.255
192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255
240.0.0.1 255.255.255.255 0.1.2.3 fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 fec0::1 ff02::1
ff0e::1 2001:db8::1 3fff::1 100::1 5f00::1 4000::1 ::2 ::8.8.8.8 ::ffff:0:8.8.8.8
64:ff9b:1::8.8.8.8 64:ff9b:2::1 2001:0:808:808::1 2001:10::1 2001:20::1 64:ff9b::10.0.0.1
2002:a00:1:: ::ffff:192.168.0.1 2606:2800:220:1:0:5efe:10.0.0.1 e000::1"""
PUBLIC = """93.184.216.34 8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 198.20.0.1 223.255.255.255
2606:2800:220:1:248:1893:25c8:1946 2001:4860:4860::8888 2a00:1450::1 ::ffff:93.184.216.34
64:ff9b::8.8.8.8 2002:808:808:: 2606:2800:220:1:200:5efe:8.8.8.8"""


@pytest.mark.parametrize(
    ("address", "reach"),
    [(address, "machine") for address in MACHINE.split()]
    + [(address, "private") for address in PRIVATE.split()]
    + [(address, "public") for address in PUBLIC.split()],
)
def test_reach(address: str, reach: str) -> None:
    assert find_reach(address) == reach
    assert find_host_reach(address) == reach
    assert find_host_reach("example.com", [address]) == reach


def embed(ip: IPv4Address, prefix: str, shift: int = 0) -> IPv6Address:
    return IPv6Address(int(IPv6Address(prefix)) | int(ip) << shift)


EMBEDDINGS: dict[str, Any] = {
    "compatible": lambda ip: embed(ip, "::"),
    "mapped": lambda ip: embed(ip, "::ffff:0:0"),
    "SIIT": lambda ip: embed(ip, "::ffff:0:0:0"),
    "NAT64": lambda ip: embed(ip, "64:ff9b::"),
    "local NAT64": lambda ip: embed(ip, "64:ff9b:1::"),
    "6to4": lambda ip: embed(ip, "2002::", 80),
    "Teredo server": lambda ip: embed(ip, "2001::", 64),
    "Teredo client": lambda ip: embed(IPv4Address(~int(ip) & 0xFFFFFFFF), "2001:0:808:808::"),
    "ISATAP": lambda ip: embed(ip, "2a00:1450::5efe:0:0"),
    "ISATAP with a global bit": lambda ip: embed(ip, "2a00:1450::200:5efe:0:0"),
}
PRIVATE_NETWORKS = """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.2.0/24
192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"""


@st.composite
def private_addresses(draw: st.DrawFn) -> IPv4Address:
    network = IPv4Network(draw(st.sampled_from(PRIVATE_NETWORKS.split())))
    return network[draw(st.integers(0, network.num_addresses - 1))]


@settings(examples(1))
@given(ip=private_addresses(), notation=st.sampled_from([str, lambda ip: ip.exploded, lambda ip: f"{ip}%eth0"]))
def test_embedded_address_reaches_no_further(ip: IPv4Address, notation: Callable[[IPv6Address], str]) -> None:
    reach = find_reach(str(ip))
    assert reach == ("machine" if ip.is_loopback or ip.is_unspecified else "private")
    for name, embedding in EMBEDDINGS.items():
        outer = embedding(ip)
        assert find_reach(notation(outer)) == ("machine" if outer.is_loopback else reach), name


@settings(examples(1))
@given(ip=st.ip_addresses())
def test_public_addresses_are_public_for_the_standard_library(ip: Any) -> None:
    if find_reach(str(ip)) == "public":
        inner = getattr(ip, "ipv4_mapped", None) or ip
        assert inner.is_global
        assert not inner.is_multicast


@settings(examples(1))
@given(ip=st.ip_addresses(v=4), data=st.data())
def test_notations_of_an_ipv4_address(ip: IPv4Address, data: st.DataObject) -> None:
    """All notations that the system's library resolves to the address."""
    octets = ip.packed
    groups = [[octets[0], octets[1], octets[2], octets[3]], [octets[0], octets[1], int(ip) & 0xFFFF]]
    groups += [[octets[0], int(ip) & 0xFFFFFF], [int(ip)]]
    numbers = data.draw(st.sampled_from(groups))
    spelled = ".".join(data.draw(st.sampled_from([str(n), hex(n), f"0{n:o}", hex(n).upper()])) for n in numbers)
    assert socket.inet_aton(spelled) == octets
    assert parse_host(spelled) == parse_host(f"{spelled}.") == str(ip)
    address = str(ip)
    assert normalize_url(f"http://{spelled}/") == f"http://{address}/"
    assert is_local(f"http://{spelled}/") == (find_reach(address) == "machine")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://localhost./", True),
        ("http://LOCALHOST/", True),
        ("http://api.localhost/", True),
        ("http://127.1/", True),
        ("http://2130706433/", True),
        ("http://0x7f.1/", True),
        ("http://0.0.0.0:8000", True),
        ("http://[::127.0.0.1]/", True),
        ("http://[::ffff:0:127.0.0.1]/", True),
        ("http://[64:ff9b:1::127.0.0.1]/", True),
        ("http://127.example.com/", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://notlocalhost/", False),
        ("http://localhost.example.com/", False),
        ("http://192.168.1.1/", False),
        ("https://api.openai.com/v1", False),
        ("", False),
    ],
)
def test_urls_on_this_machine(url: str, local: bool) -> None:
    assert is_local(url) is local


@pytest.mark.parametrize(
    ("url", "normalized"),
    [
        ("http://2130706433/a", "http://127.0.0.1/a"),
        ("http://0x7f.1:8080/", "http://127.0.0.1:8080/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://127。0。0。1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://1.2.3.4.5/", "http://1.2.3.4.5/"),
    ],
)
def test_hosts_are_normalized(url: str, normalized: str) -> None:
    assert normalize_url(url) == normalized


def test_long_host_names_are_no_names() -> None:
    with pytest.raises(ToolError, match="is not a valid host name"):
        normalize_url(f"http://{'é' * 200_000}/")


@pytest.mark.parametrize("addresses", [("8.8.8.8", "10.0.0.1"), ("10.0.0.1", "8.8.8.8"), ("8.8.8.8", "::ffff:0:a00:1")])
def test_one_private_address_of_a_host_is_enough(addresses: tuple[str, ...], tmp_path: Any) -> None:
    approver = RecordingApprover("no")
    tool = fetch_url(look_up=lambda host, port: addresses)
    run_with_approval(tool, tmp_path, {"url": "http://mixed.example/"}, approver=approver, allow=["fetch_url"])
    assert "private network" in approver.questions[0].title


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "localhost.", "[::7f00:1]", "0177.1"])
def test_local_hosts_need_a_rule_whatever_they_resolve_to(host: str, tmp_path: Any) -> None:
    tool = fetch_url(look_up=lambda host, port: ("8.8.8.8",))
    assert "denied" in run_with_approval(tool, tmp_path, {"url": f"http://{host}/"}, allow=["fetch_url"])


@pytest.mark.parametrize("target", ["http://[::127.0.0.1]/x", "http://127.1/x", "http://a.localhost/x"])
def test_redirects_to_this_machine_are_not_followed(target: str, tmp_path: Any) -> None:
    fetched: list[str] = []

    async def fetch(request: Any) -> FetchedPage:
        fetched.append(request.url)
        return FetchedPage(302, {"location": target}, b"")

    tool = fetch_url(fetch, look_up=lambda host, port: ("8.8.8.8",))
    output = run_with_approval(tool, tmp_path, {"url": "http://host.example/"}, allow=["fetch_url"])
    assert output.startswith("the page redirects to another address: ")
    assert fetched == ["http://host.example/"]
