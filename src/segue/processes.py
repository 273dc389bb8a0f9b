"""Whether a process runs. The system gives the id of an ended one to another; their start times tell them apart."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Index in /proc/PID/stat after the program name, which may contain any characters.
_START_TIME_FIELD = 19
# Ended, but not yet reaped by its parent.
_ENDED_STATES = ("Z", "X")


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
