"""Splits streamed text into segments. Text that cannot begin a call is passed on at once, markers never in part.

Text in a code fence or after a backtick is quoted and never a call.
"""

from __future__ import annotations

import re
from functools import cache

from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import BrokenCall, FoundCall, Match, Opener, Region, Segment
from segue.wire.text.text_format import TextFormat

_MIN_FENCE = 3
_FENCE_RUN = {sign: re.compile(rf"{sign}*+") for sign in "`~"}
_NO_RUN = ("", 0)
# How often the text after an unterminated call is scanned again at the end. Each time may scan all of it.
_MAX_RESCANS = 16
# The text after a call is scanned again, in slices of this size.
_SLICE_SIZE = 4096


@cache
def _compile_candidates(openers: tuple[Opener, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile patterns for positions where a call or fence may begin, or backticks continue; and for quoted text.

    Each alternative begins with a literal character, so that `re` can search for it quickly.
    """
    follows = {opener: opener.second_chars and rf"(?=[{re.escape(opener.second_chars)}]|\Z)" for opener in openers}
    calls = [re.escape(sign) + follows[opener] for opener in openers for sign in opener.first_chars]
    runs = [rf"{sign}(?<!{sign * 2})(?={sign * (_MIN_FENCE - 1)}|{sign}*+\Z)" for sign in _FENCE_RUN]
    return re.compile("|".join([*calls, *runs])), re.compile("|".join([*calls, *_FENCE_RUN]))


class CallScanner:
    """Scans one text. Adjacent text is merged into one string."""

    def __init__(self, text_format: TextFormat, declared: DeclaredTools | None = None) -> None:
        self._declared = declared or DeclaredTools()
        self._openers = text_format.openers
        self._candidate, self._quoted_candidate = _compile_candidates(text_format.openers)
        self._rest = ""
        self._region: Region | None = None
        self._fence = _NO_RUN
        self._run = _NO_RUN
        """The backticks or tildes that the text ends with so far."""
        self._run_opens = False
        self._last_char = ""
        """The last character that was passed on; after a backtick, text is quoted."""
        self._in_backticks = False
        """True after a call that began right after a backtick: up to the next one, or an empty line, all is quoted."""
        self._line_is_blank = True
        """Whether the line has only blanks so far."""
        self._is_rejected = False
        """Whether no call begins at the start of the text: a region was rejected there."""

    def feed(self, text: str) -> list[Segment]:
        if len(text) <= _SLICE_SIZE:
            return self._scan(text, ended=False)
        return _merge_text([segment for piece in _split_slices(text) for segment in self._scan(piece, ended=False)])

    def close(self) -> list[Segment]:
        """Return the text held back. An unterminated call counts only if nothing but its end is missing."""
        segments = self._scan("", ended=True)
        rescans = 0
        while self._region is not None:
            closed = self._region.close()
            self._region = None
            self._end_region(closed.segments)
            segments += closed.segments
            rescans += 1
            if rescans < _MAX_RESCANS:
                segments += self._scan(closed.rest, ended=True)
            elif closed.rest:
                segments.append(BrokenCall(closed.rest, "too many unterminated calls before it"))
        return _merge_text(segments)

    def _scan(self, text: str, *, ended: bool) -> list[Segment]:
        segments: list[Segment] = []
        waiting = [text]
        while waiting:
            text = waiting.pop()
            if not text and not self._rest:
                continue
            if self._region is None:
                text = self._scan_text(self._rest + text, segments, ended=ended and not waiting)
            closed = None if self._region is None else self._region.feed(text)
            if closed is None:
                continue
            self._region = None
            self._end_region(closed.segments)
            segments += closed.segments
            waiting += reversed(_split_slices(closed.rest))
        return _merge_text(segments)

    def _scan_text(self, text: str, segments: list[Segment], *, ended: bool) -> str:
        """Pass on text before a call; then open a region and return its text."""
        self._rest = ""
        position = self._skip_run(text, 0) if self._run[1] else 0
        blank_from = 0
        while (candidate := self._next_candidate(text, position)) is not None:
            position = candidate.start()
            self._track_line(text, blank_from, position)
            blank_from = position
            previous_char = text[position - 1] if position else self._last_char
            is_run = text[position] in _FENCE_RUN
            is_rejected, self._is_rejected = self._is_rejected and not position, False
            is_quoted = bool(self._fence[1]) or self._in_backticks or (is_run and not self._line_is_blank)
            match = "no" if is_quoted or is_rejected else None
            match = match or self._match(text, position, ended=ended)
            if is_run and match == "no":
                position = self._skip_run(text, position)
                self._line_is_blank = self._in_backticks = False
                blank_from = position
                continue
            if match == "perhaps":
                break
            if match != "no" and previous_char == "`":
                self._in_backticks = True
            elif match != "no":
                self._emit_text(text[:position], segments)
                self._region = match(self._declared)
                return text[position:]
            position += 1
        else:
            position = len(text)
        self._track_line(text, blank_from, position)
        self._emit_text(text[:position], segments)
        self._rest = text[position:]
        return ""

    def _next_candidate(self, text: str, position: int) -> re.Match[str] | None:
        return (self._quoted_candidate if self._in_backticks else self._candidate).search(text, position)

    def _match(self, text: str, position: int, *, ended: bool) -> Match:
        verdict: Match = "no"
        for opener in self._openers:
            if text[position] not in opener.first_chars:
                continue
            match = opener.match(text, position, self._line_is_blank, ended)
            if match == "perhaps":
                verdict = match
            elif match != "no":
                return match
        return verdict

    def _track_line(self, text: str, start: int, stop: int) -> None:
        """Track the start of the line and the quoting from one position to another."""
        line = text.rfind("\n", start, stop) + 1
        self._line_is_blank = (bool(line) or self._line_is_blank) and not text[line or start : stop].strip()
        if self._in_backticks:
            previous_char = text[start - 1] if start else self._last_char
            self._in_backticks = "\n\n" not in previous_char + text[start:stop]

    def _skip_run(self, text: str, position: int) -> int:
        """Return the position after a run of backticks or tildes. A complete run may open or close a fence."""
        if not self._run[1]:
            self._run = (text[position], 0)
            self._run_opens = self._line_is_blank
        sign, length = self._run
        run = _FENCE_RUN[sign].match(text, position)
        stop = run.end() if run is not None else position
        length += stop - position
        if stop == len(text):
            self._run = (sign, length)
            return stop
        if not self._fence[1]:
            if length >= _MIN_FENCE and self._run_opens:
                self._fence = (sign, length)
        elif sign == self._fence[0] and length >= self._fence[1] and text[stop].isspace():
            self._fence = _NO_RUN
        self._run = _NO_RUN
        return stop

    def _end_region(self, segments: list[Segment]) -> None:
        self._is_rejected = not segments
        last = segments[-1] if segments else ""
        if isinstance(last, FoundCall):
            self._last_char, self._line_is_blank = " ", False
            return
        text = last if isinstance(last, str) else last.raw_text
        self._track_line(text, 0, len(text))
        self._last_char = text[-1:] or self._last_char

    def _emit_text(self, text: str, segments: list[Segment]) -> None:
        if text:
            self._last_char = text[-1]
            segments.append(text)


def _split_slices(text: str) -> list[str]:
    return [text[start : start + _SLICE_SIZE] for start in range(0, len(text), _SLICE_SIZE)]


def scan_text(text: str, text_format: TextFormat, declared: DeclaredTools | None = None) -> list[Segment]:
    """Scan a whole text."""
    scanner = CallScanner(text_format, declared)
    return _merge_text([*scanner.feed(text), *scanner.close()])


def _merge_text(segments: list[Segment]) -> list[Segment]:
    """Merge adjacent strings, without empty ones."""
    merged: list[Segment] = []
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
