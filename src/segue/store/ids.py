"""Conversation ids, and names of lease owners: whether the process with such a name has ended.

An id is sortable by creation time, and short enough to type a prefix. An owner is `host:pid:scope-start:random`:
`scope` identifies the boot and the PID namespace, so a process in another container never counts as ended; `start` is
the start time of the process, so a reused PID counts as another process.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import getnode, uuid4

from segue.errors import InputError
from segue.processes import is_running, start_time

# Crockford base32, without i, l, o and u: no confusion of 1 and l, and no accidental words.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_SECOND = 1_000_000
_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def new_id(now: int) -> str:
    """Return seven characters for the second of creation (until the year 3058), then five random ones.

    A prefix of seven characters is unique unless two conversations are created in the same second.
    """
    second = now // _SECOND
    time = "".join(_DIGITS[(second >> shift) & 31] for shift in range(30, -1, -5))
    return time + "".join(secrets.choice(_DIGITS) for _ in range(5))


def validate_id(name: str) -> str:
    """Return an id given by the caller; `InputError` if it is not valid."""
    if not _VALID_ID.match(name):
        raise InputError(
            f"{name!r} is not a valid conversation id: use 1 to 64 of A–Z, a–z, 0–9, `.`, `_` and `-`, "
            "beginning with a letter or digit",
            path="id",
        )
    return name


# ----------------------------------------------------------------------------------------------------- owners of leases


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
