"""`Excerpt`: the beginning and the end of a session file, enough to list it without reading it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from segue.sessions.lines import decode_lines

_PART_SIZE = 128 * 1024
_MAX_LINE = 16 * 2**20


class Excerpt(Struct, frozen=True):
    """The objects in the first and last lines of a file, its size, and the time of its last change in microseconds."""

    values: list[dict[str, Any]]
    size: int
    updated: int

    def last_string(self, key: str) -> str | None:
        """Return the last string under a key of the lines."""
        found = (value.get(key) for value in reversed(self.values))
        return next((text for text in found if isinstance(text, str) and text), None)


def read_excerpt(path: Path) -> Excerpt | None:
    """Read an excerpt; None if the file can't be read. Lines that are cut at its borders are left out."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            status = path.stat()
            head = file.read(_PART_SIZE)
            if status.st_size > 2 * _PART_SIZE:
                # The first line is never cut: in the logs of some clients it has the id and the folder of the session.
                if (end := head.rfind(b"\n") + 1) == 0:
                    head += file.readline()
                values = decode_lines(head[:end] if end else head) + decode_lines(_read_tail(file, status.st_size))
            else:
                values = decode_lines(head + file.read())
    except OSError:
        return None
    return Excerpt(values, status.st_size, status.st_mtime_ns // 1000)


def _read_tail(file: BinaryIO, size: int) -> bytes:
    """Return the last lines of a file; at least one, unless it is very long."""
    length = _PART_SIZE
    while True:
        file.seek(-length, 2)
        _, _, tail = file.read().partition(b"\n")
        if tail.strip() or 2 * length > min(size, _MAX_LINE):
            return tail
        length *= 2
