"""Tools of MCP servers: a real server, as a process and by HTTP."""

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Media
from segue.errors import InputError
from segue.runtime.mcp import McpServers, parse_servers
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import Context, ToolError
from segue.runtime.toolbox import Toolbox
from tests.runtime.scheduler_fakes import ShiftedTimeLoop

SCRIPT = Path(__file__).with_name("mcp_server.py")
PLAIN_SCRIPT = Path(__file__).with_name("mcp_plain_server.py")
# Seconds: a busy machine may need long to start a process.
START = 240


def stdio(mode="stdio", **more):
    script = SCRIPT if mode == "stdio" else PLAIN_SCRIPT
    return {"command": sys.executable, "args": [str(script), mode], "start": START, **more}


@asynccontextmanager
async def running(folder, table=None, **more):
    servers = McpServers(parse_servers(table or {"trial": stdio()}), folder=folder, **more)
    try:
        await servers.start()
        yield servers
    finally:
        await servers.close()


@asynccontextmanager
async def by_http(folder):
    """The server on a socket that listens already: nothing else takes its port, and a request waits until it is up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, handle = listening.getsockname()[1], listening.fileno()
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), "http", str(handle)], stderr=subprocess.DEVNULL, pass_fds=[handle]
        )
    try:
        async with running(folder, {"trial": {"url": f"http://127.0.0.1:{port}/mcp", "start": START}}) as servers:
            yield servers
    finally:
        process.kill()
        process.wait()


TRANSPORTS = {"stdio": running, "http": by_http}


def tool(servers, name) -> Any:
    return next(tool for tool in servers.tools() if tool.name == f"trial__{name}")


async def wait_until(holds):
    while not holds():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("way", TRANSPORTS)
def test_calls_and_results(way, tmp_path):
    async def play():
        async with TRANSPORTS[way](tmp_path) as servers:
            assert servers.problems == {}
            here = Context(tmp_path)
            assert (await tool(servers, "add").run({"a": 1, "b": 2}, here)).content == "3"
            assert '"n"' in (await tool(servers, "both").run({"name": "n"}, here)).content
            assert (await tool(servers, "fails").run({}, here)).error
            assert (await tool(servers, "with_dots_and_blanks").run({}, here)).content == "dotted"
            picture = (await tool(servers, "picture").run({}, here)).content
            assert [type(block) for block in picture] == [Media]
            assert picture[0].mime == "image/png"

    asyncio.run(play())


@pytest.mark.parametrize("way", TRANSPORTS)
def test_a_cancelled_call_is_cancelled_at_the_server(way, tmp_path):
    async def play():
        mark = tmp_path / "mark"
        begun = asyncio.Event()
        async with TRANSPORTS[way](tmp_path) as servers:
            here = Context(tmp_path, progress=lambda text: begun.set())
            call = asyncio.create_task(tool(servers, "hangs").run({"mark": str(mark)}, here))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await wait_until(mark.exists)
            assert (await tool(servers, "add").run({"a": 1, "b": 2}, Context(tmp_path))).content == "3"

    asyncio.run(play())


def test_hanging_server_is_abandoned(tmp_path):
    async def play():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ShiftedTimeLoop)
        # The server has begun: its time is up.
        here = Context(tmp_path, progress=lambda text: loop.advance(1000))
        async with running(tmp_path, {"trial": stdio(timeout=1000)}) as servers:
            with pytest.raises(ToolError, match="did not answer within 1000 seconds"):
                await tool(servers, "hangs").run({"mark": str(tmp_path / "mark")}, here)
            await wait_until((tmp_path / "mark").exists)

    with asyncio.Runner(loop_factory=ShiftedTimeLoop) as runner:
        runner.run(play())


def test_a_server_that_dies_is_started_again_with_the_next_call(tmp_path):
    async def play():
        async with running(tmp_path) as servers:
            for _ in range(2):
                with pytest.raises(
                    ToolError, match="the MCP server trial has ended; last line of its stderr: last words"
                ):
                    await tool(servers, "dies").run({}, Context(tmp_path))
                assert (await tool(servers, "add").run({"a": 1, "b": 2}, Context(tmp_path))).content == "3"
            # Without a call that succeeds in between it comes to an end.
            for _ in range(4):
                with pytest.raises(ToolError, match="has ended"):
                    await tool(servers, "dies").run({}, Context(tmp_path))
            with pytest.raises(ToolError, match="it is not started again"):
                await tool(servers, "dies").run({}, Context(tmp_path))

    asyncio.run(play())


def test_a_flood_is_cut_and_noise_passed_over(tmp_path):
    async def play():
        async with running(tmp_path) as servers:
            result = await tool(servers, "floods").run({"size": 3_000_000}, Context(tmp_path))
            assert "2,600,000 characters left out here" in result.content
            assert (await tool(servers, "add").run({"a": 1, "b": 2}, Context(tmp_path))).content == "3"

    asyncio.run(play())


@pytest.mark.parametrize(("mode", "name"), [("stdio", "grows"), ("old", "grow")])
def test_a_list_that_changes_reaches_the_toolbox(mode, name, tmp_path):
    async def play():
        changed = asyncio.Event()
        async with running(tmp_path, {"trial": stdio(mode)}, on_change=changed.set) as servers:
            box = Toolbox([], tmp_path, sources=[servers.tools])
            assert box.find("trial__grown") is None
            assert box.find("trial__bad") is None
            await tool(servers, name).run({}, Context(tmp_path))
            await changed.wait()
            assert box.find("trial__grown") is not None
            assert "trial__grown" in [declared.name for declared in box.declarations]

    asyncio.run(play())


def test_failed_servers_are_reported_and_ignored(tmp_path):
    async def play():
        table = {
            "trial": stdio(),
            "silent": stdio("silent", start=0.5),
            "broken": stdio("broken"),
            "nowhere": {"command": "no-such-command-here"},
            "far": {"url": "http://127.0.0.1:9/mcp"},
            "unset": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_VARIABLE}"}},
            "off": stdio("broken", enabled=False),
        }
        async with running(tmp_path, table) as servers:
            problems = servers.problems
            assert set(problems) == {"silent", "broken", "nowhere", "far", "unset"}
            assert "not ready after 0.5 seconds" in problems["silent"]
            assert "no such database" in problems["broken"]
            assert "there is no command no-such-command-here" in problems["nowhere"]
            assert "the variable NO_SUCH_VARIABLE is not set" in problems["unset"]
            assert servers.states["trial"].endswith("tools")
            assert (await tool(servers, "add").run({"a": 1, "b": 2}, Context(tmp_path))).content == "3"

    asyncio.run(play())


def test_nothing_is_left_running(tmp_path):
    async def play():
        mark = tmp_path / "pids"
        async with running(tmp_path) as servers:
            await tool(servers, "has_child").run({"mark": str(mark)}, Context(tmp_path))
            pid, child = (int(word) for word in mark.read_text().split())
            os.kill(pid, 0)
        await wait_until(lambda: not _alive(pid) and not _alive(child))

    asyncio.run(play())


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_server_gets_no_secrets_but_those_it_is_given(tmp_path):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-abcdefgh",
        "COPY": "Bearer sk-abcdefgh",
        "GH_TOKEN": "ghp_12345678",
        "PLAIN": "yes",
    }

    async def play():
        table = {"trial": stdio(env=["GH_TOKEN", "OTHER=x${PLAIN}"])}
        async with running(tmp_path, table, environ=environ) as servers:
            names = (await tool(servers, "environment").run({}, Context(tmp_path))).content.split()
            assert {"GH_TOKEN", "OTHER", "PLAIN"} <= set(names)
            assert not {"OPENAI_API_KEY", "COPY"} & set(names)

    asyncio.run(play())


def test_hints_are_not_trusted(tmp_path):
    async def play():
        async with running(tmp_path) as servers:
            for rules, may in [({}, False), ({"allow": ["trial__*"]}, True), ({"allow": ["trial__add"]}, True)]:
                box = Toolbox([], tmp_path, Permissions(**rules), sources=[servers.tools])
                found = box.find("trial__add")
                assert found is not None
                refusal = await box.check_permission(found, {"a": 1, "b": 2}, None)
                assert (refusal is None) == may
            request = tool(servers, "add").approval_request({"a": 1}, tmp_path)
            assert "declared by the server: read-only" in request.detail

    asyncio.run(play())


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ({"a b": {"command": "x"}}, "mcp.a b"),
        ({"a__b": {"command": "x"}}, "mcp.a__b"),
        ({"a": {}}, "mcp.a"),
        ({"a": {"command": "x", "url": "http://x"}}, "mcp.a"),
        ({"a": {"url": "ftp://x"}}, "mcp.a.url"),
        ({"a": {"comand": "x"}}, "mcp.a"),
        ({"a": {"command": 3}}, "mcp.a.command"),
    ],
)
def test_bad_configuration_is_named(table, path):
    with pytest.raises(InputError) as error:
        parse_servers(table)
    assert error.value.path == path


@pytest.mark.parametrize("module", ["mcp", "anyio", "httpx2"])
def test_a_missing_module_of_the_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str):
    for name in [name for name in sys.modules if name.startswith(("segue.runtime.mcp_p", "segue.runtime.mcp_m"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    table = {"url": "http://127.0.0.1:9/mcp"} if module == "httpx2" else stdio()

    async def connect() -> dict[str, str]:
        async with running(tmp_path, {"trial": table}) as servers:
            return servers.problems

    assert asyncio.run(connect()) == {"trial": "MCP servers need the extra: pip install 'segue[mcp]'"}
