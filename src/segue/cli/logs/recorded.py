"""The lines of a log file, and the request body parsed from them."""

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
        """The line's `timestamp`, if any."""
        return parse_iso(self.value.get("timestamp"))


class Recorded(Struct, frozen=True):
    """A request body from a log. `lines` and `times` have the line number and the time (if known) of each message;
    `left_out` counts what is not in the body."""

    kind: str
    body: Mapping[str, Any]
    source: str | None = None
    title: str | None = None
    lines: list[int] = []
    left_out: dict[str, int] = {}
    at: list[int | None] = []


def is_the_clients(text: str) -> bool:
    """Whether a client inserted this text into a user message: text in tags, or the contents of AGENTS.md."""
    return bool(_TAG.match(text)) or text.lstrip().startswith("# AGENTS.md instructions")


def title_of(text: str) -> str:
    """A title from the user's first text."""
    line = " ".join(text.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"
