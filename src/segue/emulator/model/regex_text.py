"""Generates a text that matches a simple regular expression: literals, classes, groups, alternatives and counts.

Returns None for a pattern that it can't parse; the text must be checked against the pattern.
"""

from __future__ import annotations

import re

__all__ = ["make_text"]

_CLASSES = {"d": "0123456789", "w": "abcdefghijklmnopqrstuvwxyz0123456789_", "s": " "}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ _-.,:;/@#+!?()"
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w*>)?(?!\?)")
_LOOK = re.compile(r"\(\?<?[=!]")
_CODE_POINT = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_LONGEST = 2_000


class _UnreadableError(Exception):
    pass


def make_text(pattern: str, *, length: int = 0) -> str | None:
    """A text that the pattern may be found in, of at least this length if open counts allow it."""
    text = _make_text(pattern, 0)
    return text if text is None or len(text) >= length else _make_text(pattern, length - len(text))


def _make_text(pattern: str, more: int) -> str | None:
    reader = _PatternReader(pattern, more)
    try:
        text = reader.alternatives()
    except (_UnreadableError, RecursionError):
        return None
    return None if reader.has_more() or len(text) > _LONGEST else text


class _PatternReader:
    """Reads and writes at once. `more` is what the first open count adds to its least number."""

    def __init__(self, pattern: str, more: int) -> None:
        self._pattern = pattern
        self._at = 0
        self._more = more

    def has_more(self) -> bool:
        return self._at < len(self._pattern)

    def _next(self) -> str:
        if not self.has_more():
            raise _UnreadableError
        self._at += 1
        return self._pattern[self._at - 1]

    def _accept(self, text: str) -> bool:
        if self._pattern.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def alternatives(self) -> str:
        """The first of the alternatives; the others are read over."""
        first = self._sequence()
        while self._accept("|"):
            self._sequence()
        return first

    def _sequence(self) -> str:
        text: list[str] = []
        while self.has_more() and self._pattern[self._at] not in "|)":
            piece = self._read_atom()
            text.append(self._read_count(piece))
        return "".join(text)

    def _read_atom(self) -> str:
        if self._accept("^") or self._accept("$"):
            return ""
        if _LOOK.match(self._pattern, self._at):
            # What it looks for is left to luck: the text is checked in the end.
            self._at = self._pattern.index("(", self._at) + 1
            self._at += 3 if self._pattern.startswith("?<", self._at) else 2
            self.alternatives()
            return self._close_group("")
        if group := _GROUP.match(self._pattern, self._at):
            self._at = group.end()
            return self._close_group(self.alternatives())
        sign = self._next()
        if sign == "[":
            return self._read_class()[:1]
        if sign == "\\":
            return self._read_escape()[:1]
        if sign in "(*+?{":
            raise _UnreadableError
        return "a" if sign == "." else sign

    def _close_group(self, text: str) -> str:
        if self._next() != ")":
            raise _UnreadableError
        return text

    def _read_count(self, piece: str) -> str:
        count = _COUNT.match(self._pattern, self._at)
        if self._accept("*"):
            least, open_ended = 0, True
        elif self._accept("+"):
            least, open_ended = 1, True
        elif self._accept("?"):
            least, open_ended = 0, False
        elif count:
            self._at = count.end()
            least, open_ended = int(count[1]), count[2] is not None and count[3] != count[1]
        else:
            return piece
        if not self._accept("?"):
            self._accept("+")
        times = least
        if open_ended and self._more and piece:
            most = int(count[3]) if count and count[3] else least + self._more
            times, self._more = min(most, least + self._more), 0
        if times * len(piece) > _LONGEST:
            raise _UnreadableError
        return piece * times

    def _read_escape(self) -> str:
        """The characters that an escape stands for; an empty one for a place."""
        sign = self._next()
        if sign in "bB":
            return ""
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.lower() in _CLASSES:
            return "".join(one for one in _PLAIN if one not in _CLASSES[sign.lower()])
        if code := _CODE_POINT.match(self._pattern, self._at - 1):
            self._at = code.end()
            return chr(int(code[1] or code[2], 16))
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign.isalnum():
            raise _UnreadableError
        return sign

    def _read_class(self) -> str:
        inverted = self._accept("^")
        found: list[str] = []
        first = True
        while first or self._pattern[self._at : self._at + 1] != "]":
            first = False
            sign = self._next()
            chosen = self._read_escape() if sign == "\\" else sign
            if len(chosen) == 1 and self._pattern[self._at : self._at + 1] == "-" and not self._ends_after_dash():
                self._at += 1
                last = self._next()
                last = self._read_escape() if last == "\\" else last
                chosen = "".join(map(chr, range(ord(chosen), min(ord(last[0]), ord(chosen) + 200) + 1)))
            found.append(chosen)
        self._at += 1
        signs = "".join(found)
        if inverted:
            signs = "".join(one for one in _PLAIN if one not in signs)
        if not signs:
            raise _UnreadableError
        return signs

    def _ends_after_dash(self) -> bool:
        return self._pattern[self._at + 1 : self._at + 2] in ("]", "")
