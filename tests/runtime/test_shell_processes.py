"""No process that a shell command starts outlives it, in whatever way it left the command's process group."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from segue.runtime.tool_types import Context
from segue.runtime.tools import shell_process
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_process import ShellProcess
from tests.runtime.tool_runner import run, text_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs a subreaper")

# A daemon by the book: two forks, a new session, no inherited handle, no signal that it does not ignore.
DAEMON = f"""'{sys.executable}' - <<'END'
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.chdir("/")
        path = os.environ["HERE"] + "/daemon.pid"
        os.closerange(0, 64)
        with open(path + ".part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(path + ".part", path)
        time.sleep(3600)
    os._exit(0)
os.wait()
END"""
ESCAPES = {
    "job": "sleep 3600 & echo $! > job.pid",
    "setsid": "setsid sh -c 'echo $$ > setsid.pid; exec sleep 3600' >/dev/null 2>&1 &",
    "forked": "setsid -f sh -c 'echo $$ > forked.pid; exec sleep 3600' >/dev/null 2>&1",
    "nohup": "nohup sh -c 'echo $$ > nohup.pid; exec sleep 3600' >/dev/null 2>&1 &",
    "orphan": "(setsid sh -c 'echo $$ > orphan.pid; exec sleep 3600' &) >/dev/null 2>&1",
    "deaf": "(trap '' TERM HUP; setsid sh -c 'echo $$ > deaf.pid; exec sleep 3600' &) >/dev/null 2>&1",
    "disowned": "bash -c 'sleep 3600 & echo $! > disowned.pid; disown' >/dev/null 2>&1",
    "daemon": f"export HERE=$PWD; {DAEMON}",
}
START_ALL = "\n".join(ESCAPES.values())
WAIT_FOR_ALL = "\n".join(f"until [ -s {name}.pid ]; do sleep 0.01; done" for name in ESCAPES)


def living(folder: Path) -> list[str]:
    """Which of the escaped processes are alive; all must have started."""
    found: list[str] = []
    for name in ESCAPES:
        pid = int((folder / f"{name}.pid").read_text())
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += [name] if state != "Z" else []
    return found


def test_all_processes_end_with_the_command(tmp_path):
    result = run(shell(), tmp_path, command=f"{START_ALL}\n{WAIT_FOR_ALL}\necho done")
    assert text_of(result) == "done"
    assert not living(tmp_path)


def test_all_processes_end_on_timeout(tmp_path):
    for seconds in (1, 4, 16, 64):
        command = f"{START_ALL}\n{WAIT_FOR_ALL}\necho ready; sleep 3600"
        result = run(shell(), tmp_path, command=command, timeout=seconds)
        if text_of(result).startswith("ready"):
            break
    assert text_of(result) == f"ready\n[not finished after {seconds} seconds; it was ended]"
    assert not living(tmp_path)


@pytest.mark.parametrize(("cancels", "before"), [(1, ""), (2, ""), (1, "kill -s STOP $PPID; ")])
def test_all_processes_end_on_cancel(cancels, before, tmp_path):
    async def go() -> None:
        ready = asyncio.Event()
        command = f"{START_ALL}\n{WAIT_FOR_ALL}\n{before}echo ready; sleep 3600"
        running: Any = shell().run({"command": command}, Context(tmp_path, progress=lambda text: ready.set()))
        task = asyncio.ensure_future(running)
        await ready.wait()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    while living(tmp_path):
        time.sleep(0.01)


AGENT = """
import asyncio, pathlib, sys
from segue.runtime.tool_types import Context
from segue.runtime.tools.shell import shell

asyncio.run(shell().run({"command": sys.argv[1]}, Context(pathlib.Path(sys.argv[2]), progress=print)))
"""


STOP = "kill -STOP $PPID; until grep -q '^State:.T' /proc/$PPID/status; do :; done"


@pytest.mark.parametrize("before", ["", STOP])
def test_all_processes_end_with_a_killed_agent(before, tmp_path):
    command = f"{START_ALL}\n{WAIT_FOR_ALL}\n{before}\necho ready; sleep 3600"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", AGENT, command, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.kill()
    while living(tmp_path):
        time.sleep(0.01)


# Each process starts the next, in a session of its own, and ends at once. All that follow are bounded in number.
CHAIN = f"""'{sys.executable}' - <<'END' >/dev/null 2>&1 &
import os
for count in range(2_000):
    if os.fork():
        os._exit(0)
    os.setsid()
    if count == 10:
        open("started", "w").close()
END
until [ -e started ]; do sleep 0.01; done"""
TREE = f"""'{sys.executable}' - <<'END' >/dev/null 2>&1 &
import os, time
for depth in range(6):
    os.fork()
    if depth % 2:
        os.setpgid(0, 0)
    if depth == 3:
        open("started", "w").close()
time.sleep(3600)
END
until [ -e started ]; do sleep 0.01; done"""


@pytest.mark.parametrize("command", [CHAIN, TREE])
def test_processes_that_fork_while_they_are_killed_end_too(command, tmp_path):
    assert text_of(run(shell(), tmp_path, command=command)) == "[no output; exit code 0]"
    assert not [path for path in Path("/proc").glob("[0-9]*") if is_in_folder(path, tmp_path)]


def is_in_folder(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:
        return False


def test_other_signals_do_not_end_the_supervisor(tmp_path):
    kills = "; ".join(f"kill -s {name} $PPID" for name in ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM"))
    result = run(shell(), tmp_path, command=f"{START_ALL}\n{WAIT_FOR_ALL}\n{kills}; exit 3")
    assert text_of(result) == "[exit code 3]"
    assert not living(tmp_path)


def test_sigterm_to_the_supervisor_ends_the_command(tmp_path):
    result = run(shell(), tmp_path, command="setsid sleep 3600 & kill $PPID; sleep 3600")
    assert text_of(result) == "[ended by SIGKILL]"


@pytest.mark.parametrize("steps", range(1, 12))
def test_cancelling_a_start_leaves_no_open_file(steps, tmp_path):
    async def cancel_after_steps() -> None:
        running: Any = shell().run({"command": "true"}, Context(tmp_path))
        task = asyncio.ensure_future(running)
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    before = len([*Path("/proc/self/fd").iterdir()])
    asyncio.run(cancel_after_steps())
    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_signals_leave_the_exit_code_to_the_event_loop(monkeypatch, tmp_path):
    """`Popen.poll` reaps a supervisor that has just ended: its exit code is then unknown to the event loop."""
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: pytest.fail("the exit code was taken"))
    assert text_of(run(shell(), tmp_path, command="echo done")) == "done"


def test_result_names_the_loss_of_the_supervisor(tmp_path):
    command = f"{ESCAPES['orphan']}\nuntil [ -s orphan.pid ]; do sleep 0.01; done; kill -9 $PPID; sleep 3600"
    result = run(shell(), tmp_path, command=command)
    os.kill(int((tmp_path / "orphan.pid").read_text()), 9)
    assert text_of(result) == "[ended by SIGKILL]\n[processes that this command started may still run]"
    assert result.error


def patch_supervisor(monkeypatch: pytest.MonkeyPatch, patch: str) -> None:
    """Runs the supervisor with something changed in its process first."""
    *options, path = shell_process._SUPERVISOR
    script = f"import os, runpy, sys; {patch}; runpy.run_path({path!r}, run_name='__main__')"
    monkeypatch.setattr(shell_process, "_SUPERVISOR", (*options, "-c", script))


def test_result_names_processes_that_may_not_be_killed(monkeypatch, tmp_path):
    patch_supervisor(monkeypatch, "os.killpg = lambda *_: (_ for _ in ()).throw(PermissionError)")
    result = run(shell(), tmp_path, command=f"{ESCAPES['forked']}\nuntil [ -s forked.pid ]; do sleep 0.01; done")
    pid = int((tmp_path / "forked.pid").read_text())
    os.kill(pid, 9)
    assert text_of(result) == f"[no output; exit code 0]\n[processes that could not be ended: {pid} sleep 3600]"


@pytest.mark.parametrize(("escape", "is_left"), [("job", False), ("nohup", False), ("forked", True), ("orphan", True)])
def test_without_a_subreaper_the_result_names_what_may_be_left(escape, is_left, monkeypatch, tmp_path):
    patch_supervisor(monkeypatch, "sys.platform = 'other'")
    command = f"{ESCAPES[escape]}\nuntil [ -s {escape}.pid ]; do sleep 0.01; done; echo done"
    result = run(shell(), tmp_path, command=command)
    pid = int((tmp_path / f"{escape}.pid").read_text())
    if is_left:
        os.kill(pid, 9)
    assert text_of(result) == "done" + ("\n[processes that this command started may still run]" if is_left else "")


@pytest.mark.parametrize("environment", [{}, {"LC_CTYPE": "C", "X": "a\nb=c"}, {"\udcff": "\udcfe"}, {"LANG": "C"}])
def test_environment_of_the_command_is_exactly_that(environment, tmp_path):
    async def go() -> bytes:
        process = await ShellProcess.start(["/usr/bin/env", "-0"], tmp_path, environment)
        output = await process.output.read()
        assert await process.wait() == 0
        assert await process.end() == shell_process.Remainder()
        return output

    expected = {os.fsencode(f"{name}={value}") for name, value in environment.items()}
    assert set(asyncio.run(go()).split(b"\0")) - {b""} == expected


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/dev/null"]])
def test_a_program_that_can_not_be_started_is_named(argv, tmp_path):
    async def go() -> tuple[bytes, int]:
        process = await ShellProcess.start(argv, tmp_path, {})
        result = await process.output.read(), await process.wait()
        await process.end()
        return result

    output, code = asyncio.run(go())
    assert output.decode().startswith(f"{argv[0]}: ")
    assert code == 127


def test_other_processes_keep_their_exit_codes_and_nothing_is_left(tmp_path):
    """Many commands at once, between other subprocesses: no exit code is taken, no zombie, no handle is left."""

    async def run_other(code: int) -> int:
        process = await asyncio.create_subprocess_exec("sh", "-c", f"exit {code}")
        return await process.wait()

    async def run_command(code: int) -> str:
        result: Any = shell().run({"command": f"setsid -f sleep 3600; exit {code}"}, Context(tmp_path))
        return text_of(await result)

    async def go() -> None:
        codes = range(10, 18)
        with subprocess.Popen(["sh", "-c", "exit 7"]) as popen:
            commands = asyncio.gather(*map(run_command, codes))
            others = asyncio.gather(*map(run_other, codes))
            assert await commands == [f"[exit code {code}]" for code in codes]
            assert await others == list(codes)
            assert popen.wait() == 7

    def count() -> tuple[int, int]:
        children = {
            child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()
        }
        return len(list(Path("/proc/self/fd").iterdir())), len(children)

    before = count()
    asyncio.run(go())
    assert count() == before
