"""Stored conversations as a table that fits the terminal; cells are truncated, never wrapped."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import streams
from segue.view.fit import display_width, truncate

if TYPE_CHECKING:
    from segue.store.base import ConversationSummary

_HEADERS = ("id", "nr", "updated", "messages", "model", "folder", "title")
_ID, _NUMBER, _UPDATED, _MESSAGES, _MODEL, _FOLDER, _TITLE = range(7)
_RIGHT_ALIGNED = (_NUMBER, _MESSAGES)
_GAP = "  "
_MAX_MODEL = 28
_MAX_FOLDER = 28
_MAX_TITLE = 120
_MIN_WIDTH = 12
"""A narrower column is not useful."""


def format_conversations(
    rows: Sequence[ConversationSummary], numbers: Sequence[int], width: int | None = None, *, with_folder: bool = True
) -> str:
    """Return a line for each conversation, not wider than the terminal; without a terminal titles get more room."""
    from segue.view.sanitize import sanitize_line

    if not rows:
        return ""
    available = width if width is not None else _terminal_width()
    lines = [
        [
            row.id,
            str(number),
            format_local_time(row.updated),
            f"{row.messages:,}",
            truncate(sanitize_line(row.model or "-"), _MAX_MODEL),
            truncate(sanitize_line(shorten_folder(row.folder)), _MAX_FOLDER),
            truncate(sanitize_line(row.title or row.opening or "-"), available or _MAX_TITLE),
        ]
        for number, row in zip(numbers, rows, strict=False)
    ]
    lines.insert(0, list(_HEADERS))
    columns = [at for at in range(len(_HEADERS)) if with_folder or at != _FOLDER]
    widths = [max(display_width(line[at]) for line in lines) for at in range(len(_HEADERS))]
    if available is not None:
        columns = _shrink(widths, columns, available)
    colour = streams.supports_colour()
    return "".join(
        f"{_format_line(line, number, columns, widths, colour=colour)}\n" for number, line in enumerate(lines)
    )


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if streams.is_terminal(sys.stdout) else None


def _shrink(widths: list[int], columns: list[int], available: int) -> list[int]:
    """Reduce `widths` to fit: title first, then folder and model. Return the columns to show; some are removed."""
    for at in (_FOLDER, _MODEL):
        room = available - _fixed_width(widths, columns) + widths[at]
        widths[at] = min(widths[at], max(_MIN_WIDTH, room // 3))
    for at in (_FOLDER, _MODEL, _UPDATED, _MESSAGES, _NUMBER):
        if at in columns and available - _fixed_width(widths, columns) < _MIN_WIDTH:
            columns.remove(at)
    widths[_TITLE] = min(widths[_TITLE], max(1, available - _fixed_width(widths, columns)))
    return columns


def _fixed_width(widths: list[int], columns: list[int]) -> int:
    """Return the width of all columns but the title, with gaps."""
    return sum(widths[at] + len(_GAP) for at in columns if at != _TITLE)


def _format_line(line: Sequence[str], number: int, columns: list[int], widths: list[int], *, colour: bool) -> str:
    cells: list[str] = []
    for at in columns:
        cell = truncate(line[at], widths[at])
        blanks = " " * (widths[at] - display_width(cell))
        styled = click.style(cell, **_style(number, at)) if colour else cell
        cells.append(blanks + styled if at in _RIGHT_ALIGNED else styled if at == _TITLE else styled + blanks)
    return _GAP.join(cells)


def _style(number: int, at: int) -> dict[str, Any]:
    if number == 0:
        return {"dim": True}
    return {"fg": "cyan"} if at == _ID else {"dim": at != _TITLE}


def shorten_folder(folder: str | None) -> str:
    """Return a folder with `~` for the home folder; `-` if there is none."""
    home = os.path.realpath(Path.home())
    if folder is None:
        return "-"
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder


def format_local_time(at: int) -> str:
    """Format a store timestamp (microseconds) in local time."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
