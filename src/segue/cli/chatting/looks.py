"""What rows are made of, and how they look. A row is a list of pieces, each with its style, and holds no line end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from prompt_toolkit.utils import get_cwidth

__all__ = ["STYLES", "Piece", "Row", "columns", "cut", "plain", "table", "wrapped"]

Piece: TypeAlias = tuple[str, str]
Row: TypeAlias = list[Piece]

# The terminal's own sixteen colours, so that they fit its ground. Nothing is said by colour alone.
STYLES = {
    "user": "bold",
    "mark": "ansicyan bold",
    "dim": "dim",
    "thought": "dim italic",
    "head": "bold",
    "bold": "bold",
    "code": "ansicyan",
    "block": "ansicyan",
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


def columns(row: str | Sequence[Piece]) -> int:
    """How wide something is on the terminal."""
    return get_cwidth(row) if isinstance(row, str) else sum(get_cwidth(text) for _, text in row)


def plain(rows: Iterable[Sequence[Piece]]) -> str:
    """Rows as text."""
    return "".join(f"{''.join(text for _, text in row)}\n" for row in rows)


def cut(text: str, width: int) -> str:
    """The beginning of one line of text that fits."""
    if columns(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += get_cwidth(char)
        if used > width:
            break
        kept += char
    return f"{kept.rstrip()}…" if width > 0 else ""


def wrapped(text: str, width: int, style: str = "", *, indent: str = "", first: str | None = None) -> list[Row]:
    """A text in rows that fit, broken at blanks; `first` stands before the first row, `indent` before the others."""
    rows: list[Row] = []
    lead = indent if first is None else first
    for line in text.expandtabs(_TAB).split("\n"):
        left = line.rstrip()
        while True:
            piece, left = _broken(left, max(8, width - columns(lead)))
            rows.append([("", lead), (style, piece)] if lead else [(style, piece)])
            lead = indent
            if not left:
                break
    return rows


def _broken(line: str, width: int) -> tuple[str, str]:
    """A line up to where it has to be broken, and the rest."""
    if columns(line) <= width:
        return line, ""
    used, blank = 0, -1
    for place, char in enumerate(line):
        used += get_cwidth(char)
        if used > width:
            if char == " ":
                return line[:place].rstrip(), line[place:].lstrip()
            if blank > 0 and line[:blank].strip():
                return line[:blank].rstrip(), line[blank:].lstrip()
            return line[: max(1, place)], line[max(1, place) :]
        if char == " ":
            blank = place
    return line, ""


def table(rows: Sequence[Sequence[str]], styles: Sequence[str], width: int, *, indent: str = "  ") -> list[Row]:
    """Columns side by side. What has no room is cut, from the last column on."""
    if not rows:
        return []
    wide = [max(columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    made: list[Row] = []
    for cells in rows:
        room = width - len(indent)
        row: Row = [("", indent)]
        for place, (cell, style) in enumerate(zip(cells, styles, strict=True)):
            last = place == len(cells) - 1
            text = cut(cell, room)
            row.append((style, text))
            room -= wide[place] + 2
            if last or room < 4:
                break
            row.append(("", " " * (wide[place] - columns(text) + 2)))
        while len(row) > 1 and not row[-1][1].strip():
            row.pop()
        made.append(row)
    return made
