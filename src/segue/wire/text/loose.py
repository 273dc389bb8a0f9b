"""JSON as models write it: with trailing commas, Python's words, single quotes, and line breaks inside strings."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from segue.canonical.jsontext import MAX_DEPTH, depth_of

__all__ = ["JsonScan", "NotReadableError", "read_loose"]

_decode = msgspec.json.Decoder().decode
_TOKEN = re.compile(
    r"""
    (?P<double>"(?:[^"\\]|\\.)*")
    | (?P<single>'(?:[^'\\]|\\.)*')
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<comma>,\s*(?=[}\]]))
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "nan": "null", "NaN": "null", "undefined": "null"}
_CONTROL = {ord(sign): f"\\u{ord(sign):04x}" for sign in map(chr, range(32))}
_SIMPLE_ESCAPE = re.compile(r"\\([^\"\\/bfnrtu])", re.DOTALL)


_QUOTE = re.compile(r'\\.|"', re.DOTALL)


class NotReadableError(ValueError):
    """Text that is no JSON, not even loosely."""


def read_loose(text: str) -> Any:
    """The value of JSON text, or of what was plainly meant as such."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_DEPTH and depth_of(data) > MAX_DEPTH:
        raise NotReadableError("nested too deep")
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return _decode(_TOKEN.sub(_strict, text).encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotReadableError(str(error)) from None


def _strict(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "comma":
            return ""
        case "word":
            return _WORDS.get(found[0], found[0])
        case "double":
            return _SIMPLE_ESCAPE.sub(r"\1", found[0]).translate(_CONTROL)
        case _:
            inner = _QUOTE.sub(_requoted, found[0][1:-1])
            return '"' + _SIMPLE_ESCAPE.sub(r"\1", inner).translate(_CONTROL) + '"'


def _requoted(found: re.Match[str]) -> str:
    sign = found[0]
    return '\\"' if sign == '"' else "'" if sign == "\\'" else sign


_STRUCTURE = re.compile(r"[{}\[\]\"']")
_IN_STRING = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in "\"'"}


class JsonScan:
    """Where a JSON object or list ends that is told piece by piece; what stands in strings does not count."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._escaped = False

    @property
    def begun(self) -> bool:
        return self._depth > 0

    def feed(self, text: str, start: int = 0) -> int | None:
        """The place behind the end of the value, or None if that has not come. Each text is fed once."""
        place = start
        while place < len(text):
            if self._quote:
                place = self._behind_string(text, place)
                continue
            found = _STRUCTURE.search(text, place)
            if found is None:
                return None
            place, sign = found.end(), found[0]
            if sign in "\"'":
                self._quote = sign
            elif sign in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return place
        return None

    def _behind_string(self, text: str, place: int) -> int:
        if self._escaped:
            self._escaped = False
            place += 1
        found = _IN_STRING[self._quote].match(text, place)
        stop = found.end() if found is not None else place
        if stop < len(text) and text[stop] == self._quote:
            self._quote = ""
            return stop + 1
        self._escaped = stop < len(text)
        return len(text)
