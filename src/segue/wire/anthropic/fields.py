"""Typed looks into a body: the value where it has the expected type, else None, or an error that names the place."""

from __future__ import annotations

from typing import Any, cast

from segue.errors import InputError

__all__ = [
    "JsonObject",
    "int_or_none",
    "kind_of",
    "needed_list",
    "needed_object",
    "number_or_none",
    "object_or_none",
    "text_or_none",
]

JsonObject = dict[str, Any]

_KINDS: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}


def kind_of(value: object) -> str:
    """What a JSON value is, as a person would say it."""
    return "null" if value is None else _KINDS.get(type(value), "an object")


def object_or_none(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number_or_none(value: object) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def needed_object(value: object, path: str) -> JsonObject:
    if isinstance(value, dict):
        return cast("JsonObject", value)
    raise InputError(f"an object was expected, not {kind_of(value)}", path=path)


def needed_list(value: object, path: str) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    raise InputError(f"a list was expected, not {kind_of(value)}", path=path)
