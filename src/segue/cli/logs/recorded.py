"""What a log is read from, and what it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

__all__ = ["Line", "Recorded"]


class Line(Struct, frozen=True):
    """One line of a file, by its number from 1."""

    number: int
    value: Mapping[str, Any]


class Recorded(Struct, frozen=True):
    """A request body. `lines` has the line of each of its messages; `left_out` counts what is not in it."""

    kind: str
    body: Mapping[str, Any]
    source: str | None = None
    title: str | None = None
    lines: list[int] = []
    left_out: dict[str, int] = {}
