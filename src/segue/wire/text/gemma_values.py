"""Gemma's value syntax: objects with bare keys, and strings between tokens instead of quotes.

A string that holds the token is rendered as a JSON string, which is parsed as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.json import encode_json_text
from segue.wire.text.lenient_json import InvalidJsonError, parse_lenient

__all__ = ["QUOTE", "QUOTES", "convert_to_json", "render_key", "render_value", "sort_keys"]

QUOTE = '<|"|>'
QUOTES = (QUOTE, "<escape>")

_PLAIN_KEY = re.compile(r"[\w.$-]+")
_SPACE = re.compile(r"\s*+")
_BARE = re.compile(r"[^,{}\[\]]*+")
_KEY = re.compile(r"[^:,{}\[\]]++")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONSTANTS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_JSON_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)


def render_value(value: Any) -> str:
    """Render a value as the chat template prints it: sorted keys, and Python's `None`."""
    parts: list[str] = []
    waiting: list[tuple[bool, Any]] = [(False, value)]
    while waiting:
        is_rendered, one = waiting.pop()
        if is_rendered:
            parts.append(one)
        elif isinstance(one, Mapping):
            items = cast("Mapping[str, Any]", one)
            parts.append("{")
            waiting.append((True, "}"))
            waiting += reversed(
                [part for key in sort_keys(items) for part in _item_parts(f"{render_key(key)}:", items[key])][1:]
            )
        elif isinstance(one, list | tuple):
            parts.append("[")
            waiting.append((True, "]"))
            waiting += reversed([part for item in cast("Sequence[Any]", one) for part in _item_parts("", item)][1:])
        else:
            parts.append(_render_scalar(one))
    return "".join(parts)


def _item_parts(key: str, value: Any) -> tuple[tuple[bool, Any], ...]:
    return (True, ","), (True, key), (False, value)


def _render_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _render_string(value) if isinstance(value, str) else str(value)


def sort_keys(items: Mapping[str, Any]) -> list[str]:
    return sorted(items, key=str.lower)


def render_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _render_string(key)


def _render_string(text: str) -> str:
    if QUOTE in text:
        return encode_json_text(text).replace("<", "\\u003c")
    return f"{QUOTE}{text}{QUOTE}"


def convert_to_json(text: str) -> str:
    """Convert Gemma's value syntax to JSON text; raises `InvalidJsonError` if it is not valid."""
    parts: list[str] = []
    inside: list[str] = []
    key_next = False
    place = _skip(_SPACE, text, 0)
    while place < len(text):
        sign = text[place]
        if sign in "{[,":
            inside += sign.strip(",")
            key_next = inside[-1:] == ["{"]
            part, place = sign, place + 1
        elif sign in "}]":
            del inside[-1:]
            key_next = False
            part, place = sign, place + 1
        elif key_next:
            key, _, place = _parse_word(text, place, _KEY)
            place = _skip(_SPACE, text, place)
            if not text.startswith(":", place):
                raise InvalidJsonError(f"colon expected at {place}")
            part, place, key_next = f"{json.dumps(key)}:", place + 1, False
        else:
            word, is_string, place = _parse_word(text, place, _BARE)
            part = json.dumps(word) if is_string else _convert_bare_word(word)
        parts.append(part)
        place = _skip(_SPACE, text, place)
    return "".join(parts)


def _skip(pattern: re.Pattern[str], text: str, place: int) -> int:
    found = pattern.match(text, place)
    return place if found is None else found.end()


def _parse_word(text: str, place: int, bare: re.Pattern[str]) -> tuple[str, bool, int]:
    """The string or bare word at this place, whether it is a string, and the place after it."""
    for quote in QUOTES:
        if text.startswith(quote, place):
            end = text.find(quote, place + len(quote))
            if end < 0:
                raise InvalidJsonError("unterminated string")
            return text[place + len(quote) : end], True, end + len(quote)
    found = _JSON_STRING.match(text, place)
    if found is not None:
        return cast("str", parse_lenient(found[0])), True, found.end()
    end = _skip(bare, text, place)
    if end == place:
        raise InvalidJsonError(f"key or value expected at {place}")
    return text[place:end].strip(), False, end


def _convert_bare_word(word: str) -> str:
    """A number or a constant of JSON or Python; any other unquoted text is a string."""
    return word if _NUMBER.fullmatch(word) else _CONSTANTS.get(word) or json.dumps(word)
