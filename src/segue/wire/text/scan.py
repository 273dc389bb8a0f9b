"""Splits streamed text into text and calls. Text that cannot begin a call is passed on at once, markers never in part.

Text in a code fence or after a backtick is quoted and never a call.
"""

from __future__ import annotations

import re
from functools import cache

from segue.wire.text.base import Found, Lost, Match, Opener, Piece, Region, TextFormat
from segue.wire.text.typed import Declared

__all__ = ["CallScanner", "Piece", "pieces_of"]

_FENCE = 3
_RUN = {sign: re.compile(rf"{sign}*+") for sign in "`~"}
_NO_RUN = ("", 0)
# How often the text after an unterminated call is scanned again at the end. Each time may scan all of it.
_ANEW = 16
# The text after a call is scanned again, in slices of this size.
_SLICE = 4096


@cache
def _candidates(openers: tuple[Opener, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns for places where a call or a fence may begin, or a run of backticks continues; and for quoted text.

    Each alternative begins with a literal character, so that `re` can search for it quickly.
    """
    follows = {one: one.second and rf"(?=[{re.escape(one.second)}]|\Z)" for one in openers}
    calls = [re.escape(sign) + follows[one] for one in openers for sign in one.first]
    runs = [rf"{sign}(?<!{sign * 2})(?={sign * (_FENCE - 1)}|{sign}*+\Z)" for sign in _RUN]
    return re.compile("|".join([*calls, *runs])), re.compile("|".join([*calls, *_RUN]))


class CallScanner:
    """Scans one text. Adjacent text is merged into one string."""

    def __init__(self, text_format: TextFormat, declared: Declared | None = None) -> None:
        self._declared = declared or Declared()
        self._openers = text_format.openers
        self._candidate, self._unquoting = _candidates(text_format.openers)
        self._rest = ""
        self._region: Region | None = None
        self._fence = _NO_RUN
        self._run = _NO_RUN
        """The backticks or tildes that the text ends with so far."""
        self._run_opens = False
        self._before = ""
        """The last character that was passed on; after a backtick, text is quoted."""
        self._quoted = False
        """True after a call that began right after a backtick: up to the next one, or an empty line, all is quoted."""
        self._blank = True
        """True if the line has only blanks so far."""

    def feed(self, text: str) -> list[Piece]:
        if len(text) <= _SLICE:
            return self._read(text, ended=False)
        return _merged([segment for one in _slices(text) for segment in self._read(one, ended=False)])

    def close(self) -> list[Piece]:
        """Return the text held back. An unterminated call counts only if nothing but its end is missing."""
        segments = self._read("", ended=True)
        anew = 0
        while self._region is not None:
            closed = self._region.close()
            self._region = None
            self._passed_region(closed.pieces)
            segments += closed.pieces
            anew += 1
            if anew < _ANEW:
                segments += self._read(closed.rest, ended=True)
            elif closed.rest:
                segments.append(Lost(closed.rest, "too many unterminated calls before it"))
        return _merged(segments)

    def _read(self, text: str, *, ended: bool) -> list[Piece]:
        segments: list[Piece] = []
        waiting = [text]
        while waiting:
            text = waiting.pop()
            if not text and not self._rest:
                continue
            if self._region is None:
                text = self._words(self._rest + text, segments, ended=ended and not waiting)
            closed = None if self._region is None else self._region.feed(text)
            if closed is None:
                continue
            self._region = None
            self._passed_region(closed.pieces)
            segments += closed.pieces
            waiting += reversed(_slices(closed.rest))
        return _merged(segments)

    def _words(self, text: str, segments: list[Piece], *, ended: bool) -> str:
        """Pass on text before a call; then open a region and return its text."""
        self._rest = ""
        place = self._behind_run(text, 0) if self._run[1] else 0
        blank_from = 0
        while (found := self._next(text, place)) is not None:
            place = found.start()
            self._go_on(text, blank_from, place)
            blank_from = place
            before = text[place - 1] if place else self._before
            is_run = text[place] in _RUN
            match = "no" if self._fence[1] or self._quoted or (is_run and not self._blank) else None
            match = match or self._match(text, place, ended=ended)
            if is_run and match == "no":
                place = self._behind_run(text, place)
                self._blank = self._quoted = False
                blank_from = place
                continue
            if match == "perhaps":
                break
            if match != "no" and before == "`":
                self._quoted = True
            elif match != "no":
                self._pass(text[:place], segments)
                self._region = match(self._declared)
                return text[place:]
            place += 1
        else:
            place = len(text)
        self._go_on(text, blank_from, place)
        self._pass(text[:place], segments)
        self._rest = text[place:]
        return ""

    def _next(self, text: str, place: int) -> re.Match[str] | None:
        return (self._unquoting if self._quoted else self._candidate).search(text, place)

    def _match(self, text: str, place: int, *, ended: bool) -> Match:
        verdict: Match = "no"
        for opener in self._openers:
            if text[place] not in opener.first:
                continue
            match = opener.match(text, place, self._blank, ended)
            if match == "perhaps":
                verdict = match
            elif match != "no":
                return match
        return verdict

    def _go_on(self, text: str, start: int, stop: int) -> None:
        """Track the start of the line and the quoting from one place to another."""
        line = text.rfind("\n", start, stop) + 1
        self._blank = (bool(line) or self._blank) and not text[line or start : stop].strip()
        if self._quoted:
            before = text[start - 1] if start else self._before
            self._quoted = "\n\n" not in before + text[start:stop]

    def _behind_run(self, text: str, place: int) -> int:
        """The place after a run of backticks or tildes. A complete run may open or close a fence."""
        if not self._run[1]:
            self._run = (text[place], 0)
            self._run_opens = self._blank
        sign, length = self._run
        found = _RUN[sign].match(text, place)
        stop = found.end() if found is not None else place
        length += stop - place
        if stop == len(text):
            self._run = (sign, length)
            return stop
        if not self._fence[1]:
            if length >= _FENCE and self._run_opens:
                self._fence = (sign, length)
        elif sign == self._fence[0] and length >= self._fence[1] and text[stop].isspace():
            self._fence = _NO_RUN
        self._run = _NO_RUN
        return stop

    def _passed_region(self, found: list[Piece]) -> None:
        last = found[-1] if found else ""
        if isinstance(last, Found):
            self._before, self._blank = " ", False
            return
        text = last if isinstance(last, str) else last.written
        self._go_on(text, 0, len(text))
        self._before = text[-1:] or self._before

    def _pass(self, text: str, segments: list[Piece]) -> None:
        if text:
            self._before = text[-1]
            segments.append(text)


def _slices(text: str) -> list[str]:
    return [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]


def pieces_of(text: str, text_format: TextFormat, declared: Declared | None = None) -> list[Piece]:
    """Scan a whole text."""
    scanner = CallScanner(text_format, declared)
    return _merged([*scanner.feed(text), *scanner.close()])


def _merged(segments: list[Piece]) -> list[Piece]:
    """Merge adjacent strings, without empty ones."""
    merged: list[Piece] = []
    run: list[str] = []
    for segment in segments:
        if isinstance(segment, str):
            run.append(segment)
            continue
        if joined := "".join(run):
            merged.append(joined)
        run = []
        merged.append(segment)
    if joined := "".join(run):
        merged.append(joined)
    return merged
