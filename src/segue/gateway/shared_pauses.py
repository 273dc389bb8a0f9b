"""`SharedPauses`: the pauses of targets, the same in all workers of a gateway.

A worker that changes a pause writes a small file; the others look at its status before they choose a target. A file
that is missing, damaged or can't be written is never an error: each worker then has the pauses that it knows.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from segue import private_files
from segue.bridge.failover import Pause, PauseChange, PauseTable


class SharedPauses(PauseTable):
    """The pauses in a file, which is changed by one process at a time."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._seen: tuple[int, int] | None = None

    def read(self) -> Mapping[str, Pause]:
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            status = os.stat(self._file)  # noqa: PTH116  before each request, and faster than Path
            seen = status.st_ino, status.st_mtime_ns
            if seen != self._seen:
                self._seen = seen
                self._pauses = msgspec.json.decode(self._file.read_bytes(), type=dict[str, Pause])
        return self._pauses

    def update(self, target: str, change: PauseChange) -> Pause | None:
        with self._change_lock, self._lock():
            self.read()
            before = super().update(target, change)
            if before != self._pauses.get(target):
                self._write()
        return before

    @contextmanager
    def _lock(self) -> Generator[None]:
        """Hold the lock of the file; go on without it where there is none."""
        descriptor = -1
        try:
            with suppress(OSError, ImportError):
                import fcntl

                descriptor = os.open(self._file.with_name(f"{self._file.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _write(self) -> None:
        with suppress(OSError):
            private_files.replace(self._file, msgspec.json.encode(self._pauses), is_durable=False)
            status = self._file.stat()
            self._seen = status.st_ino, status.st_mtime_ns
