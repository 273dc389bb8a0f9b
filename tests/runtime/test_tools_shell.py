"""Shell commands: output, exit, and no process left behind."""

import asyncio
import contextlib
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from segue.canonical.blocks import Code, Text
from segue.runtime.environ import child_environment
from segue.runtime.tool_types import Context, Result, Tool, ToolError
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools import standard_tools
from segue.runtime.tools.shell import shell
from tests.runtime.tool_runner import run, text_of

# Becomes a process with a child and a grandchild that don't want to go, and says who they are.
STUBBORN = f"""'{sys.executable}' - <<'END'
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    if os.fork() == 0:
        open("grandchild", "w").write(str(os.getpid()))
        time.sleep(3600)
    open("child", "w").write(str(os.getpid()))
    time.sleep(3600)
open("leader", "w").write(str(os.getpid()))
while not all(os.path.exists(n) and open(n).read() for n in ("leader", "child", "grandchild")):
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(3600)
END"""
NAMES = ("leader", "child", "grandchild")
LIMITS = (1, 4, 16, 64)  # seconds, until a command has begun within them: on a busy machine the first are too few


def run_until_begun(first: str, run_within: Callable[[int], Any]) -> tuple[Any, int]:
    """The result of a command that wrote this text before its time was up, and the time it was given."""
    for limit in LIMITS:
        result = run_within(limit)
        if text_of(result).startswith(first):
            return result, limit
    raise AssertionError(f"it did not begin within {LIMITS[-1]}")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(folder: Path) -> None:
    """Waits for all of them to have ended; only the test's own time limit ends the wait."""
    pids = [int((folder / name).read_text()) for name in NAMES]
    while any(is_alive(pid) for pid in pids):
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("command", "text", "error"),
    [
        ("echo out; echo err >&2", "out\nerr", False),
        ("true", "[no output; exit code 0]", False),
        ("echo no; exit 3", "no\n[exit code 3]", True),
        ("exit 4", "[exit code 4]", True),
        ("no-such-command-here 2>/dev/null", "[exit code 127]", True),
        ("kill -9 $$", "[ended by SIGKILL]", True),
        ("cat", "[no output; exit code 0]", False),
        ("read x; echo got:$x", "got:", False),
        ("printf 'a\\xffb'", "a\ufffdb", False),
        ("printf 'Gr\\xc3\\xbc'", "Grü", False),
        ("printf '\\033[31mred'", "\x1b[31mred", False),
        ("[[ a == a ]] && echo bash", "bash", False),
        ("pwd", "HERE", False),
        ("tty", "not a tty\n[exit code 1]", True),
        ("echo x > /dev/tty", None, True),
    ],
)
def test_command_output(command, text, error, tmp_path):
    result = run(shell(), tmp_path, command=command)
    assert result.error == error
    if text is not None:
        assert text_of(result) == text.replace("HERE", str(tmp_path))


