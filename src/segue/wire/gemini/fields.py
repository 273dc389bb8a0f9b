"""Typed looks into a body that may spell its keys in camelCase or in snake_case: the API reads both.

`name` is always the camelCase spelling. Null means absent, and a lone object where a list may stand is a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from segue.errors import InputError

__all__ = [
    "JsonObject",
    "both",
    "flag_at",
    "int_at",
    "items_of",
    "kind_of",
    "laid",
    "look",
    "needed_object",
    "needed_text",
    "number_at",
    "object_at",
    "object_or_none",
    "spelled",
    "text_at",
]

JsonObject = dict[str, Any]

_KINDS: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}


@lru_cache(maxsize=256)
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def both(*names: str) -> frozenset[str]:
    """The keys in both spellings."""
    return frozenset((*names, *map(_snake, names)))


def spelled(fields: Mapping[str, Any], name: str) -> str:
    """The key as these fields spell it; camelCase where they do not have it."""
    if name in fields:
        return name
    other = _snake(name)
    return other if other in fields else name


def look(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    return fields.get(_snake(name)) if value is None else value


def laid(fields: JsonObject, **changes: Any) -> JsonObject:
    """The fields with these values under their own spelling, None for keys to leave out; themselves if that is so."""
    made = fields
    for name, value in changes.items():
        if look(fields, name) == value:
            continue
        made = {key: kept for key, kept in made.items() if value is not None or key not in (name, _snake(name))}
        if value is not None:
            made[spelled(fields, name)] = value
    return made


def kind_of(value: object) -> str:
    """What a JSON value is, as a person would say it."""
    return "null" if value is None else _KINDS.get(type(value), "an object")


def object_or_none(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def object_at(fields: Mapping[str, Any], name: str) -> JsonObject:
    """The object under a key, or an empty one."""
    return object_or_none(look(fields, name)) or {}


def text_at(fields: Mapping[str, Any], name: str) -> str | None:
    value = look(fields, name)
    return value if isinstance(value, str) else None


def int_at(fields: Mapping[str, Any], name: str) -> int | None:
    value = look(fields, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number_at(fields: Mapping[str, Any], name: str) -> float | int | None:
    value = look(fields, name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def flag_at(fields: Mapping[str, Any], name: str) -> bool | None:
    value = look(fields, name)
    return value if isinstance(value, bool) else None


def needed_object(value: object, path: str = "") -> JsonObject:
    if isinstance(value, dict):
        return cast("JsonObject", value)
    raise InputError(f"an object was expected, not {kind_of(value)}", path=path)


def needed_text(fields: Mapping[str, Any], name: str) -> str | None:
    """The text under a key, None where there is none, and an error where something else stands there."""
    value = look(fields, name)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"a string was expected, not {kind_of(value)}", path=spelled(fields, name))


def items_of(value: object, path: str) -> list[Any]:
    """The items of a list; a lone object is one."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [cast("JsonObject", value)]
    if isinstance(value, list):
        return cast("list[Any]", value)
    raise InputError(f"a list was expected, not {kind_of(value)}", path=path)
