"""Compressed responses: none is requested, and none is accepted, by any of the HTTP clients."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from segue.bridge.content_encoding import find_encoding_error
from segue.errors import ProviderError
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.provider_client import ProviderClient, RetryPolicy
from segue.runtime.tool_types import Context, ToolError
from segue.runtime.tools.fetch import fetch_url
from tests.runtime.raw_server import RawServer, http_response, serve_raw
from tests.runtime.test_provider_client import make_endpoint, request_reply, run

BOMB = zlib.compress(b"\0" * 20_000_000, wbits=31)
MAX_PEAK = 3_000_000
ENCODINGS = ["gzip", "x-gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "gzip, identity", "gzip, gzip", "x"]


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Memory is measured without that of the libraries."""
    for name in ("aiohttp", "httpx2", "mcp"):
        importlib.import_module(name)


@pytest.mark.parametrize("value", ENCODINGS)
def test_encodings_are_refused(value: str) -> None:
    assert f"the content encoding {value.lower()}, which was not requested" in (find_encoding_error(value) or "")


@pytest.mark.parametrize("value", [None, "", " ", "identity", "Identity", "identity, identity", ","])
def test_no_encoding(value: str | None) -> None:
    assert find_encoding_error(value) is None


def test_error_text_is_short_and_printable() -> None:
    assert len(find_encoding_error("\x1b[31m\u202e" + "x" * 10_000) or "") < 120
    assert (find_encoding_error("\x1b[31m\u202e") or "").isprintable()


async def request_provider(server: RawServer) -> str:
    async with ProviderClient(retry_policy=RetryPolicy(3)) as client:
        endpoint = make_endpoint("openai-chat", server.url)
        probed = await client.probe(endpoint)
        assert "was not requested" in str(probed.error)
        server.heads.clear()
        with pytest.raises(ProviderError) as raised:
            await request_reply(client, endpoint)
    assert (raised.value.cause, len(server.heads)) == ("broken", 1)
    return str(raised.value)


async def request_page(server: RawServer) -> str:
    result: Any = fetch_url().run({"url": server.url}, Context(Path()))
    with pytest.raises(ToolError) as raised:
        await result
    return str(raised.value)


async def request_tools(server: RawServer) -> str:
    servers = McpServers(parse_servers({"trial": {"url": server.url}}), folder=Path())
    try:
        await servers.start()
        return "; ".join(servers.problems.values())
    finally:
        await servers.close()


CLIENTS = {"provider": request_provider, "fetch": request_page, "MCP": request_tools}


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_bomb_is_refused_unread(client: str, kind: str) -> None:
    response = http_response(BOMB, "content-encoding: gzip", kind=kind)

    async def play() -> tuple[RawServer, str, int]:
        async with serve_raw(response) as server:
            tracemalloc.start()
            try:
                text = await CLIENTS[client](server)
                return server, text, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    server, text, peak = run(play())
    assert "the content encoding gzip, which was not requested" in text
    assert server.header("accept-encoding") == "identity"
    assert peak < MAX_PEAK


def test_two_headers_are_one() -> None:
    async def play() -> None:
        response = http_response(gzip.compress(b"x"), "content-encoding: gzip", "content-encoding: identity")
        async with serve_raw(response) as server:
            for request in CLIENTS.values():
                assert "gzip, identity" in await request(server)

    run(play())


def test_status_of_an_encoded_error_counts() -> None:
    async def play() -> None:
        body = gzip.compress(b'{"error":{"message":"slow down"}}')
        response = http_response(body, "content-encoding: gzip", status="429 Too Many Requests")
        async with serve_raw(response) as server, ProviderClient(retry_policy=RetryPolicy(1)) as client:
            with pytest.raises(ProviderError) as raised:
                await request_reply(client, make_endpoint("openai-chat", server.url))
            assert (raised.value.cause, raised.value.status) == ("rate-limited", 429)
            assert "429 Too Many Requests, but the response has" in await request_page(server)

    run(play())


def test_an_encoding_of_nothing_is_none() -> None:
    async def play() -> Any:
        async with serve_raw(http_response(b"", "content-encoding: gzip")) as server:
            running: Any = fetch_url().run({"url": server.url}, Context(Path()))
            return await asyncio.ensure_future(running)

    assert run(play()).content == "[nothing]"
