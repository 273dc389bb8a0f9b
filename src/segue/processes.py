"""Processes: whether one runs, and one that runs for a block of code.

The system gives the id of an ended process to another; their start times tell them apart.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen

# Index in /proc/PID/stat after the program name, which may contain any characters.
_START_TIME_FIELD = 19
# Ended, but not yet reaped by its parent.
_ENDED_STATES = ("Z", "X")
_ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def is_running(pid: int, started: str | None = None) -> bool:
    """Return whether a process with this id runs, and is the one that was started at this time.

    Where that can't be tested, assume that it runs: on Windows, signal 0 would end the process or be sent as Ctrl-C.
    """
    if pid <= 0:
        return False
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        # It is the process of another user.
        pass
    state, now = _read_state(pid)
    return state not in _ENDED_STATES and (not started or not now or now == started)


def start_time(pid: int) -> str:
    """Return when a process was started, as the system counts it; an empty string if it does not say so."""
    return _read_state(pid)[1]


def _read_state(pid: int) -> tuple[str, str]:
    """Return the state letter and start time of a process; empty strings if they can't be read."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields[0], fields[_START_TIME_FIELD]
    return "", ""


@contextmanager
def run_child(command: Sequence[str], **options: Any) -> Generator[Popen[Any]]:
    """Run a process for a block, and kill it if it still runs at the end, also if that is an exception of a signal."""
    from subprocess import Popen

    with ExitStack() as stack:
        with _delayed_signals():
            process: Popen[Any] = stack.enter_context(Popen(command, **options))
            # Does nothing for a process that has ended.
            stack.callback(process.kill)
        yield process


@contextmanager
def _delayed_signals() -> Generator[None]:
    """Handle signals at the end of the block. An exception while a process is started would leave it running."""
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for name in _ENDING_SIGNALS if (number := getattr(signal, name, None))}
    try:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, lambda number, _: received.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in received:
            signal.raise_signal(number)
