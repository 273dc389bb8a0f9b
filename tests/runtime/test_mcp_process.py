"""MCP servers as processes: how their lines are read, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from segue.runtime import mcp_process
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.mcp_process import run_server
from segue.runtime.tool_types import Context, ToolError
from segue.runtime.tools import shell_process

SCRIPT = Path(__file__).with_name("mcp_odd_server.py")
LIST = '"result": {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]}'


def run_with_server(tmp_path: Path, page: str, play: Callable[[McpServers], Coroutine[Any, Any, None]]) -> None:
    file = tmp_path / "pages"
    file.write_text(page)

    async def run() -> None:
        table = {"odd": {"command": sys.executable, "args": [str(SCRIPT), str(file)], "start": 240}}
        servers = McpServers(parse_servers(table), folder=tmp_path)
        try:
            await servers.start()
            await play(servers)
        finally:
            await servers.close()

    asyncio.run(run())


def test_a_message_above_the_limit_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_process, "MAX_BYTES", 100_000)

    async def play(servers: McpServers) -> None:
        good: Any = servers.tools()[0]
        long = f'"result": {json.dumps({"content": [{"type": "text", "text": "x" * 90_000}]})}'
        assert len((await good.run({"answer": long}, Context(tmp_path))).content) == 90_000
        longer = f'"result": {{"content": [], "x": "{"x" * 100_000}"}}'
        results = await asyncio.gather(
            *(good.run({"answer": longer}, Context(tmp_path)) for _ in range(2)), return_exceptions=True
        )
        text = "odd: the message is larger than 100,000 bytes; the next call connects again"
        assert [(type(result), str(result)) for result in results] == [(ToolError, text)] * 2
        assert (await good.run({}, Context(tmp_path))).content == "[nothing]"

    run_with_server(tmp_path, LIST, play)


def test_a_list_above_the_limit_is_a_problem_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_process, "MAX_BYTES", 4_000)

    async def play(servers: McpServers) -> None:
        assert servers.problems == {"odd": "the message is larger than 4,000 bytes"}

    run_with_server(tmp_path, f'"result": {{"tools": [], "x": "{"x" * 5_000}"}}', play)


def test_a_line_is_read_in_compact_memory_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server never ends its line: what was read of it is kept once, and dropped with the connection."""
    monkeypatch.setattr(mcp_process, "MAX_BYTES", 2_000_000)
    errors: list[str] = []

    async def run() -> None:
        command = [sys.executable, "-c", "import os\nwhile True: os.write(1, b'x' * 50_000)"]
        async with run_server(command, tmp_path, dict(os.environ), deque(), errors.append) as (reading, _):
            tracemalloc.start()
            with pytest.raises(anyio.EndOfStream):
                await reading.receive()

    try:
        asyncio.run(run())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert errors == ["the message is larger than 2,000,000 bytes"]
    assert peak < 10_000_000


def test_lines_that_are_no_messages_do_not_delay_the_next_call(tmp_path: Path) -> None:
    async def play(servers: McpServers) -> None:
        good: Any = servers.tools()[0]
        noise = "\n" * 20_000 + "{}\n" * 1_000
        answer = '"result": {"content": [{"type": "text", "text": "a"}]}'
        assert (await good.run({"answer": answer, "noise": noise}, Context(tmp_path))).content == "a"

    run_with_server(tmp_path, LIST, play)


def test_cancelling_a_start_leaves_no_open_file(tmp_path: Path) -> None:
    async def start() -> None:
        async with run_server(["/bin/cat"], tmp_path, {}, deque(), lambda error: None):
            raise AssertionError("it was cancelled before")

    async def cancel_at_once() -> None:
        starting = asyncio.create_task(start())
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait({starting})
        assert starting.cancelled()

    before = len([*Path("/dev/fd").iterdir()])
    asyncio.run(cancel_at_once())
    assert len([*Path("/dev/fd").iterdir()]) <= before


def test_a_server_that_does_not_read_its_input_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_process, "_CLOSE_SECONDS", 0.0)
    monkeypatch.setattr(shell_process, "_GRACE", 0.0)
    lines: deque[str] = deque(maxlen=3)
    script = 'trap "" TERM; echo "$$" >&2; while :; do sleep 60; done'

    async def run() -> int:
        async with run_server(["/bin/sh", "-c", script], tmp_path, dict(os.environ), lines, lambda error: None):
            while not lines:
                await asyncio.sleep(0.01)
        return int(lines[0])

    pid = asyncio.run(run())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
