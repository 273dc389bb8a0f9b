"""Session files on disk: read whole, created once, and extended only while unchanged.

A file is readable by its owner alone. A write that fails leaves no file, or the file as it was.
"""

from __future__ import annotations

import os
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any

from msgspec import Struct

from segue import private_files
from segue.canonical.json import parse_json
from segue.errors import InputError, format_os_error
from segue.sessions.values import object_of

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


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if there is none."""
    try:
        return object_of(parse_json(path.read_bytes())[0])
    except (OSError, InputError):
        return {}


def create(path: Path, data: bytes) -> None:
    """Write a new file, at once or not at all; `InputError` if it exists."""
    try:
        private_files.make_folder(path.parent)
        private_files.create(path, data)
    except FileExistsError:
        raise InputError("exists already; nothing was written", path=str(path)) from None
    except OSError as error:
        raise InputError(f"can't be written: {format_os_error(error)}", path=str(path)) from None


def append(path: Path, expected: Fingerprint, data: bytes) -> None:
    """Append to a file that has the expected content; `InputError` if it has another one.

    What another program appends at the same time is kept. If the write fails, what was written of it is removed.
    """
    try:
        with path.open("r+b", buffering=0) as whole, path.open("ab", buffering=0) as end:
            is_same = os.path.samestat(os.fstat(whole.fileno()), os.fstat(end.fileno()))
            if not is_same or not expected.matches(whole.readall()):
                raise InputError("was changed by another program; nothing was written", path=str(path))
            spans: list[tuple[int, int]] = []
            try:
                rest = memoryview(data)
                while rest:
                    count = end.write(rest)
                    spans.append((end.tell() - count, end.tell()))
                    rest = rest[count:]
                os.fsync(end.fileno())
            except BaseException:
                _remove(whole, spans)
                raise
    except OSError as error:
        raise InputError(f"can't be written: {format_os_error(error)}", path=str(path)) from None


def _remove(file: FileIO, spans: list[tuple[int, int]]) -> None:
    """Cut these spans off the end of a file; those that another program wrote after become an empty line."""
    while spans and spans[-1][1] == os.fstat(file.fileno()).st_size:
        file.truncate(spans.pop()[0])
    for start, end in spans:
        file.seek(start)
        file.write(b" " * (end - start - 1) + b"\n")


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
