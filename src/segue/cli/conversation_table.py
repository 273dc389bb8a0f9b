"""Stored conversations as a table that fits the terminal; cells are truncated, never wrapped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli.table import Column, format_table, rows_to_ansi, terminal_width
from segue.view.fit import truncate

if TYPE_CHECKING:
    from segue.store.base import ConversationSummary

_MAX_MODEL = 28
_MAX_FOLDER = 28
_MAX_TITLE = 120
_FOLDER = Column("folder", "dim", narrows=True, drops=1)
_COLUMNS = (
    Column("id", "cyan"),
    Column("nr", "dim", is_right=True, drops=5),
    Column("updated", "dim", drops=3),
    Column("messages", "dim", is_right=True, drops=4),
    Column("model", "dim", narrows=True, drops=2),
    _FOLDER,
    Column("title"),
)


def format_conversations(
    rows: Sequence[ConversationSummary], numbers: Sequence[int], width: int | None = None, *, with_folder: bool = True
) -> str:
    """Return a line for each conversation, not wider than the terminal; without a terminal titles get more room."""
    available = width if width is not None else terminal_width()
    columns = [column for column in _COLUMNS if with_folder or column is not _FOLDER]
    lines = [
        [
            row.id,
            str(number),
            format_local_time(row.updated),
            f"{row.messages:,}",
            truncate(row.model or "-", _MAX_MODEL),
            *([truncate(shorten_folder(row.folder), _MAX_FOLDER)] if with_folder else []),
            truncate(row.title or row.opening or "-", available or _MAX_TITLE),
        ]
        for number, row in zip(numbers, rows, strict=False)
    ]
    return rows_to_ansi(format_table(columns, lines, available))


def shorten_folder(folder: str | None) -> str:
    """Return a folder with `~` for the home folder; `-` if there is none."""
    home = os.path.realpath(Path.home())
    if folder is None:
        return "-"
    return f"~{folder[len(home) :]}" if folder == home or folder.startswith(f"{home}/") else folder


def format_local_time(at: int) -> str:
    """Format a store timestamp (microseconds) in local time."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
