"""Names of lease owners: a new name for this process, and whether the process with a given name has ended.

A name is `host:pid:scope-start:random`. `scope` identifies the boot and the PID namespace, so a process in another
container never counts as ended; `start` is the start time of the process, so a reused PID counts as another process.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import getnode, uuid4

from segue.processes import is_running, start_time


def new_owner() -> str:
    """Return a new owner name for this process, unique for each call."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{_pid_scope()}-{start_time(pid)}:{uuid4().hex[:8]}"


def has_ended(owner: str) -> bool:
    """Return whether the owner was a process on this machine that has ended. False for owners elsewhere."""
    parts = owner.rsplit(":", 3)
    if len(parts) != 4:
        return False
    host, pid, process, _ = parts
    scope, dash, start = process.partition("-")
    if not dash or (host, scope) != (socket.gethostname(), _pid_scope()) or not (pid.isascii() and pid.isdigit()):
        return False
    return not is_running(int(pid), start)


@cache
def _pid_scope() -> str:
    """Return a digest of the boot id and the PID namespace, or of a hardware address where the system has neither."""
    parts: list[str] = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    if not parts:
        # Two machines can have the same host name; a process on the other one must not count as ended.
        parts.append(f"{getnode():x}")
    return sha256(" ".join(parts).encode()).hexdigest()[:8]
