"""Lenient JSON, as models write it: trailing commas, Python constants, single quotes, line breaks in strings."""

from __future__ import annotations

import re
from typing import Any

from segue.canonical.json import MAX_DEPTH, estimate_depth, find_duplicate_key, parse_argument_text

__all__ = ["InvalidJsonError", "JsonScanner", "find_repeated_key", "parse_lenient"]

_TOKEN = re.compile(
    r"""
    (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
    | (?P<unclosed>["'].*+)
    | (?P<key>[A-Za-z_][A-Za-z0-9_]*+(?=\s*+:))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<comma>,\s*+(?=[}\])]))
    | (?P<bracket>[()])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null", "nan": "null", "NaN": "null", "undefined": "null"}
_CONTROL = {ord(sign): f"\\u{ord(sign):04x}" for sign in map(chr, range(32))}
_ESCAPE = re.compile(r'\\(?:x(?P<hex>[0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|(?P<other>.))|"', re.DOTALL)


class InvalidJsonError(ValueError):
    """Text that is not JSON, even leniently."""


def parse_lenient(text: str) -> Any:
    """Parse strict JSON, or else lenient JSON."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_DEPTH and estimate_depth(data) > MAX_DEPTH:
        raise InvalidJsonError("JSON nested too deeply")
    for written in (text, _TOKEN.sub(_to_strict, text)):
        value, exact = parse_argument_text(written)
        if exact is None:
            return value
    raise InvalidJsonError("invalid JSON")


def find_repeated_key(text: str, value: object) -> str | None:
    """A key that occurs twice in an object of lenient JSON; `value` is its parsed value."""
    strict = text if parse_argument_text(text)[1] is None else _TOKEN.sub(_to_strict, text)
    return find_duplicate_key(strict, value)


def _to_strict(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "comma":
            return ""
        case "key":
            return f'"{found[0]}"'
        case "word":
            return _CONSTANTS.get(found[0], found[0])
        case "bracket":
            return "[" if found[0] == "(" else "]"
        case "unclosed":
            return found[0]
        case _:
            return '"' + _ESCAPE.sub(_to_strict_escape, found[0][1:-1]).translate(_CONTROL) + '"'


def _to_strict_escape(found: re.Match[str]) -> str:
    """Keep JSON's escapes; a backslash before another character becomes a literal backslash."""
    if found[0] == '"':
        return '\\"'
    if code := found["hex"]:
        return f"\\u00{code}"
    other = found["other"]
    if other is None or other in '"\\/bfnrt':
        return found[0]
    return other if other in "'\n" else f"\\\\{other}"


_STRING_REST = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in "\"'"}
# Characters that may precede a bracket or a quote inside a value; after anything else it is not JSON.
_BEFORE_JSON = {"{": "[,:", "[": "[,:", '"': "{[,:", "'": "{[,:"}
_BEFORE_CALL = {"{": "[(,:=", "[": "[(,:=", '"': "{[(,:=", "'": "{[(,:="}


class JsonScanner:
    """Finds the end of a JSON object or list in text that arrives in chunks, ignoring brackets in strings.

    `stops` are characters that can't occur outside of strings. With `calls` the value may also hold `name(key=value)`.
    """

    def __init__(self, stops: str = "", *, calls: bool = False) -> None:
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._last = ""
        self._seen = 0
        self._stops = stops + "\\"
        self._opening = "{[(" if calls else "{["
        self._allowed_before = _BEFORE_CALL if calls else _BEFORE_JSON
        self._structure = _structure_pattern(self._stops + ("()" if calls else ""))
        self.broken = False
        """True if `feed` returned the place of a character that is invalid there, not the end of the value."""
        self.stopped = False
        """True if that character is one of `stops`."""
        self.string_at = 0
        """The offset of the last string from the first character that was fed."""

    @property
    def has_begun(self) -> bool:
        return self._depth > 0

    def feed(self, text: str, start: int = 0) -> int | None:
        """The place after the end of the value, or None if it has not ended."""
        place = start
        seen, self._seen = self._seen, self._seen + len(text) - start
        while place < len(text):
            if self._quote:
                place = self._skip_string(text, place)
                continue
            found = self._structure.search(text, place)
            between = text[place : None if found is None else found.start()].rstrip()
            self._last = between[-1] if between else self._last
            if found is None:
                return None
            place, sign = found.end(), found[0]
            if self._is_misplaced(sign):
                self.broken, self.stopped = True, sign in self._stops
                return found.start()
            self._last = sign
            if sign in "\"'":
                self._quote = sign
                self.string_at = seen + found.start() - start
            elif sign in self._opening:
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return place
        return None

    def _is_misplaced(self, sign: str) -> bool:
        if sign in self._stops:
            return True
        if not self._depth:
            return sign in "}])"
        return self._last not in self._allowed_before.get(sign, self._last)

    def _skip_string(self, text: str, place: int) -> int:
        if self._escaped:
            self._escaped = False
            place += 1
        found = _STRING_REST[self._quote].match(text, place)
        stop = found.end() if found is not None else place
        if stop < len(text) and text[stop] == self._quote:
            self._quote = ""
            return stop + 1
        self._escaped = stop < len(text)
        return len(text)


_structure_patterns: dict[str, re.Pattern[str]] = {}


def _structure_pattern(more: str) -> re.Pattern[str]:
    found = _structure_patterns.get(more)
    if found is None:
        found = _structure_patterns[more] = re.compile(rf"[{{}}\[\]\"'{re.escape(more)}]")
    return found
