"""Text in, words and calls out, as it comes: what may not be a call is passed on at once, and no half marker is shown.

What stands in a code fence, or behind a back tick, is quoted and no call.
"""

from __future__ import annotations

import re

from segue.wire.text.base import Found, Match, Piece, Region, TextFormat
from segue.wire.text.typed import Declared

__all__ = ["CallScanner", "Piece", "pieces_of"]

_FENCES = ("```", "~~~")
# What stands behind a call is looked at anew: so much of it at a time, and not all that there is.
_SLICE = 4096


class CallScanner:
    """Reads one text. Words come as strings, joined as far as nothing stands between them."""

    def __init__(self, form: TextFormat, declared: Declared | None = None) -> None:
        self._declared = declared or Declared()
        self._openers = form.openers
        signs = "".join({sign for opener in form.openers for sign in opener.first})
        self._candidate = re.compile(f"[{re.escape(signs)}`~]")
        self._rest = ""
        self._region: Region | None = None
        self._fence = ""
        self._before = "\n"
        """The last character that was passed: what a line, and code, are told by."""

    def feed(self, text: str) -> list[Piece]:
        if len(text) <= _SLICE:
            return self._read(text, ended=False)
        slices = [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]
        return _merged([piece for one in slices for piece in self._read(one, ended=False)])

    def close(self) -> list[Piece]:
        """What was held back. A call without an end is one only where nothing is missing of it but that."""
        pieces = self._read("", ended=True)
        while self._region is not None:
            closed = self._region.close()
            self._region = None
            pieces += closed.pieces
            pieces += self._read(closed.rest, ended=True)
        return _merged(pieces)

    def _read(self, text: str, *, ended: bool) -> list[Piece]:
        pieces: list[Piece] = []
        while text or self._rest:
            if self._region is None:
                text = self._words(self._rest + text, pieces, ended=ended)
                if self._region is None:
                    break
            closed = self._region.feed(text)
            if closed is None:
                break
            self._region = None
            pieces += closed.pieces
            if closed.pieces and isinstance(closed.pieces[-1], Found):
                self._before = " "
            text = closed.rest
        return _merged(pieces)

    def _words(self, text: str, pieces: list[Piece], *, ended: bool) -> str:
        """Passes on what is not a call. Behind it a region is open, and the text for it is given back."""
        self._rest = ""
        place = passed = 0
        while (found := self._candidate.search(text, place)) is not None:
            place = found.start()
            before = text[place - 1] if place else self._before
            if found[0] in "`~":
                after = self._behind_fence(text, place, before, ended=ended)
                if after is None:
                    break
                place = after
                continue
            match = "no" if self._fence or before == "`" else self._match(text, place, before, ended=ended)
            if match == "perhaps":
                break
            if match != "no":
                self._pass(text[passed:place], pieces)
                self._region = match(self._declared)
                return text[place:]
            place += 1
        else:
            place = len(text)
        self._pass(text[passed:place], pieces)
        self._rest = text[place:]
        return ""

    def _match(self, text: str, place: int, before: str, *, ended: bool) -> Match:
        verdict: Match = "no"
        for opener in self._openers:
            if text[place] not in opener.first:
                continue
            match = opener.match(text, place, before == "\n", ended)
            if match == "perhaps":
                verdict = match
            elif match != "no":
                return match
        return verdict

    def _behind_fence(self, text: str, place: int, before: str, *, ended: bool) -> int | None:
        """The place behind a run of back ticks or tildes, which may open or close a fence; None if it may go on."""
        sign = text[place]
        stop = place
        while stop < len(text) and text[stop] == sign:
            stop += 1
        if stop == len(text) and not ended and stop - place < len(_FENCES[0]) and before == "\n":
            return None
        if stop - place >= len(_FENCES[0]) and (before == "\n" or self._fence):
            if not self._fence:
                self._fence = sign
            elif self._fence == sign:
                self._fence = ""
        return stop

    def _pass(self, words: str, pieces: list[Piece]) -> None:
        if words:
            self._before = words[-1]
            pieces.append(words)


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
