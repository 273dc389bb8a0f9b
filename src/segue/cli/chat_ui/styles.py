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
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
"""The mark of the input line, and of what was typed there."""


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
            part, rest = fit.break_line(rest, max(8, width - display_width(prefix)))
            rows.append([("", prefix), (style, part)] if prefix else [(style, part)])
            prefix = indent
            if not rest:
                break
    return rows


def format_table(rows: Sequence[Sequence[str]], styles: Sequence[str], width: int, *, wraps: bool = True) -> list[Row]:
    """Align the columns of rows. Where the last one does not fit it is wrapped, or else truncated."""
    columns = [table.Column(style=style) for style in styles]
    columns[-1] = columns[-1]._replace(wraps=wraps)
    return table.format_table(columns, rows, width, indent="  ")
