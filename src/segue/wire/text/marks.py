"""Parsing of text between special tokens. Tokens have a kind, and each kind may have several variants.

A token inside a string, or inside a value with an end token of its own, does not count.
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

# A quote opens a string only where a value or a key may begin; an apostrophe in a word does not.
_BEFORE_STRING = frozenset("{[,:")
_BEHIND_STRING = frozenset({*"}],:", ""})
_STRINGS = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in "\"'"}


class Marks:
    """Special tokens by kind. The patterns are compiled on first use, since most formats are never used."""

    def __init__(self, kinds: Mapping[str, str | Iterable[str]]) -> None:
        self._spellings = {kind: (one,) if isinstance(one, str) else tuple(one) for kind, one in kinds.items()}
        self._kinds = {token: kind for kind, tokens in self._spellings.items() for token in tokens}
        self.longest = max(map(len, self._kinds), default=1)
        self.first, self.second = ("".join({one[place] for one in self._kinds if one[place:]}) for place in (0, 1))

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

    def kind(self, token: str) -> str:
        return self._kinds[token]

    def only(self, *kinds: str) -> Marks:
        return Marks({kind: self._spellings.get(kind, ()) for kind in kinds})

    def but(self, kind: str) -> Marks:
        return Marks({other: tokens for other, tokens in self._spellings.items() if other != kind})

    def joined(self, more: Mapping[str, str]) -> Marks:
        return Marks({**self._spellings, **more})

    def may_begin(self, text: str, place: int = 0) -> bool:
        """True if the text from here on is an incomplete token."""
        return len(text) - place < self.longest and text[place:] in self._beginnings

    def cut(self, text: str, place: int) -> int:
        """The place of an incomplete token at the end of the text, else the end."""
        for start in range(max(place, len(text) - self.longest + 1), len(text)):
            if text[start:] in self._beginnings:
                return start
        return len(text)


class MarkedReader(Reader):
    """A region read token by token: `tokens` are all that it uses, `opening` begin a call, `closing` end one."""

    marks: Marks
    opening: Marks
    closing: Marks

    def here(self, marks: Marks) -> Reading[str]:
        """The kind of the next token, or an empty string."""
        while not self.ended and (self._at == len(self._text) or marks.may_begin(self._text, self._at)):
            yield
        found = marks.pattern.match(self._text, self._at)
        return "" if found is None else marks.kind(found[0])

    def past(self, marks: Marks) -> Reading[str]:
        """Consume the next token if it is one of these, and return its kind."""
        kind = yield from self.here(marks)
        found = marks.pattern.match(self._text, self._at)
        self.take(0 if found is None else found.end() - self._at)
        return kind

    def find(self, marks: Marks, within: int | None = None) -> Reading[str]:
        """Consume the text before the next token and return its kind; empty if none comes `within` the limit."""
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
        """Consume a list or an object and return whether it is complete; outside of strings it may hold no token.

        `strings` maps kinds of tokens that begin a string to the tokens that end it.
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
        """Consume a string and return whether it is complete and followed by valid JSON.

        If not, rewind to a call that begins inside of it.
        """
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
        """Consume a string after its first quote; return whether it is terminated."""
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
        """Consume a lenient JSON value; None if it is not terminated.

        A value other than a list, object or string extends to the next token.
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
        """Consume the tokens that close a call, as far as they are present."""
        for stage in stages:
            before = self.mark
            yield from self.space()
            if not (yield from self.past(stage)):
                self.give_back(before)

    def broken(self, why: str) -> Reading[list[Piece]]:
        """Return the text up to the next token as a broken call, with that token if it closes the call."""
        yield from self.find(self.marks)
        yield from self.past(self.closing)
        return [self.lost(why)]

    def _next(self, pattern: re.Pattern[str], marks: Marks, place: int) -> re.Match[str] | None:
        """The next match, unless the text may end inside a token there."""
        found = pattern.search(self._text, place)
        if found is None or self.ended or found.start() <= len(self._text) - marks.longest:
            return found
        return found if found.start() < marks.cut(self._text, place) else None

    def _safe_end(self, marks: Marks, place: int) -> int:
        return len(self._text) if self.ended else marks.cut(self._text, place)

    def _opens_string(self, place: int) -> bool:
        """True if a string may begin at this quote, judged by the character before it."""
        while place and self._text[place - 1].isspace():
            place -= 1
        if place:
            return self._text[place - 1] in _BEFORE_STRING
        before = next((text for text in reversed(self._taken) if not text.isspace() and text), "")
        return before.rstrip()[-1:] in _BEFORE_STRING


def opener(marks: Marks, region: Callable[[Declared], Region]) -> Opener:
    """An opener for a region that begins with any of these tokens."""

    def match(text: str, place: int, _at_line_start: bool, ended: bool) -> Match:
        if not ended and marks.may_begin(text, place):
            return "perhaps"
        return "no" if marks.pattern.match(text, place) is None else region

    return Opener(marks.first, match, marks.second)


def call_of(name: str, text: str, written: str, raw_id: str | None = None) -> Piece:
    """A call from its name and JSON arguments; empty text means no arguments."""
    bare = text.strip()
    try:
        value = read_loose(bare) if bare else None
    except NotReadableError as error:
        return Lost(written, f"arguments: {error}")
    return call_with(name, value, written, raw_id, repeated(bare, value))


def call_with(name: str, arguments: Any, written: str, raw_id: str | None = None, twice: str | None = None) -> Piece:
    """A call from its name and parsed arguments; a string is parsed as JSON once more, or kept as free text."""
    name = name.strip()
    if not name or len(name.split()) > 1:
        return Lost(written, "no tool name")
    if isinstance(arguments, str):
        try:
            inner = read_loose(arguments.strip())
        except NotReadableError:
            inner = None
        if not isinstance(inner, dict):
            return Found(name, None, arguments, raw_id, written)
        parsed = cast("JsonObject", inner)
        twice = twice or repeated(arguments, parsed)
        arguments = parsed
    return Found(name, {} if arguments is None else arguments, raw_id=raw_id, written=written, twice=twice)
