"""Generates a text that matches a simple regular expression: literals, classes, groups, alternatives and counts.

Returns None for a pattern that it can't parse. Lookarounds are ignored, so the text must be validated.
"""

from __future__ import annotations

import re

_CLASSES = {"d": "0123456789", "w": "abcdefghijklmnopqrstuvwxyz0123456789_", "s": " "}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ _-.,:;/@#+!?()"
_COUNT = re.compile(r"(?:\{(?P<least>\d+)(?P<range>,(?P<most>\d*))?\}|(?P<sign>[*+?]))[?+]?")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w*>)?(?!\?)")
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_CODE_POINT = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_MAX_LENGTH = 2_000
_MAX_RANGE = 200


class _UnsupportedError(Exception):
    pass


def make_text(pattern: str, *, length: int = 0) -> str | None:
    """Return a text for the pattern, of at least this length if its open counts allow it."""
    text = _make_text(pattern, 0)
    return text if text is None or len(text) >= length else _make_text(pattern, length - len(text))


def _make_text(pattern: str, more: int) -> str | None:
    parser = _Parser(pattern, more)
    try:
        text = parser.alternatives()
    except (_UnsupportedError, RecursionError):
        return None
    return None if parser.rest or len(text) > _MAX_LENGTH else text


class _Parser:
    """Parses the pattern and generates its text. `more` is added to the least number of the first open count."""

    def __init__(self, pattern: str, more: int) -> None:
        self.rest = pattern
        self._more = more

    def _next(self) -> str:
        if not self.rest:
            raise _UnsupportedError
        sign, self.rest = self.rest[0], self.rest[1:]
        return sign

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.rest)
        if found:
            self.rest = self.rest[found.end() :]
        return found

    def alternatives(self) -> str:
        """Return the text of the first alternative."""
        first = self._sequence()
        while self.rest.startswith("|"):
            self._next()
            self._sequence()
        return first

    def _sequence(self) -> str:
        text = ""
        while self.rest and self.rest[0] not in "|)":
            text += self._repeat(self._atom())
        return text

    def _atom(self) -> str:
        if self._match(_LOOKAROUND):
            self._group()
            return ""
        if self._match(_GROUP):
            return self._group()
        sign = self._next()
        match sign:
            case "^" | "$":
                return ""
            case "[":
                return self._class()[:1]
            case "\\":
                return self._escape()[:1]
            case "(" | "*" | "+" | "?" | "{":
                raise _UnsupportedError
            case _:
                return "a" if sign == "." else sign

    def _group(self) -> str:
        text = self.alternatives()
        if self._next() != ")":
            raise _UnsupportedError
        return text

    def _repeat(self, text: str) -> str:
        count = self._match(_COUNT)
        if count is None:
            return text
        times = int(count["least"] or count["sign"] == "+")
        most = int(count["most"] or times + self._more) if count["range"] or count["sign"] in ("*", "+") else times
        if text and most > times and self._more:
            times, self._more = min(most, times + self._more), 0
        if times * len(text) > _MAX_LENGTH:
            raise _UnsupportedError
        return text * times

    def _escape(self) -> str:
        """Return the characters that an escape matches; none for a word boundary."""
        if code := self._match(_CODE_POINT):
            return chr(int(code[1] or code[2], 16))
        sign = self._next()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.lower() in _CLASSES:
            return "".join(other for other in _PLAIN if other not in _CLASSES[sign.lower()])
        if sign.isalnum() and sign not in "bB" and sign not in _CONTROLS:
            raise _UnsupportedError
        return "" if sign in "bB" else _CONTROLS.get(sign, sign)

    def _class(self) -> str:
        """Return the characters that a class matches."""
        inverted = self.rest.startswith("^")
        if inverted:
            self._next()
        signs = self._class_member()
        while not self.rest.startswith("]"):
            signs += self._class_member()
        self._next()
        if inverted:
            signs = "".join(other for other in _PLAIN if other not in signs)
        if not signs:
            raise _UnsupportedError
        return signs

    def _class_member(self) -> str:
        sign = self._next()
        first = self._escape() if sign == "\\" else sign
        if len(first) != 1 or not self.rest.startswith("-") or self.rest[1:2] in ("]", ""):
            return first
        self._next()
        sign = self._next()
        last = self._escape() if sign == "\\" else sign
        return "".join(map(chr, range(ord(first), min(ord(last[:1] or first), ord(first) + _MAX_RANGE) + 1)))