def test_much_output_keeps_both_ends(tmp_path):
    output = text_of(
        run(shell(), tmp_path, command="echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
    )
    assert output.startswith("first\nxxx")
    assert output.endswith("xxx\nlast")
    assert "left out here" in output
    assert len(output) < 400_000


def test_background_process_does_not_block_the_command(tmp_path):
    output = text_of(run(shell(), tmp_path, command="sleep 3600 & echo $! > pid; echo done"))
    assert output == "done"
    pid = int((tmp_path / "pid").read_text())
    while is_alive(pid):
        time.sleep(0.01)


def test_timeout_kills_the_process_tree(tmp_path):
    result, seconds = run_until_begun("ready", lambda limit: run(shell(), tmp_path, command=STUBBORN, timeout=limit))
    assert result.error
    assert text_of(result) == f"ready\n[not finished after {seconds} seconds; it was ended]"
    wait_until_gone(tmp_path)


def test_cancel_kills_the_process_tree(tmp_path):
    async def go() -> None:
        ready = asyncio.Event()
        output: list[str] = []

        def progress(text: str) -> None:
            output.append(text)
            ready.set()

        running: Any = shell().run({"command": STUBBORN}, Context(tmp_path, progress=progress))
        task = asyncio.ensure_future(running)
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert output == ["ready"]

    asyncio.run(go())
    wait_until_gone(tmp_path)


def test_second_cancel_kills_at_once(tmp_path):
    async def go() -> None:
        ready = asyncio.Event()
        running: Any = shell().run({"command": STUBBORN}, Context(tmp_path, progress=lambda text: ready.set()))
        task = asyncio.ensure_future(running)
        await ready.wait()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    wait_until_gone(tmp_path)


def test_sigterm_is_sent_before_sigkill(tmp_path):
    command = "trap 'echo tidied > mark; exit' TERM; echo ready; while true; do sleep 0.01; done"
    run_until_begun("ready", lambda limit: run(shell(), tmp_path, command=command, timeout=limit))
    assert (tmp_path / "mark").read_text() == "tidied\n"


def test_no_handles_and_no_processes_are_left(tmp_path):
    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def children() -> set[str]:
        found: set[str] = set()
        for task in Path("/proc/self/task").iterdir():
            # A thread may end between the listing and the read, as those of an earlier test do.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found.update((task / "children").read_text().split())
        return found

    run(shell(), tmp_path, command="echo warm")
    before, others = handles(), children()
    for _ in range(5):
        run(shell(), tmp_path, command="echo x; exit 1")
    assert handles() == before
    assert children() <= others


def test_secrets_are_not_handed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
    monkeypatch.setenv("COPY_OF_IT", "sk-never-to-be-seen")
    monkeypatch.setenv("PLAIN_THING", "seen")
    output = text_of(run(shell(), tmp_path, command="env"))
    assert "never-to-be-seen" not in output
    assert "PLAIN_THING=seen" in output
    assert "PAGER=cat" in output
    given = text_of(run(shell(lambda: {"ONLY": "this", "PATH": os.environ["PATH"]}), tmp_path, command="env"))
    assert "ONLY=this" in given
    assert "PLAIN_THING" not in given


def test_null_character_is_reported(tmp_path):
    with pytest.raises(ToolError, match="null character"):
        run(shell(), tmp_path, command="echo a\0b")


def test_missing_folder_is_reported(tmp_path):
    with pytest.raises(ToolError, match="could not be started"):
        run(shell(), tmp_path / "gone", command="pwd")


MORTAL = """
import asyncio, pathlib, sys
from segue.runtime.tool_types import Context
from segue.runtime.tools.shell import shell

asyncio.run(shell().run({"command": sys.argv[1]}, Context(pathlib.Path(sys.argv[2]), progress=print)))
"""


def test_commands_end_with_a_process_that_is_killed(tmp_path):
    command = [sys.executable, "-u", "-c", MORTAL, STUBBORN, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.kill()
    wait_until_gone(tmp_path)


def test_supervisor_is_hidden_from_the_command(tmp_path):
    output = text_of(run(shell(), tmp_path, command="jobs; wait; cat; ls /proc/$$/fd | wc -l; echo $0 $#"))
    assert output.split("\n")[0] in ("3", "4")
    assert output.endswith("bash 0")


HIDDEN = """
import asyncio, ctypes, pathlib
from segue.runtime.tool_types import Context
from segue.runtime.tools.shell import shell

asyncio.run(shell().run({"command": "true"}, Context(pathlib.Path())))
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
def test_parent_process_is_not_inspectable():
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def run_in_toolbox(folder: Path, *tools: Tool, **call: Any) -> str:
    """The result text of a call of the first tool."""

    async def go() -> str:
        found = Toolbox(tools, folder).find(tools[0].name)
        assert found is not None
        output: list[str] = []
        try:
            result: Any = found.run(call, Context(folder, progress=output.append))
            result = await result if inspect.isawaitable(result) else result
        except ToolError as error:
            return str(error)
        return json.dumps([msgspec.to_builtins(result), output])

    return asyncio.run(go())


def test_hidden_secrets_are_masked_in_output(tmp_path, monkeypatch):
    monkeypatch.setenv("EMU_KEY", "blue-moon-17")
    monkeypatch.setenv("GIVEN_TOKEN", "green-moon-18")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    (tmp_path / "x").write_text("a blue-moon-17 green-moon-18 eu-north-1 b")
    output = run_in_toolbox(tmp_path, shell(partial(child_environment, keep=["GIVEN_TOKEN"])), command="cat x")
    assert "blue-moon" not in output
    assert "a [EMU_KEY withheld] green-moon-18 eu-north-1 b" in output


@pytest.mark.parametrize(
    "value",
    [
        "x blue-moon-17",
        ["blue-moon-17", {"blue-moon-17": ("blue-moon-17",)}],
        Result({"a": ["blue-moon-17"]}),
        Result((Text("blue-moon-17"), Code("blue-moon-17", "sh"))),
        ToolError("blue-moon-17"),
        ValueError("blue-moon-17"),
    ],
)
@pytest.mark.parametrize("blocking", [True, False])
def test_other_tools_mask_hidden_secrets(value, blocking, tmp_path, monkeypatch):
    monkeypatch.setenv("MOON", "blue-moon-17")

    def give(arguments: Any, context: Context) -> Any:
        context.progress("blue-moon-17")
        if isinstance(value, Exception):
            raise value
        return value

    async def give_later(arguments: Any, context: Context) -> Any:
        return give(arguments, context)

    given = Tool("give", "Gives.", {"type": "object"}, give if blocking else give_later, blocking=blocking)
    output = run_in_toolbox(tmp_path, given, shell(partial(child_environment, keys=["MOON"])))
    assert "[MOON withheld]" in output
    assert "blue-moon" not in output


@pytest.mark.parametrize(
    ("limit", "arguments", "seconds"), [(0.2, {}, 0.2), (0.2, {"timeout": 60}, 0.2), (60, {"timeout": 1}, 1)]
)
def test_the_users_limit_holds_for_a_command(limit, arguments, seconds, tmp_path):
    async def go(factor: int) -> Any:
        scaled = {name: value * factor for name, value in arguments.items()}
        context = Context(tmp_path, time_limit=limit * factor)
        return await shell().run({"command": "echo so far; sleep 3600", **scaled}, context)  # pyright: ignore[reportGeneralTypeIssues]

    result, factor = run_until_begun("so far", lambda limit: asyncio.run(go(limit)))
    assert text_of(result) == f"so far\n[not finished after {seconds * factor:g} seconds; it was ended]"


def test_every_tool_of_segue_but_task_can_be_limited():
    tools = standard_tools(spawn=lambda order, context: asyncio.sleep(0, Result("")))
    assert [tool.name for tool in tools if tool.timeout_mode == "own"] == ["task"]
