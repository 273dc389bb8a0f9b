"""Values as Gemma writes them: objects with bare keys, and strings between tokens instead of quotes.

A string that holds the token can't stand between two of them. It is written as a JSON string then, which the reader
takes as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.jsontext import MAX_DEPTH, write_text
from segue.wire.text.loose import NotReadableError, read_loose

__all__ = ["QUOTE", "QUOTES", "read_value", "write_key", "write_value"]

QUOTE = '<|"|>'
QUOTES = (QUOTE, "<escape>")

_PLAIN_KEY = re.compile(r"[\w.$-]+")
_SPACE = re.compile(r"\s*+")
_BARE = re.compile(r"[^,{}\[\]]*+")
_KEY = re.compile(r"[^:,{}\[\]]++")
_JSON_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)


def write_value(value: Any) -> str:
    """A value as the models' template prints it: keys in order, and Python's word for null."""
    match value:
        case str():
            return _string(value)
        case bool():
            return "true" if value else "false"
        case Mapping():
            items = cast("Mapping[str, Any]", value)
            return "{" + ",".join(f"{write_key(key)}:{write_value(items[key])}" for key in in_order(items)) + "}"
        case list() | tuple():
            return "[" + ",".join(write_value(item) for item in cast("Sequence[Any]", value)) + "]"
        case _:
            return str(value)


def in_order(items: Mapping[str, Any]) -> list[str]:
    return sorted(items, key=str.lower)


def write_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    if QUOTE in text:
        return write_text(text).replace("<", "\\u003c")
    return f"{QUOTE}{text}{QUOTE}"


def read_value(text: str) -> Any:
    """The value that a text is; NotReadableError where it is none."""
    reader = _Reader(text)
    value = reader.value(0)
    reader.space()
    if reader.place != len(text):
        raise NotReadableError(f"something follows at {reader.place}")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def space(self) -> None:
        found = _SPACE.match(self._text, self.place)
        self.place = self.place if found is None else found.end()

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotReadableError("nested too deep")
        self.space()
        if self._took("{"):
            return self._object(depth)
        if self._took("["):
            return self._list(depth)
        string = self._string()
        return self._bare() if string is None else string

    def _took(self, sign: str) -> bool:
        if not self._text.startswith(sign, self.place):
            return False
        self.place += len(sign)
        return True

    def _object(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        self.space()
        while not self._took("}"):
            key = self._key()
            items[key] = self.value(depth + 1)
            self._next("}")
        return items

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.space()
        while not self._took("]"):
            items.append(self.value(depth + 1))
            self._next("]")
        return items

    def _next(self, end: str) -> None:
        """Past a comma; the end that may stand here instead is left."""
        self.space()
        if not self._took(",") and not self._text.startswith(end, self.place):
            raise NotReadableError(f"a comma or {end} was expected at {self.place}")
        self.space()

    def _key(self) -> str:
        key = self._string()
        if key is None:
            found = _KEY.match(self._text, self.place)
            key = "" if found is None else found[0].strip()
            self.place = self.place if found is None else found.end()
            if not key:
                raise NotReadableError(f"a key was expected at {self.place}")
        self.space()
        if not self._took(":"):
            raise NotReadableError(f"a colon was expected at {self.place}")
        return key

    def _string(self) -> str | None:
        for quote in QUOTES:
            if self._took(quote):
                start, end = self.place, self._text.find(quote, self.place)
                if end < 0:
                    raise NotReadableError("a string has no end")
                self.place = end + len(quote)
                return self._text[start:end]
        found = _JSON_STRING.match(self._text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return cast("str", read_loose(found[0]))

    def _bare(self) -> Any:
        """A number or a word; any other text without quotes is a string."""
        found = _BARE.match(self._text, self.place)
        bare = "" if found is None else found[0].strip()
        if found is None or not bare:
            raise NotReadableError(f"a value was expected at {self.place}")
        self.place = found.end()
        try:
            value = read_loose(bare)
        except NotReadableError:
            return bare
        return value
