"""`Excerpt`: the beginning and the end of a session file, enough to list it without reading it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from segue.sessions.client import decode_lines

_PART_SIZE = 128 * 1024


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
        with path.open("rb") as file:
            status = path.stat()
            head = file.read(_PART_SIZE)
            tail = b""
            if status.st_size > 2 * _PART_SIZE:
                file.seek(-_PART_SIZE, 2)
                tail = file.read()
            else:
                head += file.read()
    except OSError:
        return None
    if tail:
        # The first line is never cut: in the logs of some clients it has the id and the folder of the session.
        head = head[: head.rfind(b"\n") + 1] or _read_first_line(path)
        tail = tail[tail.find(b"\n") + 1 :]
    return Excerpt(decode_lines(head + tail), status.st_size, status.st_mtime_ns // 1000)


def _read_first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline()
