"""What a log is read from, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from segue.store.base import parse_iso

__all__ = ["Line", "Recorded", "is_the_clients", "title_of"]

_TAG = re.compile(r"\s*<[a-z][\w-]*>", re.IGNORECASE)
_TITLE = 80


class Line(Struct, frozen=True):
    """One line of a file, by its number from 1."""

    number: int
    value: Mapping[str, Any]

    @property
    def at(self) -> int | None:
        """When it was written, where it says so."""
        return parse_iso(self.value.get("timestamp"))


class Recorded(Struct, frozen=True):
    """A request body. `lines` has the line of each of its messages, `at` when each was said, where that is told;
    `left_out` counts what is not in it."""

    kind: str
    body: Mapping[str, Any]
    source: str | None = None
    title: str | None = None
    lines: list[int] = []
    left_out: dict[str, int] = {}
    at: list[int | None] = []


def is_the_clients(text: str) -> bool:
    """Whether a client said this in the user's name: what is in tags, or a file that it reads aloud."""
    return bool(_TAG.match(text)) or text.lstrip().startswith("# AGENTS.md instructions")


def title_of(text: str) -> str:
    """The user's first words, to go by."""
    line = " ".join(text.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"
