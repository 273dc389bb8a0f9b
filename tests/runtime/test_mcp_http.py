"""Responses of MCP servers by HTTP that are refused: the error of the call has the reason."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.runtime import mcp_http
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.tool_types import Context, ToolError

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "trial", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "x" * 5_000}]},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.respond(405, b"")

    def do_DELETE(self) -> None:
        self.respond(405, b"")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method")
        if "id" not in message:
            self.respond(202, b"")
            return
        reply = {"result": RESULTS[method]} if method in RESULTS else {"error": {"code": -32601, "message": "unknown"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode()
        if "deep" in self.path and method == "tools/list":
            deep = b'{"name": "deep", "inputSchema": %s}' % (b'{"not":' * 900 + b"{}" + b"}" * 900)
            body = body.replace(b'"tools": [', b'"tools": [%s, ' % deep)
        headers = {"Content-Encoding": "gzip"} if (self.path, method) == ("/gzip", "tools/call") else {}
        if self.path.startswith("/events"):
            headers["Content-Type"] = "text/event-stream"
            body = b"event: message\r\ndata: %s\r\n\r\n" % body
        self.respond(200, body, **headers)

    def respond(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def call(url: str) -> Any:
    servers = McpServers(parse_servers({"trial": {"url": url}}), folder=Path())
    try:
        await servers.start()
        running: Any = servers.tools()[0].run({}, Context(Path()))
        return await running
    finally:
        await servers.close()


def test_a_compressed_response_is_named_as_the_cause(site: str) -> None:
    with pytest.raises(ToolError, match=r"^trial: the response has the content encoding gzip"):
        asyncio.run(call(f"{site}/gzip"))


def test_the_size_of_an_event_is_limited(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setitem(RESULTS, "tools/call", {"content": [{"type": "text", "text": "x" * 2_000_000}]})
        assert "characters left out" in str(asyncio.run(call(f"{site}/events")).content)
    monkeypatch.setattr(mcp_http, "_MAX_BYTES", 4_000)
    with pytest.raises(ToolError, match=r"^trial: the event is larger than 4,000 bytes; the next call connects again"):
        asyncio.run(call(f"{site}/events"))


@pytest.mark.parametrize("path", ["/deep", "/events/deep"])
def test_a_tool_that_is_nested_too_deeply_costs_that_tool(site: str, path: str) -> None:
    async def list_tools() -> tuple[list[str], dict[str, str], dict[str, str]]:
        servers = McpServers(parse_servers({"trial": {"url": f"{site}{path}"}}), folder=Path())
        try:
            await servers.start()
            return [tool.name for tool in servers.tools()], servers.problems, servers.left_out
        finally:
            await servers.close()

    names, problems, left_out = asyncio.run(list_tools())
    assert (names, problems) == (["trial__t"], {})
    assert "nested more than 500 levels deep" in left_out["trial"]


def parse_events(data: bytes) -> list[httpx2.ServerSentEvent]:
    request = httpx2.Request("GET", "http://x")
    headers = {"content-type": "text/event-stream"}
    return list(httpx2.EventSource(httpx2.Response(200, headers=headers, content=data, request=request)))


LINES = [
    "data: {}",
    "data:x",
    "data",
    "unknown: x",
    'data: {"id": 1, "result": null}',
    "event: message",
    "id: 5",
    ": comment",
    "",
    "",
    "retry: 5",
]


@given(
    st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(["\r\n", "\n", "\r"])), max_size=12),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_events_are_the_same_in_any_chunks(lines: list[tuple[str, str]], cuts: list[int]) -> None:
    """The SDK's own parser is the oracle. Only line ends in data and the response that it would refuse differ."""
    data = "".join(line + end for line, end in [*lines, ("", "\n"), ("", "\n")]).encode()
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = mcp_http._EventReader()
    parts = [reader.read(data[start:end]) for start, end in pairwise(bounds)]
    read = parse_events(b"".join([*parts, reader.finish()]))
    expected = parse_events(data)
    assert len(read) == len(expected)
    for event, original in zip(read, expected, strict=True):
        assert (event.event, event.id, event.retry) == (original.event, original.id, original.retry)
        if "segue/text" not in event.data:
            assert event.data.split() == original.data.split()
        else:
            assert json.loads(event.data)["result"]["segue/text"] in original.data


@pytest.mark.parametrize(
    "lines", [b"a\n", b"data:a\n", b"id:\r", b"\ndata:", b":\n"], ids=["unknown", "data", "ids", "events", "comments"]
)
def test_an_event_of_many_lines_is_read_in_compact_memory(lines: bytes) -> None:
    chunk = lines * (10_000 // len(lines))
    reader = mcp_http._EventReader()
    tracemalloc.start()
    try:
        size = sum(len(reader.read(chunk)) for _ in range(50)) + len(reader.read(b"\n\n"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (size < 600_000, peak < 2_500_000) == (True, True), (size, peak)


@pytest.mark.parametrize("reader", [mcp_http._BodyReader, mcp_http._EventReader])
def test_short_chunks_are_kept_in_compact_memory(reader: Callable[[], mcp_http._BodyReader]) -> None:
    reading = reader()
    tracemalloc.start()
    try:
        for _ in range(100_000):
            reading.read(bytes(bytearray(b"ab")))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_data_in_several_lines_is_one_message() -> None:
    reader = mcp_http._EventReader()
    event = reader.read(b'id: 7\ndata: {"id": 1,\ndata: "result":\n: comment\ndata:  null}\n\n')
    [parsed] = parse_events(event)
    assert (parsed.id, list(json.loads(parsed.data)["result"])) == ("7", ["segue/text"])


def test_comments_without_events_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http, "_MAX_BYTES", 1_000)
    reader = mcp_http._EventReader()
    for _ in range(1_000):
        assert reader.read(b": ping\n") == b""
    with pytest.raises(ValueError, match="the event is larger than 1,000 bytes"):
        reader.read(b"event: x\n" * 200)


def test_the_size_of_a_response_is_limited(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "xxx" in str(asyncio.run(call(site)).content)
    monkeypatch.setattr(mcp_http, "_MAX_BYTES", 4_000)
    with pytest.raises(ToolError, match=r"^trial: the response is larger than 4,000 bytes"):
        asyncio.run(call(site))
