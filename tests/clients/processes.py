"""The processes of the client runs: each in a session of its own, which ends with all that is in it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

# The sessions that run now, and whether no more may start.
_RUNNING: set[int] = set()
_STOPPED = threading.Event()
_POLL_SECONDS = 0.05
_START_SECONDS = 60
_ADDRESS = re.compile(r"http://[0-9.]+:[0-9]+")


class Process:
    """A command whose output is appended to a file `output.txt` in a folder."""

    def __init__(self, command: Sequence[str], folder: Path, work: Path, variables: Mapping[str, str]) -> None:
        with (folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _RUNNING.add(self._process.pid)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code; None if the process did not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def wait_for(self, file: Path, seconds: float) -> bool:
        """Return whether the file exists before the process ends, in time."""
        end = time.monotonic() + seconds
        while not file.exists() and self._process.poll() is None and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        return file.exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_session(self._process.pid)
        self._process.wait()
        _RUNNING.discard(self._process.pid)
        if _STOPPED.is_set():
            raise KeyboardInterrupt


class Gateway:
    """`segue serve` as a process; `url` is its address."""

    def __init__(self, model: str, folder: Path, variables: Mapping[str, str], *options: str) -> None:
        command = [sys.executable, "-m", "segue", "serve", "-m", model, "--port", "0", *options]
        log = folder / "gateway.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, env=dict(variables), cwd=folder, stdout=output, stderr=output)
        end = time.monotonic() + _START_SECONDS
        while (address := _ADDRESS.search(log.read_text())) is None:
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        self.url = address[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


def end_all() -> None:
    """End all processes that run; their cells end without a result."""
    _STOPPED.set()
    for session in tuple(_RUNNING):
        end_session(session)


def end_session(session: int) -> None:
    """End a process and all that it has left running."""
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def end_processes_in(folder: Path) -> None:
    """End all processes that run in a folder: clients start commands in sessions of their own."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)
