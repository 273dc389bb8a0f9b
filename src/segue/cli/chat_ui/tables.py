"""Markdown tables as rows with drawn lines."""

from __future__ import annotations

import re
from itertools import zip_longest

from segue.cli.chat_ui.styles import Row, display_width
from segue.view.fit import wrap

_DELIMITER = re.compile(r"\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*")
_CELL = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"\*\*|`")
_MIN_COLUMN = 3


def format_markdown_table(lines: list[str], width: int) -> list[Row]:
    """Return the lines of a table with aligned columns; lines that are not a table are returned as they are.

    Columns are narrowed to the width; a cell that does not fit is wrapped.
    """
    if len(lines) < 2 or not _DELIMITER.fullmatch(lines[1].strip()):
        return [[("", line)] for line in lines]
    head, delimiter, *body = [_split_cells(line) for line in lines]
    count = len(head)
    rows = [[*cells, *[""] * count][:count] for cells in (head, *body)]
    widths = _column_widths(rows, width)
    aligned = [_alignment(cell) for cell in [*delimiter, *[""] * count][:count]]
    rule: Row = [("class:rule", "─┼─".join("─" * column for column in widths))]
    head_rows, *body_rows = [
        _format_rows(cells, widths, aligned, "" if at else "class:bold") for at, cells in enumerate(rows)
    ]
    return [*head_rows, rule, *(row for cells in body_rows for row in cells)]


def _split_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [_MARKS.sub("", cell.strip().replace("\\|", "|")) for cell in _CELL.split(inner)]


def _alignment(cell: str) -> str:
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _column_widths(rows: list[list[str]], width: int) -> list[int]:
    """Return the width of each column. While they do not fit together, the widest one is narrowed."""
    widths = [max(_MIN_COLUMN, *map(display_width, column)) for column in zip(*rows, strict=True)]
    room = width - 3 * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _format_rows(cells: list[str], widths: list[int], aligned: list[str], style: str) -> list[Row]:
    """Return the rows of a table's row: as many as its longest cell has lines."""
    lines = [wrap(cell, column) for cell, column in zip(cells, widths, strict=True)]
    return [_format_row(list(row), widths, aligned, style) for row in zip_longest(*lines, fillvalue="")]


def _format_row(cells: list[str], widths: list[int], aligned: list[str], style: str) -> Row:
    row: Row = []
    for at, (text, column) in enumerate(zip(cells, widths, strict=True)):
        blank = column - display_width(text)
        left = blank if aligned[at] == "right" else blank // 2 if aligned[at] == "center" else 0
        last = at == len(widths) - 1
        padded = " " * left + text + ("" if last else " " * (blank - left))
        row += [*([("class:rule", " │ ")] if at else []), (style, padded)]
    return row
