"""Access to decoded JSON of unknown shape, with types that the type checker accepts."""

from __future__ import annotations

from typing import Any, cast

JsonObject = dict[str, Any]


def object_or_none(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def list_or_empty(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_in(value: object) -> list[JsonObject]:
    """Return the entries of a list, with `{}` for those that are not objects, so that indexes do not change."""
    return [object_or_none(entry) or {} for entry in list_or_empty(value)]


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def without_keys(value: object, keys: frozenset[str]) -> Any:
    """Return a JSON value without these members, at any depth."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return {key: without_keys(inner, keys) for key, inner in members.items() if key not in keys}
    if isinstance(value, list):
        return [without_keys(inner, keys) for inner in cast("list[Any]", value)]
    return value
