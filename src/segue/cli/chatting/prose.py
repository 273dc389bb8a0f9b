"""What a model says, as rows, while it is being said. Markdown lightly: code, bold, headings, lists keep their indent.

A row that was given out never changes. What may still change is `partial`: the row that is being written, and a few
before it while a mark in them waits for its partner.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from prompt_toolkit.utils import get_cwidth

from segue.cli.chatting.looks import Row

__all__ = ["Exact", "Prose"]

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_LIST = re.compile(r"^(\s*(?:[-*+]|\d{1,3}[.)])\s+)")
_QUOTE = re.compile(r"^(\s*>\s?)")
_HEADING = re.compile(r"^#{1,6}\s+")
_LINE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_MARKS = re.compile(r"\*\*|`+")
_PARTNER = 400
"""How far a mark may stand from its partner."""
_TAB = "    "


class _Cell(NamedTuple):
    char: str
    style: str
    place: int


class Prose:
    """Feed it text, take rows."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._line = ""
        self._begun = False
        """Whether rows of this line were given out already."""
        self._style = ""
        self._hang = ""
        self._open = ""
        """The mark that is open where the rest of the line begins."""
        self._fence = ""

    def feed(self, text: str) -> list[Row]:
        """More text, made harmless already; gives the rows that are finished by it."""
        rows: list[Row] = []
        *ended, rest = text.replace("\t", _TAB).split("\n")
        for piece in ended:
            self._line += piece
            rows += self._end_of_line()
        self._line += rest
        return rows + self._finished()

    def close(self) -> list[Row]:
        """The rest. What comes after begins anew."""
        rows = self._end_of_line() if self._line or self._begun else []
        self._fence = ""
        return rows

    @property
    def partial(self) -> list[Row]:
        """What is being written."""
        if not self._line:
            return []
        if self._is_block():
            return [[("class:block", self._line)]]
        return [row for row, _ in self._laid_out()[0]]

    # ------------------------------------------------------------------------------------------------------------ lines

    def _is_block(self) -> bool:
        """Whether this line goes as it is."""
        return bool(self._fence) or (not self._begun and bool(_FENCE.match(self._line) or self._line.startswith("|")))

    def _end_of_line(self) -> list[Row]:
        line = self._line
        if self._is_block():
            rows = [self._block(line)]
        elif not self._begun and _LINE.match(line):
            rows = [[("class:dim", line)]]
        else:
            rows = [row for row, _ in self._laid_out(whole=True)[0]]
        self._line, self._begun, self._open = "", False, ""
        return rows

    def _block(self, line: str) -> Row:
        mark = _FENCE.match(line)
        if self._fence:
            if mark and mark[1].startswith(self._fence) and not line.strip(" `~"):
                self._fence = ""
                return [("class:dim", line)]
            return [("class:block", line)]
        if mark:
            self._fence = mark[1]
            return [("class:dim", line)]
        return [("", line)]

    def _finished(self) -> list[Row]:
        """Rows of the line that is being written, all but those that may still change."""
        if self._is_block() or not self._line:
            return []
        laid, waiting = self._laid_out()
        done: list[Row] = []
        for place, (row, _) in enumerate(laid[:-1]):
            if self._may_move(laid[place + 1][1].place, waiting):
                break
            done.append(row)
        if done:
            begins = laid[len(done)][1]
            self._line, self._begun, self._open = self._line[begins.place :], True, begins.style
        return done

    def _may_move(self, begins: int, waiting: int | None) -> bool:
        """Whether the word that begins a row may yet fit into the one before: a mark that finds its partner goes."""
        end = self._line.find(" ", begins)
        if end < 0:
            end = len(self._line)
            if any(char in "*`" for char in self._line[begins:]):
                return True
        return waiting is not None and waiting < end

    # ------------------------------------------------------------------------------------------------------------- rows

    def _laid_out(self, *, whole: bool = False) -> tuple[list[tuple[Row, _Cell]], int | None]:
        """The rows of the line, each with where it begins (and in which mark), and the first mark without a partner."""
        text, start = self._line, 0
        if not self._begun:
            start = self._beginning(text)
        cells, waiting = self._cells(text, start, whole=whole)
        lead = "" if self._begun else text[:start] if not _HEADING.match(text) else ""
        rows: list[tuple[Row, _Cell]] = []
        for line in _broken(cells, self._width() - len(self._hang)):
            head = self._hang if self._begun or rows else lead
            begins = line[0] if line else _Cell("", "", 0)
            rows.append((_row(head, line, self._style), begins))
        return rows or [(_row(lead, [], ""), _Cell("", "", 0))], waiting

    def _beginning(self, text: str) -> int:
        """Looks at how a line begins; gives where its words do."""
        self._style, self._hang = "", ""
        if found := _HEADING.match(text):
            self._style = "class:head"
        elif found := _QUOTE.match(text):
            self._style, self._hang = "class:dim", found[1]
        elif found := _LIST.match(text):
            self._hang = " " * len(found[1])
        else:
            return 0
        return found.end()

    def _cells(self, text: str, start: int, *, whole: bool) -> tuple[list[_Cell], int | None]:
        """Each character with the mark it stands in. A mark with a partner is not shown; one that waits is, for now."""
        cells: list[_Cell] = []
        opened, waiting, place = self._open, None, start
        while place < len(text):
            found = _MARKS.match(text, place)
            if found is None or (opened.startswith("`") and found[0] != opened):
                taken = found[0] if found else text[place]
                cells += (_Cell(char, opened, place + at) for at, char in enumerate(taken))
                place += len(taken)
                continue
            mark = found[0]
            if opened == mark:
                opened = ""
            elif not opened and _has_partner(text, place, mark):
                opened = mark
            else:
                if waiting is None and not whole and len(text) - place < _PARTNER and not opened:
                    waiting = place
                cells += (_Cell(char, opened, place + at) for at, char in enumerate(mark))
            place += len(mark)
        return cells, waiting


class Exact:
    """The same for where nothing is marked or broken: lines as they are."""

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


def _has_partner(text: str, place: int, mark: str) -> bool:
    """Whether a mark that opens something is closed again."""
    after = place + len(mark)
    if mark == "**" and (text[after : after + 1].isspace() or (place and text[place - 1].isalnum())):
        return False
    at = text.find(mark, after + 1, place + _PARTNER)
    while at > 0 and mark == "**" and text[at - 1].isspace():
        at = text.find(mark, at + 1, place + _PARTNER)
    return at > 0


def _broken(cells: list[_Cell], width: int) -> list[list[_Cell]]:
    """Cells in lines that fit. A word that is longer than a line has one of its own."""
    lines: list[list[_Cell]] = [[]]
    used = 0
    for word in _words(cells):
        wide = sum(get_cwidth(cell.char) for cell in word)
        blank = word[0].char == " "
        if used + wide > max(width, 8) and used and not blank:
            lines.append([])
            used = 0
        if blank and not used and len(lines) > 1:
            continue
        lines[-1] += word
        used += wide
    return lines


def _words(cells: list[_Cell]) -> list[list[_Cell]]:
    """Runs of blanks and of others; a wide character is a word of its own."""
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


def _row(lead: str, cells: list[_Cell], style: str) -> Row:
    row: Row = [("", lead)] if lead else []
    while cells and cells[-1].char == " ":
        cells = cells[:-1]
    for cell in cells:
        look = {"**": "class:bold", "": ""}.get(cell.style, "class:code")
        look = f"{style} {look}".strip()
        if row and row[-1][0] == look:
            row[-1] = look, row[-1][1] + cell.char
        else:
            row.append((look, cell.char))
    return row
