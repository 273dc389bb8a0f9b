"""Text in, words and calls out, as it comes: what may not be a call is passed on at once, and no half marker is shown.

What stands in a code fence, or behind a back tick, is quoted and no call.
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
# How often the text behind a call without an end is read anew once all of it is there. Each time may cost all of it.
_ANEW = 16
# What stands behind a call is looked at anew: so much of it at a time, and not all that there is.
_SLICE = 4096


@cache
def _candidates(openers: tuple[Opener, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Where to look: what may begin a call, or a fence, and runs that are not over. And the same for quoted text.

    Each way begins with a sign of its own, and not with what stands before it: so it is searched for by these signs.
    """
    follows = {one: one.second and rf"(?=[{re.escape(one.second)}]|\Z)" for one in openers}
    calls = [re.escape(sign) + follows[one] for one in openers for sign in one.first]
    runs = [rf"{sign}(?<!{sign * 2})(?={sign * (_FENCE - 1)}|{sign}*+\Z)" for sign in _RUN]
    return re.compile("|".join([*calls, *runs])), re.compile("|".join([*calls, *_RUN]))


class CallScanner:
    """Reads one text. Words come as strings, joined as far as nothing stands between them."""

    def __init__(self, form: TextFormat, declared: Declared | None = None) -> None:
        self._declared = declared or Declared()
        self._openers = form.openers
        self._candidate, self._unquoting = _candidates(form.openers)
        self._rest = ""
        self._region: Region | None = None
        self._fence = _NO_RUN
        self._run = _NO_RUN
        """The back ticks or tildes that the text ends with so far."""
        self._run_opens = False
        self._before = ""
        """The last character that was passed: what code is told by."""
        self._quoted = False
        """Whether a call began right behind a back tick: up to the next one, or an empty line, all of it is quoted."""
        self._blank = True
        """Whether the line has nothing but blanks in it so far."""

    def feed(self, text: str) -> list[Piece]:
        if len(text) <= _SLICE:
            return self._read(text, ended=False)
        return _merged([piece for one in _slices(text) for piece in self._read(one, ended=False)])

    def close(self) -> list[Piece]:
        """What was held back. A call without an end is one only where nothing is missing of it but that."""
        pieces = self._read("", ended=True)
        anew = 0
        while self._region is not None:
            closed = self._region.close()
            self._region = None
            self._passed_region(closed.pieces)
            pieces += closed.pieces
            anew += 1
            if anew < _ANEW:
                pieces += self._read(closed.rest, ended=True)
            elif closed.rest:
                pieces.append(Lost(closed.rest, "too many calls before it have no end"))
        return _merged(pieces)

    def _read(self, text: str, *, ended: bool) -> list[Piece]:
        pieces: list[Piece] = []
        waiting = [text]
        while waiting:
            text = waiting.pop()
            if not text and not self._rest:
                continue
            if self._region is None:
                text = self._words(self._rest + text, pieces, ended=ended and not waiting)
            closed = None if self._region is None else self._region.feed(text)
            if closed is None:
                continue
            self._region = None
            self._passed_region(closed.pieces)
            pieces += closed.pieces
            waiting += reversed(_slices(closed.rest))
        return _merged(pieces)

    def _words(self, text: str, pieces: list[Piece], *, ended: bool) -> str:
        """Passes on what is not a call. Behind it a region is open, and the text for it is given back."""
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
                self._pass(text[:place], pieces)
                self._region = match(self._declared)
                return text[place:]
            place += 1
        else:
            place = len(text)
        self._go_on(text, blank_from, place)
        self._pass(text[:place], pieces)
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
        """From one place to another: where that leaves the line, and what was quoted in it."""
        line = text.rfind("\n", start, stop) + 1
        self._blank = (bool(line) or self._blank) and not text[line or start : stop].strip()
        if self._quoted:
            before = text[start - 1] if start else self._before
            self._quoted = "\n\n" not in before + text[start:stop]

    def _behind_run(self, text: str, place: int) -> int:
        """The place behind a run of back ticks or tildes. Once it is whole it may open or close a fence."""
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
        words = last if isinstance(last, str) else last.written
        self._go_on(words, 0, len(words))
        self._before = words[-1:] or self._before

    def _pass(self, words: str, pieces: list[Piece]) -> None:
        if words:
            self._before = words[-1]
            pieces.append(words)


def _slices(text: str) -> list[str]:
    return [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]


def pieces_of(text: str, form: TextFormat, declared: Declared | None = None) -> list[Piece]:
    """All of a text at once."""
    scanner = CallScanner(form, declared)
    return _merged([*scanner.feed(text), *scanner.close()])


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Words that follow one another in one string, and no empty ones."""
    merged: list[Piece] = []
    run: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            run.append(piece)
            continue
        if joined := "".join(run):
            merged.append(joined)
        run = []
        merged.append(piece)
    if joined := "".join(run):
        merged.append(joined)
    return merged
