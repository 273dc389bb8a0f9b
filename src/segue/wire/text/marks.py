"""Regions between special tokens: markers of several kinds, each of which may have several spellings.

What stands in a string, or in a value that ends with a marker of its own, is no marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from segue.wire.fields import JsonObject
from segue.wire.text.base import Found, Lost, Match, Opener, Piece, Region
from segue.wire.text.loose import NotReadableError, read_loose, repeated
from segue.wire.text.reader import Reader, Reading
from segue.wire.text.typed import Declared

__all__ = ["MarkedReader", "Marks", "call_of", "call_with", "opener"]

# A quote opens a string where a value or a key may begin: an apostrophe in a word does not.
_BEFORE_STRING = frozenset("{[,:")
_BEHIND_STRING = frozenset({*"}],:", ""})
_STRINGS = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in "\"'"}


class Marks:
    """Markers by kind. What finds them is made when it is first asked for: most formats are never met."""

    def __init__(self, kinds: Mapping[str, str | Iterable[str]]) -> None:
        self._spellings = {kind: (told,) if isinstance(told, str) else tuple(told) for kind, told in kinds.items()}
        self._kinds = {spelling: kind for kind, spellings in self._spellings.items() for spelling in spellings}
        self.longest = max(map(len, self._kinds), default=1)
        self.first, self.second = ("".join({one[sign] for one in self._kinds if one[sign:]}) for sign in (0, 1))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._alternatives)

    @cached_property
    def structure(self) -> re.Pattern[str]:
        return re.compile(f"({self._alternatives})|[{{}}\\[\\]\"']")

    @property
    def _alternatives(self) -> str:
        return "|".join(map(re.escape, sorted(self._kinds, key=len, reverse=True))) or "(?!)"

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(one[:length] for one in self._kinds for length in range(1, len(one)))

    def kind(self, spelling: str) -> str:
        return self._kinds[spelling]

    def only(self, *kinds: str) -> Marks:
        return Marks({kind: self._spellings.get(kind, ()) for kind in kinds})

    def but(self, kind: str) -> Marks:
        return Marks({other: told for other, told in self._spellings.items() if other != kind})

    def joined(self, more: Mapping[str, str]) -> Marks:
        return Marks({**self._spellings, **more})

    def may_begin(self, text: str, place: int = 0) -> bool:
        """Whether all that stands here is the beginning of a marker."""
        return len(text) - place < self.longest and text[place:] in self._beginnings

    def cut(self, text: str, place: int) -> int:
        """Where a marker begins that the end of the text cuts off, else the end."""
        for start in range(max(place, len(text) - self.longest + 1), len(text)):
            if text[start:] in self._beginnings:
                return start
        return len(text)


class MarkedReader(Reader):
    """A region that is read from marker to marker: all `marks` it knows, those that begin a call, and that close it."""

    marks: Marks
    opening: Marks
    closing: Marks

    def here(self, marks: Marks) -> Reading[str]:
        """The kind of the marker that comes next, or nothing."""
        while not self.ended and (self._at == len(self._text) or marks.may_begin(self._text, self._at)):
            yield
        found = marks.pattern.match(self._text, self._at)
        return "" if found is None else marks.kind(found[0])

    def past(self, marks: Marks) -> Reading[str]:
        """Takes the marker that comes next, if one of these does, and gives its kind."""
        kind = yield from self.here(marks)
        found = marks.pattern.match(self._text, self._at)
        self.take(0 if found is None else found.end() - self._at)
        return kind

    def find(self, marks: Marks, within: int | None = None) -> Reading[str]:
        """Takes all before the next marker, and gives its kind; nothing if it does not come `within` so much text."""
        left = within
        while True:
            found = self._next(marks.pattern, marks, self._at)
            stop = self._safe_end(marks, self._at) if found is None else found.start()
            length = stop - self._at
            if left is not None and length > left:
                self.take(left)
                return ""
            left = None if left is None else left - length
            self.take(length)
            if found is not None:
                return marks.kind(found[0])
            if self.ended:
                return ""
            yield

    def balanced(self, strings: Mapping[str, Marks] | None = None) -> Reading[bool]:
        """Takes a list or an object, and gives whether it is whole: no marker may stand in it, but in strings.

        `strings` are kinds of markers that begin a string, with the marker that ends it.
        """
        depth, place = 0, self._at
        while True:
            found = self._next(self.marks.structure, self.marks, place)
            if found is None:
                self.take(self._safe_end(self.marks, place) - self._at)
                if self.ended:
                    return False
                yield
                place = self._at
                continue
            sign, start, place = found[0], found.start(), found.end()
            ends = (strings or {}).get(self.marks.kind(sign)) if found[1] else None
            if found[1] and ends is None:
                self.take(start - self._at)
                return False
            if ends is not None or sign in _STRINGS:
                if ends is None and not self._opens_string(start):
                    continue
                self.take(place - self._at)
                if not (yield from self._whole_string(sign if ends is None else ends)):
                    return False
                place = self._at
            else:
                depth += 1 if sign in "{[" else -1
                if depth <= 0:
                    self.take(place - self._at)
                    return True

    def _whole_string(self, ends: str | Marks) -> Reading[bool]:
        """Takes a string, and gives whether what stands behind it may do so. If not, a call may have begun in it."""
        start = self.mark
        if isinstance(ends, str):
            is_whole = yield from self.string(ends)
        else:
            is_whole = bool((yield from self.find(ends)) and (yield from self.past(ends)))
        if is_whole:
            yield from self.space()
            is_whole = (yield from self.sign()) in _BEHIND_STRING or bool((yield from self.here(self.marks)))
        if not is_whole:
            begun = self.opening.pattern.search(self.since(start))
            if begun is not None:
                self.give_back(start)
                self.take(begun.start())
        return is_whole

    def string(self, quote: str) -> Reading[bool]:
        """Takes a string whose first quote was taken; whether it has an end."""
        while True:
            found = _STRINGS[quote].match(self._text, self._at)
            self.take(0 if found is None else found.end() - self._at)
            if self._text.startswith(quote, self._at):
                self.take(1)
                return True
            if self.ended:
                self.take(len(self._text) - self._at)
                return False
            yield

    def value(self) -> Reading[str | None]:
        """Takes a JSON value, however loosely written; None if its end is missing.

        One that is no list, object or string goes to the next marker. Without that it has no end.
        """
        yield from self.space()
        start = self.mark
        if (yield from self.here(self.marks)):
            return ""
        sign = yield from self.sign()
        if sign in ("{", "["):
            is_whole = yield from self.balanced()
        elif sign in _STRINGS:
            self.take(1)
            is_whole = yield from self._whole_string(sign)
        else:
            is_whole = bool((yield from self.find(self.marks)))
        return self.since(start) if is_whole else None

    def closers(self, *stages: Marks) -> Reading[None]:
        """Takes the markers that close a call, as far as they are there."""
        for stage in stages:
            before = self.mark
            yield from self.space()
            if not (yield from self.past(stage)):
                self.give_back(before)

    def broken(self, why: str) -> Reading[list[Piece]]:
        """What was taken is no call, nor what stands before the next marker; one that closes it belongs to it."""
        yield from self.find(self.marks)
        yield from self.past(self.closing)
        return [self.lost(why)]

    def _next(self, pattern: re.Pattern[str], marks: Marks, place: int) -> re.Match[str] | None:
        """What comes next of a pattern that holds these markers, unless the end of the text may cut one off there."""
        found = pattern.search(self._text, place)
        if found is None or self.ended or found.start() <= len(self._text) - marks.longest:
            return found
        return found if found.start() < marks.cut(self._text, place) else None

    def _safe_end(self, marks: Marks, place: int) -> int:
        return len(self._text) if self.ended else marks.cut(self._text, place)

    def _opens_string(self, place: int) -> bool:
        """Whether what stands before a quote lets a string begin there."""
        while place and self._text[place - 1].isspace():
            place -= 1
        if place:
            return self._text[place - 1] in _BEFORE_STRING
        before = next((text for text in reversed(self._taken) if not text.isspace() and text), "")
        return before.rstrip()[-1:] in _BEFORE_STRING


def opener(marks: Marks, region: Callable[[Declared], Region]) -> Opener:
    """Any of these markers begins such a region."""

    def match(text: str, place: int, _at_line_start: bool, ended: bool) -> Match:
        if not ended and marks.may_begin(text, place):
            return "perhaps"
        return "no" if marks.pattern.match(text, place) is None else region

    return Opener(marks.first, match, marks.second)


def call_of(name: str, text: str, written: str, raw_id: str | None = None) -> Piece:
    """The call of a name and of arguments as JSON; nothing at all means that there are none."""
    bare = text.strip()
    try:
        value = read_loose(bare) if bare else None
    except NotReadableError as error:
        return Lost(written, f"not JSON: {error}")
    return call_with(name, value, written, raw_id, repeated(bare, value))


def call_with(name: str, arguments: Any, written: str, raw_id: str | None = None, twice: str | None = None) -> Piece:
    """The call of a name and of arguments as a value; a string is JSON once more, or free text."""
    name = name.strip()
    if not name or len(name.split()) > 1:
        return Lost(written, "no tool is named")
    if isinstance(arguments, str):
        try:
            inner = read_loose(arguments.strip())
        except NotReadableError:
            inner = None
        if not isinstance(inner, dict):
            return Found(name, None, arguments, raw_id, written)
        told = cast("JsonObject", inner)
        twice = twice or repeated(arguments, told)
        arguments = told
    return Found(name, {} if arguments is None else arguments, raw_id=raw_id, written=written, twice=twice)
