"""Tables of commands and of the chat: aligned by the width of the characters, and narrowed to the terminal.

A row is a list of (style, text). A style is empty, a class of the chat, or words such as `bold`, `dim` and `cyan`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import click

from segue.cli import streams
from segue.view.fit import display_width, truncate, wrap
from segue.view.sanitize import sanitize_line

StyledText: TypeAlias = tuple[str, str]
Row: TypeAlias = list[StyledText]

_GAP = 2
_MIN_WIDTH = 12
"""A narrower column is not useful."""
_MIN_BESIDE = 30
"""Where a wrapped column would be narrower, it is below the others."""
_FLAGS = ("bold", "dim", "italic")


class Column(NamedTuple):
    """A column. `narrows`: it may get a third of the room. `drops` is when it is left out: 1 first, 0 never.

    The last column gets the room that the others leave, and may be one that `wraps`.
    """

    title: str = ""
    style: str = ""
    is_right: bool = False
    narrows: bool = False
    drops: int = 0
    wraps: bool = False


def format_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str | StyledText]], width: int | None = None, *, indent: str = ""
) -> list[Row]:
    """Return the rows of a table, with its titles first if it has any. A cell may have a style of its own.

    What does not fit the `width` is truncated, or wrapped in a column that `wraps`.
    """
    if not rows:
        return []
    cells = [[_style_cell(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    if any(column.title for column in columns):
        cells.insert(0, [("dim", column.title) for column in columns])
    widths = [max(display_width(row[at][1]) for row in cells) for at in range(len(columns))]
    shown = list(range(len(columns)))
    if width is None:
        return [_align(row, columns, widths, shown, width, indent) for row in cells]
    needed = widths[-1]
    shown = _narrow(columns, widths, shown, width - len(indent))
    if not columns[-1].wraps or needed <= widths[-1]:
        return [_align(row, columns, widths, shown, width, indent) for row in cells]
    room, is_below = widths[-1], widths[-1] < _MIN_BESIDE
    margin = indent + "  " if is_below else " " * (width - room)
    aligned: list[Row] = []
    for row in cells:
        style, text = row[-1]
        lines = wrap(text, width - len(margin) if is_below else room)
        first = [*row[:-1], (style, "" if is_below else lines.pop(0))]
        aligned.append(_align(first, columns, widths, shown, width, indent))
        aligned += [[("", margin), (style, line)] for line in lines if line]
    return aligned


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[str | StyledText]]) -> None:
    """Print a table to stdout, not wider than the terminal."""
    streams.write(rows_to_ansi(format_table(columns, rows, terminal_width())))


def terminal_width() -> int | None:
    """Return the width of the terminal that stdout is; None if it is none."""
    return shutil.get_terminal_size().columns if streams.is_terminal(sys.stdout) else None


def rows_to_ansi(rows: Iterable[Row], *, colour: bool | None = None) -> str:
    """Return rows as text, with colours if stdout supports them, or if `colour` says so."""
    has_colour = streams.supports_colour() if colour is None else colour
    return "".join(f"{''.join(_to_ansi(each) if has_colour else each[1] for each in row)}\n" for row in rows)


def _to_ansi(styled: StyledText) -> str:
    words = styled[0].split()
    flags = {flag: True for flag in _FLAGS if flag in words}
    colour = next((word for word in words if word not in _FLAGS), None)
    return click.style(styled[1], fg=colour, **flags) if words else styled[1]


def _style_cell(cell: str | StyledText, column: Column) -> StyledText:
    style, text = (column.style, cell) if isinstance(cell, str) else cell
    return style, sanitize_line(text)


def _narrow(columns: Sequence[Column], widths: list[int], shown: list[int], width: int) -> list[int]:
    """Reduce `widths` to fit. Return the columns to show; some are left out."""
    last = shown[-1]

    def find_room() -> int:
        return width - sum(widths[at] + _GAP for at in shown if at != last)

    for at in [at for at in shown if columns[at].narrows]:
        widths[at] = min(widths[at], max(_MIN_WIDTH, (find_room() + widths[at]) // 3))
    for at in sorted((at for at in shown if columns[at].drops), key=lambda at: columns[at].drops):
        if find_room() < _MIN_WIDTH:
            shown = [each for each in shown if each != at]
    widths[last] = min(widths[last], max(1, find_room()))
    return shown


def _align(
    row: Sequence[StyledText],
    columns: Sequence[Column],
    widths: Sequence[int],
    shown: Sequence[int],
    width: int | None,
    indent: str,
) -> Row:
    aligned: Row = [("", indent)] if indent else []
    room = width - len(indent) if width is not None else None
    for at in shown:
        style, text = row[at]
        text = truncate(text, widths[at] if room is None else min(widths[at], room))
        blanks = " " * (widths[at] - display_width(text))
        if columns[at].is_right:
            aligned += [("", blanks), (style, text)]
        else:
            aligned += [(style, text), ("", "" if at == shown[-1] else blanks)]
        aligned.append(("", "" if at == shown[-1] else " " * _GAP))
        if room is not None:
            room -= widths[at] + _GAP
            if room < 4:
                break
    while len(aligned) > 1 and not aligned[-1][1].strip():
        aligned.pop()
    return aligned
