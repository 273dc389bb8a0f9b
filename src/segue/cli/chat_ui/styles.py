"""Styled rows: a row is a list of (style, text) without line ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from segue.cli import table
from segue.cli.table import Row, StyledText
from segue.view import fit

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
    return fit.display_width(row) if isinstance(row, str) else sum(fit.display_width(text) for _, text in row)


def rows_to_text(rows: Iterable[Sequence[StyledText]]) -> str:
    """Return rows as plain text."""
    return "".join(f"{''.join(text for _, text in row)}\n" for row in rows)


def truncate(text: str, width: int) -> str:
    """Truncate one line to `width` columns, at its end after its paths are shortened."""
    return fit.truncate(text, width, keeps_blanks=True)


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


def wrap_cell(text: str, width: int) -> list[str]:
    """Wrap a text at blanks, to columns of any width."""
    lines: list[str] = []
    while True:
        part, text = _break_line(text, max(1, width))
        lines.append(part)
        if not text:
            return lines


def _break_line(line: str, width: int) -> tuple[str, str]:
    """Return the part of a line that fits, and the rest."""
    if display_width(line) <= width:
        return line, ""
    used, blank = 0, -1
    for index, char in enumerate(line):
        used += fit.char_width(char)
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
    """Align the columns of rows; what does not fit is truncated."""
    return table.format_table([table.Column(style=style) for style in styles], rows, width, indent=indent)


def format_help(rows: Sequence[tuple[str, str]], width: int, *, indent: str = "  ") -> list[Row]:
    """Return names with their descriptions, which are wrapped beside the names, or below them where it is narrow."""
    column = max((display_width(name) for name, _ in rows), default=0)
    if (beside := width - len(indent) - column - 2) < 30:
        below = indent * 2
        return [
            row
            for name, text in rows
            for row in ([("", indent), ("class:name", name)], *wrap(text, width, indent=below))
        ]
    formatted: list[Row] = []
    for name, text in rows:
        first, *others = wrap_cell(text, beside)
        padding = " " * (column - display_width(name) + 2)
        formatted.append([("", indent), ("class:name", name), ("", padding + first)])
        formatted += [[("", indent + " " * (column + 2) + line)] for line in others]
    return formatted
