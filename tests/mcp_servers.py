"""`make mcp`: MCP servers from npm and PyPI, as processes and one also by HTTP.

Those from npm use the TypeScript SDK and open a session with `initialize`; those from PyPI the Python SDK and answer
`server/discover`, of version 2026-07-28. segue starts each, lists its tools and calls some of them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from segue.canonical.blocks import Text
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.tool_types import Context
from tests.ports import reserve_port

_CACHE = Path(__file__).parents[1] / ".cache" / "mcp-servers"
_NPM = ("server-everything@2026.8.31", "server-filesystem@2026.8.31", "server-memory@2026.8.31")
_PYPI = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19", "mcp==2.3.0")
_BIN = _CACHE / "node_modules" / ".bin"
_PYTHON = _CACHE / "venv" / "bin" / "python"


class Call(Struct, frozen=True):
    """A call, and what its result contains: a text, or the kinds of its blocks."""

    tool: str
    arguments: Mapping[str, Any]
    expected: str
    is_error: bool = False


def _find_trials(folder: Path, port: int) -> dict[str, tuple[dict[str, Any], bool, list[Call]]]:
    """For each server its configuration, whether it is of the newer generation, and the calls."""
    everything = [
        Call("echo", {"message": "h\N{LATIN SMALL LETTER E WITH ACUTE}"}, "Echo: h\N{LATIN SMALL LETTER E WITH ACUTE}"),
        Call("get-sum", {"a": 2, "b": 3}, "The sum of 2 and 3 is 5"),
        Call("get-tiny-image", {}, "Text Media Text"),
        Call("get-structured-content", {"location": "Chicago"}, '"temperature"'),
        Call("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "demo://resource/dynamic/text/1"),
        Call("trigger-long-running-operation", {"duration": 1, "steps": 2}, "Long running operation completed"),
        Call("echo", {"message": 5}, "Input validation error", is_error=True),
    ]
    file = folder / "a.txt"
    repository = folder / "repository"
    return {
        "everything": ({"command": str(_BIN / "mcp-server-everything"), "args": ["stdio"]}, False, everything),
        "everything-http": ({"url": f"http://127.0.0.1:{port}/mcp"}, False, everything),
        "filesystem": (
            {"command": str(_BIN / "mcp-server-filesystem"), "args": [str(folder)]},
            False,
            [
                Call("write_file", {"path": str(file), "content": "first\n"}, "Successfully wrote"),
                Call("read_text_file", {"path": str(file)}, "first"),
                Call("read_text_file", {"path": "/etc/hostname"}, "Access denied", is_error=True),
            ],
        ),
        "memory": (
            {"command": str(_BIN / "mcp-server-memory"), "args": [], "env": [f"MEMORY_FILE_PATH={folder}/memory.json"]},
            False,
            [
                Call(
                    "create_entities",
                    {"entities": [{"name": "segue", "entityType": "project", "observations": ["small"]}]},
                    "small",
                ),
                Call("search_nodes", {"query": "segue"}, "project"),
            ],
        ),
        "time": (
            {"command": str(_PYTHON), "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
            True,
            [
                Call(
                    "convert_time",
                    {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                    "+9.0h",
                ),
                Call("get_current_time", {"timezone": "No/Where"}, "No/Where", is_error=True),
            ],
        ),
        "git": (
            {"command": str(_PYTHON), "args": ["-m", "mcp_server_git", "--repository", str(repository)]},
            True,
            [Call("git_status", {"repo_path": str(repository)}, "On branch")],
        ),
    }


def main() -> int:
    try:
        _install()
    except FileNotFoundError:
        sys.exit("make mcp needs npm, which is not installed")
    failed = 0
    with tempfile.TemporaryDirectory() as name, reserve_port() as port, _everything_by_http(port):
        folder = Path(name)
        subprocess.run(["git", "init", "-q", folder / "repository"], check=True)
        for server, (table, is_modern, calls) in _find_trials(folder, port).items():
            state, problems = asyncio.run(_run(server, table, is_modern=is_modern, calls=calls))
            print(f"{server:16} {state}", *problems, sep="\n    " if problems else "", flush=True)
            failed += bool(problems)
    return 1 if failed else 0


def _install() -> None:
    if not _BIN.exists():
        packages = [f"@modelcontextprotocol/{name}" for name in _NPM]
        subprocess.run(["npm", "install", "--silent", "--prefix", str(_CACHE), *packages], check=True)
    if not _PYTHON.exists():
        venv.create(_CACHE / "venv", with_pip=True)
        subprocess.run([_PYTHON, "-m", "pip", "install", "-qq", *_PYPI], check=True)


@contextmanager
def _everything_by_http(port: int) -> Generator[None]:
    command = [str(_BIN / "mcp-server-everything"), "streamableHttp"]
    with subprocess.Popen(
        command, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while process.poll() is None:
                try:
                    httpx2.get(f"http://127.0.0.1:{port}/mcp")
                    break
                except httpx2.TransportError:
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()


async def _run(name: str, table: dict[str, Any], *, is_modern: bool, calls: list[Call]) -> tuple[str, list[str]]:
    servers = McpServers(parse_servers({name: table}), folder=Path())
    try:
        await servers.start()
        client = servers._connections[0]._client
        if client is None:
            return "", [servers.problems[name]]
        state = f"{client.protocol_version}  {servers.states[name]}  {len(calls)} calls"
        problems = [] if (client.protocol_version in MODERN_PROTOCOL_VERSIONS) == is_modern else ["other generation"]
        tools = {tool.name: tool for tool in servers.tools()}
        for call in calls:
            running: Any = tools[f"{name}__{call.tool}"].run(call.arguments, Context(Path()))
            result = await running
            content = result.content
            if not isinstance(content, str):
                kinds = " ".join(type(block).__name__ for block in content)
                content = "\n".join([kinds, *(block.text for block in content if isinstance(block, Text))])
            if call.expected not in content or result.error != call.is_error:
                problems.append(f"{call.tool}: {content[:300]} ({'error' if result.error else 'no error'})")
        return state, problems
    finally:
        await servers.close()


if __name__ == "__main__":
    sys.exit(main())
