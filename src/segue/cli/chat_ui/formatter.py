"""Formats streamed Markdown as rows: code, tables, bold, headings; lists keep their indent.

A returned row never changes. Rows that may still change are in `partial`: the current row, a few before it while a
mark such as `**` is not closed, and the lines of a table until it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

from segue.cli.chat_ui.code_colors import CodeColors
from segue.cli.chat_ui.styles import Row
from segue.cli.chat_ui.tables import format_markdown_table

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_LIST = re.compile(r"^(\s*(?:[-*+]|\d{1,3}[.)])\s+)")
_QUOTE = re.compile(r"^(\s*>\s?)")
_HEADING = re.compile(r"^#{1,6}\s+")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
# The start of a line that may still become a list or a rule.
_UNDECIDED = re.compile(r"\s*(?:\+|\d{1,3}[.)]?|([-*_])(?:\s*\1)*\s*)\Z")
_MARKS = re.compile(r"\*\*|`+")
_MAX_SPAN = 400
"""The maximum length between an opening and a closing mark."""
_MAX_TABLE = 500
"""The maximum number of lines of a table; further lines begin another one."""
_TAB = "    "


class _Cell(NamedTuple):
    char: str
    style: str
    place: int


class MarkdownFormatter:
    """Formats Markdown; `feed` and `close` return finished rows."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._line = ""
        self._in_line = False
        """Whether rows of this line were already returned."""
        self._style = ""
        self._indent = ""
        self._open_mark = ""
        """The mark that is open at the start of `_line`."""
        self._fence = ""
        self._colors = CodeColors("")
        self._table: list[str] = []

    def feed(self, text: str) -> list[Row]:
        """Add sanitized text and return the rows that it finishes."""
        rows: list[Row] = []
        *ended, rest = text.replace("\t", _TAB).split("\n")
        for part in ended:
            self._line += part
            rows += self._end_line()
        self._line += rest
        return rows + self._take_finished()

    def close(self) -> list[Row]:
        """Return the remaining rows and reset."""
        rows = self._end_line() if self._line or self._in_line else []
        self._fence = ""
        return rows + self._end_table()

    @property
    def partial(self) -> list[Row]:
        """The rows that may still change."""
        table: list[Row] = [[("", line)] for line in self._table]
        if not self._line:
            return table
        if self._is_verbatim():
            return [*table, [("class:rule", "│ " if self._fence else ""), ("class:block", self._line)]]
        return [*table, *(row for row, _ in self._layout()[0])]

    # ------------------------------------------------------------------------------------------------------------ lines

    def _is_verbatim(self) -> bool:
        """Return whether this line is shown as it is: in a fence, or a table row."""
        return bool(self._fence) or (not self._in_line and bool(_FENCE.match(self._line) or self._line.startswith("|")))

    def _end_line(self) -> list[Row]:
        line = self._line
        if not self._fence and not self._in_line and line.startswith("|") and len(self._table) < _MAX_TABLE:
            self._table.append(line)
            self._line = ""
            return []
        rows = self._end_table()
        if self._is_verbatim():
            rows += [self._verbatim_row(line)]
        elif not self._in_line and _RULE.match(line):
            rows += [[("class:dim", line)]]
        else:
            rows += [row for row, _ in self._layout(whole=True)[0]]
        self._line, self._in_line, self._open_mark = "", False, ""
        return rows

    def _end_table(self) -> list[Row]:
        """Return the rows of a table that has ended."""
        lines, self._table = self._table, []
        return format_markdown_table(lines, self._width()) if lines else []

    def _verbatim_row(self, line: str) -> Row:
        mark = _FENCE.match(line)
        if self._fence:
            if mark and mark[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence = ""
                return [("class:rule", "└")]
            return [("class:rule", "│ "), *self._colors.color_line(line)]
        if mark:
            self._fence = mark[1]
            language = line[mark.end() :].strip().partition(" ")[0]
            self._colors = CodeColors(language)
            return [("class:rule", f"┌ {language}".rstrip())]
        return [("", line)]

    def _take_finished(self) -> list[Row]:
        """Take the rows of the current line that can no longer change."""
        if self._table or self._is_verbatim() or not self._line or (not self._in_line and _UNDECIDED.match(self._line)):
            return []
        rows, waiting = self._layout()
        done: list[Row] = []
        for index, (row, _) in enumerate(rows[:-1]):
            if self._may_reflow(rows[index + 1][1].place, waiting):
                break
            done.append(row)
        if done:
            first = rows[len(done)][1]
            self._line, self._in_line, self._open_mark = self._line[first.place :], True, first.style
        return done

    def _may_reflow(self, begins: int, waiting: int | None) -> bool:
        """Return whether a row's first word may still move to the row before, which a closing mark makes shorter."""
        end = self._line.find(" ", begins)
        if end < 0:
            end = len(self._line)
            if any(char in "*`" for char in self._line[begins:]):
                return True
        return waiting is not None and waiting < end

    # ------------------------------------------------------------------------------------------------------------- rows

    def _layout(self, *, whole: bool = False) -> tuple[list[tuple[Row, _Cell]], int | None]:
        """Return the rows of the line, each with its first cell, and the position of the first unclosed mark."""
        text, start = self._line, 0
        if not self._in_line:
            start = self._parse_line_start(text)
        cells, waiting = self._cells(text, start, whole=whole)
        prefix = "" if self._in_line else text[:start] if not _HEADING.match(text) else ""
        rows: list[tuple[Row, _Cell]] = []
        for line in _wrap_cells(cells, self._width() - len(self._indent)):
            head = self._indent if self._in_line or rows else prefix
            first = line[0] if line else _Cell("", "", 0)
            rows.append((_row(head, line, self._style), first))
        return rows or [(_row(prefix, [], ""), _Cell("", "", 0))], waiting

    def _parse_line_start(self, text: str) -> int:
        """Set style and indent from the start of a line and return where its text starts."""
        self._style, self._indent = "", ""
        if match := _HEADING.match(text):
            self._style = "class:head"
        elif match := _QUOTE.match(text):
            self._style, self._indent = "class:dim", match[1]
        elif match := _LIST.match(text):
            self._indent = " " * len(match[1])
        else:
            return 0
        return match.end()

    def _cells(self, text: str, start: int, *, whole: bool) -> tuple[list[_Cell], int | None]:
        """Return each character with its enclosing mark. Closed marks are removed, unclosed ones shown for now."""
        cells: list[_Cell] = []
        open_mark, waiting, place = self._open_mark, None, start
        while place < len(text):
            match = _MARKS.match(text, place)
            if match is None or (open_mark.startswith("`") and match[0] != open_mark):
                chunk = match[0] if match else text[place]
                cells += (_Cell(char, open_mark, place + at) for at, char in enumerate(chunk))
                place += len(chunk)
                continue
            mark = match[0]
            if open_mark == mark:
                open_mark = ""
            elif not open_mark and _is_closed(text, place, mark):
                open_mark = mark
            else:
                if waiting is None and not whole and len(text) - place < _MAX_SPAN and not open_mark:
                    waiting = place
                cells += (_Cell(char, open_mark, place + at) for at, char in enumerate(mark))
            place += len(mark)
        return cells, waiting


class PlainFormatter:
    """The same interface without formatting or wrapping."""

    def __init__(self) -> None:
        self._line = ""

    def feed(self, text: str) -> list[Row]:
        *ended, self._line = (self._line + text).split("\n")
        return [[("", line)] for line in ended]

    def close(self) -> list[Row]:
        line, self._line = self._line, ""
        return [[("", line)]] if line else []

    @property
    def partial(self) -> list[Row]:
        return [[("", self._line)]] if self._line else []


def _is_closed(text: str, place: int, mark: str) -> bool:
    """Return whether an opening mark is closed later."""
    after = place + len(mark)
    if mark == "**" and (text[after : after + 1].isspace() or (place and text[place - 1].isalnum())):
        return False
    at = text.find(mark, after + 1, place + _MAX_SPAN)
    while at > 0 and mark == "**" and text[at - 1].isspace():
        at = text.find(mark, at + 1, place + _MAX_SPAN)
    return at > 0


def _wrap_cells(cells: list[_Cell], width: int) -> list[list[_Cell]]:
    """Wrap cells at words. A word longer than a line gets its own line."""
    lines: list[list[_Cell]] = [[]]
    used = 0
    for word in _split_at_spaces(cells):
        word_width = sum(get_cwidth(cell.char) for cell in word)
        blank = word[0].char == " "
        if used + word_width > max(width, 8) and used and not blank:
            lines.append([])
            used = 0
        if blank and not used and len(lines) > 1:
            continue
        lines[-1] += word
        used += word_width
    return lines


def _split_at_spaces(cells: list[_Cell]) -> list[list[_Cell]]:
    """Split into words and runs of blanks; a wide character is a word of its own."""
    words: list[list[_Cell]] = []
    kind = ""
    for cell in cells:
        now = "blank" if cell.char == " " else "wide" if get_cwidth(cell.char) > 1 else "word"
        if now == kind != "wide":
            words[-1].append(cell)
        else:
            words.append([cell])
        kind = now
    return words


def _row(prefix: str, cells: list[_Cell], style: str) -> Row:
    row: Row = [("", prefix)] if prefix else []
    while cells and cells[-1].char == " ":
        cells = cells[:-1]
    for cell in cells:
        cell_style = {"**": "class:bold", "": ""}.get(cell.style, "class:code")
        cell_style = f"{style} {cell_style}".strip()
        if row and row[-1][0] == cell_style:
            row[-1] = cell_style, row[-1][1] + cell.char
        else:
            row.append((cell_style, cell.char))
    return row
