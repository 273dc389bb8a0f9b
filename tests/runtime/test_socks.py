"""Requests through a SOCKS proxy, by the extra `socks`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from segue.bridge.http_requests import HttpRequest
from segue.bridge.provider_errors import TransportError
from segue.http_client import HttpClient
from tests.runtime.raw_server import http_response, serve_raw

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NO_PROXY", "no_proxy")


@asynccontextmanager
async def serve_socks(target: str) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A SOCKS5 proxy that connects every client to `target`; yields its address and the requested names."""
    host, port = target.removeprefix("http://").split("/")[0].split(":")
    requested: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        assert kind == 3, "a name was expected"
        [size] = await reader.readexactly(1)
        requested.append(await reader.readexactly(size))
        await reader.readexactly(2)
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        their_reader, their_writer = await asyncio.open_connection(host, int(port))
        their_writer.write(await reader.readuntil(b"\r\n\r\n"))
        writer.write(await their_reader.readuntil(b"\r\n\r\n") + await their_reader.readexactly(2))
        await writer.drain()
        for each in (writer, their_writer):
            each.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", requested


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


async def fetch(url: str) -> bytes:
    client = HttpClient()
    try:
        response = await client.send(HttpRequest("GET", url, {}))
        return await response.read()
    finally:
        await client.close()


def test_request_goes_through_the_proxy_that_resolves_the_name(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("aiohttp_socks")

    async def play() -> tuple[bytes, list[bytes]]:
        async with serve_raw(http_response(b"{}")) as server, serve_socks(server.url) as (address, requested):
            monkeypatch.setenv("ALL_PROXY", f"socks5h://{address}")
            return await fetch("http://models.example/v1/models"), requested

    assert asyncio.run(play()) == (b"{}", [b"models.example"])


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "aiohttp_socks", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(TransportError, match=r"socks5:// proxies need the extra socks: pip install 'segue\[socks\]'"):
        asyncio.run(fetch("http://models.example/v1/models"))


def test_local_server_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch):
    async def play() -> bytes:
        async with serve_raw(http_response(b"{}")) as server:
            monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
            return await fetch(server.url)

    assert asyncio.run(play()) == b"{}"
