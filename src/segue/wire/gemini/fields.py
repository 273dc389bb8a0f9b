"""Access to fields in camelCase or snake_case: the API accepts both.

`name` is always the camelCase form. Null means absent, and a single object may replace a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from segue.errors import InputError
from segue.wire.fields import (
    JsonObject,
    integer_or_none,
    kind_of,
    list_of,
    number_or_none,
    object_of,
    object_or_none,
    string_or_none,
)

__all__ = [
    "JsonObject",
    "both",
    "int_at",
    "items_of",
    "kind_of",
    "laid",
    "look",
    "needed_text",
    "number_at",
    "object_at",
    "object_of",
    "object_or_none",
    "spelled",
    "text_at",
]


@lru_cache(maxsize=256)
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def both(*names: str) -> frozenset[str]:
    """The keys in camelCase and in snake_case."""
    return frozenset((*names, *map(_snake, names)))


def spelled(fields: Mapping[str, Any], name: str) -> str:
    """The key in the form that is present in these fields; camelCase if absent."""
    if name in fields:
        return name
    other = _snake(name)
    return other if other in fields else name


def look(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    return fields.get(_snake(name)) if value is None else value


def laid(fields: JsonObject, **changes: Any) -> JsonObject:
    """The fields with these values, None to remove a key; the same object if nothing changes."""
    made = fields
    for name, value in changes.items():
        if look(fields, name) == value:
            continue
        made = {key: kept for key, kept in made.items() if value is not None or key not in (name, _snake(name))}
        if value is not None:
            made[spelled(fields, name)] = value
    return made


def object_at(fields: Mapping[str, Any], name: str) -> JsonObject:
    """The object under a key, or an empty object."""
    return object_or_none(look(fields, name)) or {}


def text_at(fields: Mapping[str, Any], name: str) -> str | None:
    return string_or_none(look(fields, name))


def int_at(fields: Mapping[str, Any], name: str) -> int | None:
    return integer_or_none(look(fields, name))


def number_at(fields: Mapping[str, Any], name: str) -> float | int | None:
    return number_or_none(look(fields, name))


def needed_text(fields: Mapping[str, Any], name: str) -> str | None:
    """The text under a key or None. Raises `InputError` for any other type."""
    value = look(fields, name)
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"a string was expected, not {kind_of(value)}", path=spelled(fields, name))


def items_of(value: object, path: str) -> list[Any]:
    """The items of a list; a single object is a list of one, null an empty list."""
    lone = object_or_none(value)
    return [lone] if lone is not None else [] if value is None else list_of(value, path)
