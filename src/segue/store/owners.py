"""Who has a conversation in hand: a name that tells a process of this machine from others, and whether it still runs.

`host:pid:here:random`, where `here` stands for the boot and the space of process numbers, with when the process began:
a number that was given again is another process, and one of another container is nobody's business here.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

__all__ = ["is_gone", "own_name"]

# In /proc/PID/stat, counted behind the name of the program, which may hold anything.
_BEGAN = 19
# It ended, and nobody has asked yet how.
_ENDED = ("Z", "X")


def own_name() -> str:
    """A name for this process, another one each time."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{_here()}-{_told_of(pid)[1]}:{uuid4().hex[:8]}"


def is_gone(owner: str) -> bool:
    """Whether a process of this machine has ended. Of others nothing is known."""
    parts = owner.rsplit(":", 3)
    if len(parts) != 4:
        return False
    host, pid, place, _ = parts
    here, dash, began = place.partition("-")
    if not dash or (host, here) != (socket.gethostname(), _here()) or not (pid.isascii() and pid.isdigit()):
        return False
    return not _runs(int(pid), began)


def _runs(pid: int, began: str) -> bool:
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    state, now = _told_of(pid)
    return state not in _ENDED and (not began or not now or now == began)


@cache
def _here() -> str:
    """The boot and the space of process numbers, as far as the system tells."""
    told: list[str] = []
    with suppress(OSError):
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip())
    with suppress(OSError):
        told.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256(" ".join(told).encode()).hexdigest()[:8]


def _told_of(pid: int) -> tuple[str, str]:
    """The state of a process, and when it was started in the system's own count; nothing where it can't be told."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return fields[0], fields[_BEGAN]
    return "", ""
