"""Whether a process runs: ids that are used again, ended processes, and ids that no process can have."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from segue import processes
from segue.processes import is_running, start_time

SOURCE = Path(processes.__file__).parent
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc")


def test_this_process_runs() -> None:
    assert is_running(os.getpid())
    assert is_running(os.getpid(), start_time(os.getpid()))


@needs_proc
def test_another_process_with_the_same_id_is_not_the_one_that_was_started() -> None:
    assert start_time(os.getpid()).isdigit()
    assert not is_running(os.getpid(), "1")
    assert not is_running(os.getppid(), start_time(os.getpid()) + "0")


@pytest.mark.parametrize("pid", [0, -1, -(2**31), 2**31 - 1, 2**31, 2**32 + 1, 99999999999, 2**63, 2**64])
@pytest.mark.parametrize("started", [None, "", "1"])
def test_an_id_that_no_process_has(pid: int, started: str | None) -> None:
    assert not is_running(pid, started)
    assert not is_running(-os.getpid(), started)
    assert not is_running(2**32 + os.getpid(), started)


@needs_proc
def test_an_ended_process_does_not_run_while_its_parent_has_not_read_its_exit_code() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        os.kill(process.pid, 0)
        assert not is_running(process.pid)
        assert not is_running(process.pid, start_time(process.pid))
    assert not is_running(process.pid)


def test_a_process_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(processes.os, "kill", refuse)
    assert is_running(os.getpid())
    assert is_running(os.getpid(), start_time(os.getpid()))
    if sys.platform == "linux":
        assert not is_running(os.getpid(), "1")


def test_no_signal_is_sent_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "os", SimpleNamespace(name="nt", kill=lambda *_: pytest.fail("it was signalled")))
    assert is_running(12345)
    assert is_running(12345, "1")
    assert not is_running(0)


def test_processes_are_tested_in_one_place() -> None:
    found = [path.name for path in SOURCE.rglob("*.py") if re.search(r"os\.kill\([^()]*(\(\))?, 0\)", path.read_text())]
    assert found == ["processes.py"]


_STARTS_A_CHILD = """
import os, signal, subprocess, sys
from segue.processes import run_child

number = int(sys.argv[1])
start = subprocess._fork_exec

def interrupted_start(*arguments):
    pid = start(*arguments)
    print(pid, flush=True)
    signal.raise_signal(number)
    return pid

def stop(number, frame):
    raise KeyboardInterrupt

subprocess._fork_exec = interrupted_start
signal.signal(number, stop if sys.argv[2] == "handled" else signal.SIG_IGN)
try:
    with run_child([sys.executable, "-c", "import time; time.sleep(" + sys.argv[3] + ")"]) as process:
        print(process.wait())
except KeyboardInterrupt:
    print("interrupted")
"""


def _start_interrupted(number: int, kind: str, seconds: int) -> tuple[int, str]:
    command = [sys.executable, "-c", _STARTS_A_CHILD, str(int(number)), kind, str(seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    pid, outcome = ended.stdout.split()
    return int(pid), outcome


@pytest.mark.skipif(not hasattr(subprocess, "_fork_exec"), reason="processes are started differently")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_child_is_started_leaves_none_running(number: signal.Signals) -> None:
    pid, outcome = _start_interrupted(number, "handled", 1000)
    assert (outcome, is_running(pid)) == ("interrupted", False)


@pytest.mark.skipif(not hasattr(subprocess, "_fork_exec"), reason="processes are started differently")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_ignored_signal_while_a_child_is_started_stays_ignored(number: signal.Signals) -> None:
    assert _start_interrupted(number, "ignored", 0)[1] == "0"
