"""Responses of MCP servers by HTTP that are refused: the error of the call has the reason."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from segue.runtime import mcp_http
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.tool_types import Context, ToolError

TOOLS: list[Any] = [{"name": "t", "inputSchema": {"type": "object"}}]
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "trial", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
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
    monkeypatch.setattr(mcp_http, "MAX_BYTES", 4_000)
    error = "SSE stream failed: Server-sent event exceeded the 4000 byte limit"
    with pytest.raises(ToolError, match=rf"^trial: {error}.*; the next call connects again"):
        asyncio.run(call(f"{site}/events"))


@pytest.mark.parametrize("path", ["", "/events"])
def test_results_are_read_as_those_of_a_process(site: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [{"type": "text", "text": "cut \ud83d"}, {"type": "text"}]
    monkeypatch.setitem(RESULTS, "tools/call", {"content": blocks})
    assert asyncio.run(call(site + path)).content == "cut \ufffd\n[content block 2 left out: text: Field required]"
    monkeypatch.setitem(RESULTS, "tools/list", {"tools": [5, *TOOLS * 2_000], "_meta": {"x": "y" * 4_000_000}})
    assert asyncio.run(list_tools(site + path)) == (["trial__t"], "", "2,000 left out: tool 1 (Input should be a")


@pytest.mark.parametrize("path", ["/deep", "/events/deep"])
def test_a_response_that_is_nested_too_deeply_is_an_error(site: str, path: str) -> None:
    names, problem, _ = asyncio.run(list_tools(site + path))
    assert names == []
    assert "recursion limit exceeded" in problem


async def list_tools(url: str) -> tuple[list[str], str, str]:
    servers = McpServers(parse_servers({"trial": {"url": url}}), folder=Path())
    try:
        await servers.start()
        names = [tool.name for tool in servers.tools()]
        return names, servers.problems.get("trial", ""), servers.left_out.get("trial", "")[:41]
    finally:
        await servers.close()


def test_the_size_of_a_response_is_limited(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "xxx" in str(asyncio.run(call(site)).content)
    monkeypatch.setattr(mcp_http, "MAX_BYTES", 4_000)
    with pytest.raises(ToolError, match=r"^trial: the response is larger than 4,000 bytes"):
        asyncio.run(call(site))
