"""Session files on disk: read whole, created once, and extended only while unchanged.

A file is readable by its owner alone. A write that fails leaves no file, or the file as it was.
"""

from __future__ import annotations

import os
import secrets
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from segue.errors import InputError, format_os_error

_PROCESSES = Path("/proc")


class Fingerprint(Struct, frozen=True):
    """The size and SHA-256 of a file's content."""

    size: int
    digest: str

    @classmethod
    def of(cls, data: bytes) -> Fingerprint:
        return cls(len(data), sha256(data).hexdigest())

    def matches(self, data: bytes) -> bool:
        """Return whether this is the fingerprint of the content."""
        return len(data) == self.size and self == Fingerprint.of(data)


def read(path: Path) -> bytes:
    """Return the content of a file; `InputError` if it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"can't be read: {format_os_error(error)}", path=str(path)) from None


def create(path: Path, data: bytes) -> None:
    """Write a new file, at once or not at all; `InputError` if it exists."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise InputError("exists already; nothing was written", path=str(path)) from None
    except OSError as error:
        raise InputError(f"can't be written: {format_os_error(error)}", path=str(path)) from None


def _link(temporary: Path, path: Path) -> None:
    """Give a file its final name; `FileExistsError` if it is taken. Without hard links the file is renamed."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if path.exists():
            raise FileExistsError from None
        temporary.rename(path)


def append(path: Path, expected: Fingerprint, data: bytes) -> None:
    """Append to a file that has the expected content; `InputError` if it has another one.

    What another program appends at the same time is kept. If the write fails, the file is cut to its former size.
    """
    try:
        with path.open("a+b", buffering=0) as file:
            file.seek(0)
            if not expected.matches(file.readall()):
                raise InputError("was changed by another program; nothing was written", path=str(path))
            try:
                _write_all(file, data)
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(expected.size)
                raise
    except OSError as error:
        raise InputError(f"can't be written: {format_os_error(error)}", path=str(path)) from None


def _write_all(file: FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def is_open_file(path: Path) -> bool:
    """Return whether a process of this user has the file open; False where the system does not list open files."""
    try:
        wanted = path.stat()
        processes = [entry for entry in _PROCESSES.iterdir() if entry.name.isdigit()]
    except OSError:
        return False
    return any(_has_open(process, wanted) for process in processes)


def _has_open(process: Path, wanted: os.stat_result) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            if os.path.samestat(descriptor.stat(), wanted):
                return True
        except OSError:
            continue
    return False


def is_running(pid: int, started: str | None = None) -> bool:
    """Return whether a process with this id runs, and was started at this time, as Linux counts it.

    Where that can't be tested without ending it, assume that it runs.
    """
    if os.name != "posix":
        return True
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    try:
        # After the name in parentheses: the state, and as the 20th field the start time.
        fields = (_PROCESSES / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return True
    return fields[0] != b"Z" and (started is None or started.encode() == fields[19])


def wait_for_lock(file: BinaryIO) -> None:
    """Lock an open file until it is closed, after other processes have unlocked it; without effect on Windows."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    except (ImportError, OSError):
        return


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock on this file; False where there are no such locks."""
    try:
        import fcntl

        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(file, fcntl.LOCK_UN)
    except (ImportError, OSError):
        return False
    return False
