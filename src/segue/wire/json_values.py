"""Typed access to JSON values: the value where it has the expected type, else None or an `InputError` with the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from segue.errors import InputError

JsonObject: TypeAlias = dict[str, Any]


def json_type_name(value: object) -> str:
    """Return the type of a JSON value for error messages, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def require_object(value: object, path: str = "") -> JsonObject:
    if isinstance(value, dict):
        return cast("JsonObject", value)
    raise InputError(f"an object was expected, not {json_type_name(value)}", path=path)


def require_list(value: object, path: str = "") -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    raise InputError(f"a list was expected, not {json_type_name(value)}", path=path)


def object_or_none(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def string_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def integer_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number_or_none(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def unknown_fields(fields: Mapping[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    """Return the keys outside `known` that have a non-empty value."""
    return tuple(key for key, value in fields.items() if key not in known and value not in (None, [], {}, "", False))


def boolean_or_none(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def strings_or_none(value: object) -> tuple[str, ...] | None:
    """Return the items of a list of strings; None for any other value."""
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(item for item in items if isinstance(item, str))
    return texts if len(texts) == len(items) else None
