"""Lenient JSON, as models write it: trailing commas, Python constants, single quotes, line breaks in strings."""

from __future__ import annotations

import re
from typing import Any

from segue.canonical.json import MAX_DEPTH, estimate_depth, find_duplicate_key, parse_argument_text

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
    for candidate in (text, _TOKEN.sub(_to_strict, text)):
        value, exact = parse_argument_text(candidate)
        if exact is None:
            return value
    raise InvalidJsonError("invalid JSON")


def find_repeated_key(text: str, value: object) -> str | None:
    """Return a key that occurs twice in an object of lenient JSON; `value` is its parsed value."""
    strict = text if parse_argument_text(text)[1] is None else _TOKEN.sub(_to_strict, text)
    return find_duplicate_key(strict, value)


def _to_strict(token: re.Match[str]) -> str:
    match token.lastgroup:
        case "comma":
            return ""
        case "key":
            return f'"{token[0]}"'
        case "word":
            return _CONSTANTS.get(token[0], token[0])
        case "bracket":
            return "[" if token[0] == "(" else "]"
        case "unclosed":
            return token[0]
        case _:
            return '"' + _ESCAPE.sub(_to_strict_escape, token[0][1:-1]).translate(_CONTROL) + '"'


def _to_strict_escape(escape: re.Match[str]) -> str:
    """Keep JSON's escapes; a backslash before another character becomes a literal backslash."""
    if escape[0] == '"':
        return '\\"'
    if code := escape["hex"]:
        return f"\\u00{code}"
    char = escape["other"]
    if char is None or char in '"\\/bfnrt':
        return escape[0]
    return char if char in "'\n" else f"\\\\{char}"


STRING_REST = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+", re.DOTALL) for quote in "\"'"}
"""By quote: the content of a string up to its closing quote."""
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
        """Whether `feed` returned the position of an invalid character, not the end of the value."""
        self.stopped = False
        """Whether that character is one of `stops`."""
        self.string_at = 0
        """The offset of the last string from the first character that was fed."""

    @property
    def has_begun(self) -> bool:
        return self._depth > 0

    def feed(self, text: str, start: int = 0) -> int | None:
        """Return the position after the end of the value, or None if it has not ended."""
        position = start
        seen_before, self._seen = self._seen, self._seen + len(text) - start
        while position < len(text):
            if self._quote:
                position = self._skip_string(text, position)
                continue
            structural = self._structure.search(text, position)
            between = text[position : None if structural is None else structural.start()].rstrip()
            self._last = between[-1] if between else self._last
            if structural is None:
                return None
            position, char = structural.end(), structural[0]
            if self._is_misplaced(char):
                self.broken, self.stopped = True, char in self._stops
                return structural.start()
            self._last = char
            if char in "\"'":
                self._quote = char
                self.string_at = seen_before + structural.start() - start
            elif char in self._opening:
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return position
        return None

    def _is_misplaced(self, char: str) -> bool:
        if char in self._stops:
            return True
        if not self._depth:
            return char in "}])"
        return self._last not in self._allowed_before.get(char, self._last)

    def _skip_string(self, text: str, position: int) -> int:
        if self._escaped:
            self._escaped = False
            position += 1
        content = STRING_REST[self._quote].match(text, position)
        stop = content.end() if content is not None else position
        if stop < len(text) and text[stop] == self._quote:
            self._quote = ""
            return stop + 1
        self._escaped = stop < len(text)
        return len(text)


_structure_patterns: dict[str, re.Pattern[str]] = {}


def _structure_pattern(extra_chars: str) -> re.Pattern[str]:
    pattern = _structure_patterns.get(extra_chars)
    if pattern is None:
        pattern = _structure_patterns[extra_chars] = re.compile(rf"[{{}}\[\]\"'{re.escape(extra_chars)}]")
    return pattern
