"""Styled rows: a row is a list of (style, text) without line ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from prompt_toolkit.utils import get_cwidth

from segue.view.fit import shorten_paths

StyledText: TypeAlias = tuple[str, str]
Row: TypeAlias = list[StyledText]

# The terminal's own sixteen colours, which suit its background. No meaning depends on colour alone.
STYLES = {
    "user": "bold",
    "mark": "ansicyan bold",
    "dim": "dim",
    "thought": "dim italic",
    "head": "bold",
    "bold": "bold",
    "code": "ansicyan",
    "block": "ansicyan",
    "keyword": "ansimagenta",
    "string": "ansigreen",
    "comment": "dim italic",
    "number": "ansiyellow",
    "tool": "bold",
    "name": "ansicyan",
    "ok": "ansigreen",
    "bad": "ansired",
    "warn": "ansiyellow",
    "wait": "ansiblue",
    "added": "ansigreen",
    "removed": "ansired",
    "place": "ansicyan",
    "ask": "ansiyellow bold",
    "footer": "dim",
    "rule": "dim",
    "completion-menu": "fg:default bg:default",
    "completion-menu.completion": "fg:default bg:default dim",
    "completion-menu.completion.current": "fg:ansicyan bg:default bold noreverse nodim",
    "completion-menu.meta.completion": "fg:default bg:default dim",
    "completion-menu.meta.completion.current": "fg:default bg:default dim",
    "scrollbar.background": "bg:default",
    "scrollbar.button": "bg:ansibrightblack",
}
_TAB = 4


def display_width(row: str | Sequence[StyledText]) -> int:
    """Return the width of a text or row in terminal columns."""
    return get_cwidth(row) if isinstance(row, str) else sum(get_cwidth(text) for _, text in row)


def rows_to_text(rows: Iterable[Sequence[StyledText]]) -> str:
    """Return rows as plain text."""
    return "".join(f"{''.join(text for _, text in row)}\n" for row in rows)


def truncate(text: str, width: int) -> str:
    """Truncate one line to `width` columns, at its end after its paths are shortened."""
    text = shorten_paths(text, width)
    if display_width(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += get_cwidth(char)
        if used > width:
            break
        kept += char
    return f"{kept.rstrip()}…" if width > 0 else ""


def wrap(text: str, width: int, style: str = "", *, indent: str = "", first_indent: str | None = None) -> list[Row]:
    """Wrap a text at blanks; `first` is the prefix of the first row, `indent` of the others."""
    rows: list[Row] = []
    prefix = indent if first_indent is None else first_indent
    for line in text.expandtabs(_TAB).split("\n"):
        rest = line.rstrip()
        while True:
            part, rest = _break_line(rest, max(8, width - display_width(prefix)))
            rows.append([("", prefix), (style, part)] if prefix else [(style, part)])
            prefix = indent
            if not rest:
                break
    return rows


def _break_line(line: str, width: int) -> tuple[str, str]:
    """Return the part of a line that fits, and the rest."""
    if display_width(line) <= width:
        return line, ""
    used, blank = 0, -1
    for index, char in enumerate(line):
        used += get_cwidth(char)
        if used > width:
            if char == " ":
                return line[:index].rstrip(), line[index:].lstrip()
            if blank > 0 and line[:blank].strip():
                return line[:blank].rstrip(), line[blank:].lstrip()
            return line[: max(1, index)], line[max(1, index) :]
        if char == " ":
            blank = index
    return line, ""


def format_table(rows: Sequence[Sequence[str]], styles: Sequence[str], width: int, *, indent: str = "  ") -> list[Row]:
    """Align the columns of rows; the last columns are truncated where there is no room."""
    if not rows:
        return []
    widths = [max(display_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    output: list[Row] = []
    for cells in rows:
        room = width - len(indent)
        row: Row = [("", indent)]
        for index, (cell, style) in enumerate(zip(cells, styles, strict=True)):
            last = index == len(cells) - 1
            text = truncate(cell, room)
            row.append((style, text))
            room -= widths[index] + 2
            if last or room < 4:
                break
            row.append(("", " " * (widths[index] - display_width(text) + 2)))
        while len(row) > 1 and not row[-1][1].strip():
            row.pop()
        output.append(row)
    return output
