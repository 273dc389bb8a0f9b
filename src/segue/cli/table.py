"""Stored conversations as a table that fits the terminal; cells are truncated, never wrapped."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from segue.cli import streams

if TYPE_CHECKING:
    from segue.store.base import Summary

__all__ = ["cells", "fitted", "table", "when"]

_HEADS = ("id", "updated", "messages", "model", "title")
_ID, _WRITTEN, _MESSAGES, _MODEL, _TITLE = range(5)
_GAP = "  "
_LONGEST_MODEL = 28
_LONGEST_TITLE = 120
_LEAST = 12
"""A narrower column is not useful."""


def table(rows: Sequence[Summary], width: int | None = None) -> str:
    """A line for each conversation, not wider than the terminal; without a terminal titles get more room."""
    from segue.view.clean import harmless_line

    if not rows:
        return ""
    available = width if width is not None else _columns()
    lines = [
        [
            row.id,
            when(row.updated),
            f"{row.messages:,}",
            fitted(harmless_line(row.model or "-"), _LONGEST_MODEL),
            fitted(harmless_line(row.title or row.opening or "-"), available or _LONGEST_TITLE),
        ]
        for row in rows
    ]
    lines.insert(0, list(_HEADS))
    columns = list(range(len(_HEADS)))
    widths = [max(cells(line[at]) for line in lines) for at in columns]
    if available is not None:
        columns = _shrunk(widths, available)
    colour = streams.coloured()
    return "".join(f"{_line(line, number, columns, widths, colour=colour)}\n" for number, line in enumerate(lines))


def _columns() -> int | None:
    return shutil.get_terminal_size().columns if streams.on_terminal(sys.stdout) else None


def _shrunk(widths: list[int], available: int) -> list[int]:
    """Reduce `widths` to fit: title first, then model. Returns the columns to show; some are removed if needed."""
    columns = list(range(len(widths)))
    widths[_MODEL] = min(widths[_MODEL], max(_LEAST, (available - _taken(widths, columns) + widths[_MODEL]) // 3))
    for at in (_MODEL, _WRITTEN, _MESSAGES):
        if available - _taken(widths, columns) < _LEAST:
            columns.remove(at)
    widths[_TITLE] = min(widths[_TITLE], max(1, available - _taken(widths, columns)))
    return columns


def _taken(widths: list[int], columns: list[int]) -> int:
    """The width of all columns but the title, with gaps."""
    return sum(widths[at] + len(_GAP) for at in columns if at != _TITLE)


def _line(line: Sequence[str], number: int, columns: list[int], widths: list[int], *, colour: bool) -> str:
    cells_out: list[str] = []
    for at in columns:
        cell = fitted(line[at], widths[at])
        blanks = " " * (widths[at] - cells(cell))
        styled = click.style(cell, **_style(number, at)) if colour else cell
        cells_out.append(blanks + styled if at == _MESSAGES else styled if at == _TITLE else styled + blanks)
    return _GAP.join(cells_out)


def _style(number: int, at: int) -> dict[str, Any]:
    if number == 0:
        return {"dim": True}
    return {"fg": "cyan"} if at == _ID else {"dim": at != _TITLE}


def when(at: int) -> str:
    """Format a store timestamp (microseconds) in local time."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def cells(text: str) -> int:
    """The width of a text in terminal columns."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fitted(text: str, width: int) -> str:
    """Truncate a text to one line of `width` columns."""
    line = " ".join(text[: 4 * width].split())
    if cells(line) <= width and len(text) <= 4 * width:
        return line
    taken, at = 0, 0
    while at < len(line) and taken + _cells(line[at]) < width:
        taken += _cells(line[at])
        at += 1
    return f"{line[:at]}…"
