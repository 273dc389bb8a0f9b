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
    pending: list[tuple[bool, Any]] = [(False, value)]
    while pending:
        is_rendered, current = pending.pop()
        if is_rendered:
            parts.append(current)
        elif isinstance(current, Mapping):
            items = cast("Mapping[str, Any]", current)
            parts.append("{")
            pending.append((True, "}"))
            pending += reversed(
                [part for key in sort_keys(items) for part in _item_parts(f"{render_key(key)}:", items[key])][1:]
            )
        elif isinstance(current, list | tuple):
            parts.append("[")
            pending.append((True, "]"))
            pending += reversed([part for item in cast("Sequence[Any]", current) for part in _item_parts("", item)][1:])
        else:
            parts.append(_render_scalar(current))
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
    position = _skip(_SPACE, text, 0)
    while position < len(text):
        char = text[position]
        if char in "{[,":
            inside += char.strip(",")
            key_next = inside[-1:] == ["{"]
            part, position = char, position + 1
        elif char in "}]":
            del inside[-1:]
            key_next = False
            part, position = char, position + 1
        elif key_next:
            key, _, position = _parse_word(text, position, _KEY)
            position = _skip(_SPACE, text, position)
            if not text.startswith(":", position):
                raise InvalidJsonError(f"colon expected at {position}")
            part, position, key_next = f"{json.dumps(key)}:", position + 1, False
        else:
            word, is_string, position = _parse_word(text, position, _BARE)
            part = json.dumps(word) if is_string else _convert_bare_word(word)
        parts.append(part)
        position = _skip(_SPACE, text, position)
    return "".join(parts)


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    skipped = pattern.match(text, position)
    return position if skipped is None else skipped.end()


def _parse_word(text: str, position: int, bare: re.Pattern[str]) -> tuple[str, bool, int]:
    """The string or bare word at this position, whether it is a string, and the position after it."""
    for quote in QUOTES:
        if text.startswith(quote, position):
            end = text.find(quote, position + len(quote))
            if end < 0:
                raise InvalidJsonError("unterminated string")
            return text[position + len(quote) : end], True, end + len(quote)
    string = _JSON_STRING.match(text, position)
    if string is not None:
        return cast("str", parse_lenient(string[0])), True, string.end()
    end = _skip(bare, text, position)
    if end == position:
        raise InvalidJsonError(f"key or value expected at {position}")
    return text[position:end].strip(), False, end


def _convert_bare_word(word: str) -> str:
    """A number or a constant of JSON or Python; any other unquoted text is a string."""
    return word if _NUMBER.fullmatch(word) else _CONSTANTS.get(word) or json.dumps(word)
