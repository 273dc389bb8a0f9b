"""A region that is written down as it is read: first this marker, then a name, then a value, then what closes it.

A reading is a generator over a tape. It yields where more text is needed and returns the pieces it found; what they do
not cover is handed back. No character is looked at more often than the longest marker is long, and what was passed is
never looked at again before the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from segue.wire.fields import JsonObject
from segue.wire.text.base import Closed, Found, Lost, Match, Opener, Piece, Region
from segue.wire.text.loose import NotReadableError, read_loose
from segue.wire.text.typed import Declared

__all__ = ["Marks", "Reading", "Tape", "broken", "call_of", "call_with", "closers", "opener", "value"]

_T = TypeVar("_T")
Reading: TypeAlias = Generator[None, None, _T]

_SPACE = re.compile(r"\s*+")
# A quote opens a string where a value or a key may begin: an apostrophe in a word does not.
_QUOTE = r"(?<=[\s{\[(,:=>|])[\"']"
_STRINGS = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in "\"'"}


class Marks:
    """Markers by kind, each in one or more spellings."""

    def __init__(self, kinds: Mapping[str, str | Iterable[str]]) -> None:
        spelled = {kind: (told,) if isinstance(told, str) else tuple(told) for kind, told in kinds.items()}
        self._kinds = {spelling: kind for kind, spellings in spelled.items() for spelling in spellings}
        ordered = sorted(self._kinds, key=len, reverse=True)
        alternatives = "|".join(map(re.escape, ordered)) or "(?!)"
        self.pattern = re.compile(alternatives)
        self.structure = re.compile(f"({alternatives})|[{{}}\\[\\]]|{_QUOTE}")
        self.kinds = tuple(spelled)
        self.longest = max(map(len, ordered), default=1)
        self.first = "".join({spelling[0] for spelling in ordered})
        self._beginnings = frozenset(one[:length] for one in ordered for length in range(1, len(one)))

    def kind(self, spelling: str) -> str:
        return self._kinds[spelling]

    def only(self, *kinds: str) -> Marks:
        return Marks({kind: [one for one, told in self._kinds.items() if told == kind] for kind in kinds})

    def joined(self, more: Mapping[str, str]) -> Marks:
        own = {kind: [one for one, told in self._kinds.items() if told == kind] for kind in self.kinds}
        return Marks({**own, **more})

    def may_begin(self, text: str, place: int = 0) -> bool:
        """Whether all that stands here is the beginning of a marker."""
        return len(text) - place < self.longest and text[place:] in self._beginnings

    def cut(self, text: str, place: int) -> int:
        """Where a marker begins that the end of the text cuts off, else the end."""
        for start in range(max(place, len(text) - self.longest + 1), len(text)):
            if text[start:] in self._beginnings:
                return start
        return len(text)


class Tape:
    """The text of a region. `place` is how far it is read; one character before that is kept at hand."""

    def __init__(self) -> None:
        self.text = ""
        self.place = 0
        self.ended = False
        self._kept: list[str] = []
        self._before = 0

    def add(self, text: str) -> None:
        passed = max(0, self.place - 1)
        if passed:
            self._kept.append(self.text[:passed])
            self._before += passed
        self.text = self.text[passed:] + text
        self.place -= passed

    @property
    def at(self) -> int:
        """The place, counted from the beginning of the region."""
        return self._before + self.place

    def whole(self) -> str:
        """All that was fed. It costs its length, so it is asked for at the end."""
        return "".join([*self._kept, self.text])

    def space(self) -> Reading[None]:
        """Past white space."""
        while True:
            found = _SPACE.match(self.text, self.place)
            self.place = self.place if found is None else found.end()
            if self.place < len(self.text) or self.ended:
                return
            yield

    def sign(self) -> Reading[str]:
        """The next character, not passed; empty at the end."""
        while self.place >= len(self.text) and not self.ended:
            yield
        return self.text[self.place : self.place + 1]

    def here(self, marks: Marks) -> Reading[str]:
        """The kind of the marker that stands here, not passed; empty if none does."""
        while True:
            may_grow = not self.ended and (self.place >= len(self.text) or marks.may_begin(self.text, self.place))
            found = None if may_grow else marks.pattern.match(self.text, self.place)
            if not may_grow:
                return "" if found is None else marks.kind(found[0])
            yield

    def take(self, marks: Marks) -> Reading[str]:
        """`here`, and past it."""
        kind = yield from self.here(marks)
        found = marks.pattern.match(self.text, self.place) if kind else None
        if found is not None:
            self.place = found.end()
        return kind

    def find(self, marks: Marks, within: int | None = None) -> Reading[str]:
        """To the next marker, and its kind; empty if the text ends before it, or it is not `within` so much text."""
        limit = None if within is None else self.at + within
        while True:
            found = self._next(marks.pattern, marks)
            self.place = self.place if found is None else found.start()
            if limit is not None and self.at > limit:
                self.place -= self.at - limit
                return ""
            if found is not None:
                return marks.kind(found[0])
            if self.ended:
                return ""
            yield

    def _next(self, pattern: re.Pattern[str], marks: Marks) -> re.Match[str] | None:
        """What comes next of a pattern that holds these markers. Without it, all is passed that can't be one."""
        found = pattern.search(self.text, self.place)
        if found is not None and (self.ended or found.start() <= len(self.text) - marks.longest):
            return found
        cut = len(self.text) if self.ended else marks.cut(self.text, self.place)
        if found is not None and found.start() < cut:
            return found
        self.place = cut
        return None

    def behind_string(self, quote: str) -> Reading[bool]:
        """Past a string whose opening quote is passed; whether it has an end."""
        while True:
            found = _STRINGS[quote].match(self.text, self.place)
            self.place = self.place if found is None else found.end()
            if self.text.startswith(quote, self.place):
                self.place += 1
                return True
            if self.ended:
                self.place = len(self.text)
                return False
            yield

    def balanced(
        self, marks: Marks, strings: Mapping[str, Marks] | None = None, parts: list[tuple[int, int]] | None = None
    ) -> Reading[str | None]:
        """Past a list or an object: None, or what stood where its end should be: a marker's kind, or "" at the end.

        `strings` are kinds of markers that begin a string, with the marker that ends it. `parts` gets the places of
        the lists and objects that it holds.
        """
        depth, begun = 0, 0
        while True:
            found = self._next(marks.structure, marks)
            if found is None:
                if self.ended:
                    return ""
                yield
                continue
            self.place, sign = found.end(), found[0]
            if found[1]:
                ends = (strings or {}).get(marks.kind(sign))
                if ends is None:
                    self.place = found.start()
                    return marks.kind(sign)
                if not (yield from self.find(ends)):
                    return ""
                yield from self.take(ends)
            elif sign in "\"'":
                if not (yield from self.behind_string(sign)):
                    return ""
            elif sign in "{[":
                depth += 1
                begun = self.at - 1 if depth == 2 else begun
            else:
                depth -= 1
                if depth <= 0:
                    return None
                if parts is not None and depth == 1:
                    parts.append((begun, self.at))


