"""Sessions that are JSON lines: `LineWriter` writes them; a subclass for each client yields its lines.

`Excerpt` is the beginning and the end of a session, enough to list it without reading it whole.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.client import PARENT_KEY, SIGNED_COPY_KEY, NewSession, SessionItem
from segue.sessions.parsed_log import find_bad_name
from segue.store.base import format_time


class LineWriter(ABC):
    """Yields the lines of a draft. `before` are those of the session that it is added to; None for a new session.

    `version` is the version of the client that is written into the lines. `_parent` and `_signed_copy` are fields for a
    line: empty if the draft has none.
    """

    version: ClassVar[str]

    def __init__(self, draft: NewSession, before: list[dict[str, Any]] | None = None) -> None:
        self._draft = draft
        self._is_new = before is None
        self._before = before or []
        self._at = next((item.at for item in draft.items if item.at is not None), draft.now)
        self._number = 0
        self._parent: dict[str, Any] = {PARENT_KEY: draft.parent} if draft.parent is not None else {}
        self._signed_copy: dict[str, Any] = (
            {SIGNED_COPY_KEY: draft.signed_copy} if draft.signed_copy is not None else {}
        )

    @abstractmethod
    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of a new session, or those that continue one."""

    @abstractmethod
    def renamed_lines(self) -> Iterable[dict[str, Any]]:
        """Return the lines before with the id, the folder and the parent of the draft; they may be changed."""

    @classmethod
    def encode(cls, draft: NewSession) -> bytes:
        return encode_lines(cls(draft).lines())

    @classmethod
    def encode_more(cls, data: bytes, draft: NewSession) -> bytes:
        # On a line of their own if the last line is not ended.
        separator = b"" if not data or data.endswith(b"\n") else b"\n"
        return separator + encode_lines(cls(draft, decode_lines(data)).lines())

    @classmethod
    def copy(cls, data: bytes, draft: NewSession) -> bytes:
        return encode_lines(cls(draft, decode_lines(data)).renamed_lines())

    @property
    def _time(self) -> str:
        return format_time(self._at)

    def _set_time(self, item: SessionItem) -> None:
        """Set the time of the next lines: that of an item, but never an earlier one."""
        self._at = max(self._at, item.at or self._at)

    def _make_id(self) -> str:
        """Return the next id: the same ones each time that a draft is written."""
        self._number += 1
        return str(uuid5(NAMESPACE_URL, f"segue:{self._draft.id}:{self._draft.now}:{self._number}"))


def encode_lines(values: Iterable[Mapping[str, Any]]) -> bytes:
    """Encode JSON lines as the clients do: no blanks, non-ASCII text as it is."""
    return b"".join(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        for value in values
    )


def decode_lines(data: bytes) -> list[dict[str, Any]]:
    """Decode the JSON lines that are objects; a damaged line is skipped."""
    values: list[dict[str, Any]] = []
    for row in data.split(b"\n"):
        if row.strip():
            try:
                value = parse_json(row)[0]
            except InputError:
                continue
            if isinstance(value, dict) and find_bad_name(cast("dict[str, Any]", value)) is None:
                values.append(cast("dict[str, Any]", value))
    return values


_PART_SIZE = 128 * 1024
_MAX_LINE = 16 * 2**20


# ------------------------------------------------------------------------------------------------------------- excerpts


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