class _TapeRegion:
    """A reading, fed as the text comes."""

    def __init__(self, read: Callable[[Tape, Declared], Reading[list[Piece]]], declared: Declared) -> None:
        self._tape = Tape()
        self._reading = read(self._tape, declared)

    def feed(self, text: str) -> Closed | None:
        self._tape.add(text)
        return self._read_on()

    def close(self) -> Closed:
        self._tape.ended = True
        return self._read_on() or Closed([Lost(self._tape.whole(), "the call has no end")], "")

    def _read_on(self) -> Closed | None:
        try:
            next(self._reading)
        except StopIteration as done:
            pieces: list[Piece] = done.value
            told = sum(len(piece if isinstance(piece, str) else piece.written) for piece in pieces)
            return Closed(pieces, self._tape.whole()[told:])
        return None


def opener(marks: Marks, read: Callable[[Tape, Declared], Reading[list[Piece]]]) -> Opener:
    """Any of these markers begins what is read so."""

    def region(declared: Declared) -> Region:
        return _TapeRegion(read, declared)

    def match(text: str, place: int, _at_line_start: bool, ended: bool) -> Match:
        if not ended and marks.may_begin(text, place):
            return "perhaps"
        return "no" if marks.pattern.match(text, place) is None else region

    return Opener(marks.first, match)


def value(tape: Tape, marks: Marks) -> Reading[tuple[int, int] | None]:
    """Past a JSON value, however loosely written: where it stands, or None where its end is missing.

    A value that is no list, object or string goes to the next marker. Without one it has no end.
    """
    yield from tape.space()
    start = tape.at
    sign = yield from tape.sign()
    mark = yield from tape.here(marks)
    if mark:
        return start, start
    if sign in ("{", "["):
        return (start, tape.at) if (yield from tape.balanced(marks)) is None else None
    if sign in ('"', "'"):
        tape.place += 1
        return (start, tape.at) if (yield from tape.behind_string(sign)) else None
    return (start, tape.at) if (yield from tape.find(marks)) else None


def closers(tape: Tape, *stages: Marks) -> Reading[int]:
    """Past the markers that close a call, as far as they are there: where the last of them ends."""
    end = tape.at
    for stage in stages:
        yield from tape.space()
        if (yield from tape.take(stage)):
            end = tape.at
    return end


def broken(tape: Tape, closing: Marks, why: str) -> Reading[list[Piece]]:
    """What was read so far is no call; a marker that closes it belongs to it."""
    yield from tape.take(closing)
    return [Lost(tape.whole()[: tape.at], why)]


def call_of(name: str, text: str, written: str, raw_id: str | None = None) -> Piece:
    """The call of a name and of arguments as JSON; nothing at all means that there are none."""
    bare = text.strip()
    try:
        return call_with(name, read_loose(bare) if bare else None, written, raw_id)
    except NotReadableError as error:
        return Lost(written, f"not JSON: {error}")


def call_with(name: str, arguments: Any, written: str, raw_id: str | None = None) -> Piece:
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
        arguments = cast("JsonObject", inner)
    return Found(name, {} if arguments is None else arguments, raw_id=raw_id, written=written)
