"""Access to fields in camelCase or snake_case: the API accepts both.

`name` is always the camelCase form. Null means absent, and a single object may replace a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from segue.wire.json_values import (
    JsonObject,
    integer_or_none,
    object_or_none,
    optional_object,
    optional_string,
    require_list,
    string_or_none,
)

_NUMBER = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?")


@lru_cache(maxsize=256)
def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def both_cases(*names: str) -> frozenset[str]:
    """Return the keys in camelCase and in snake_case."""
    return frozenset((*names, *map(_snake_case, names)))


def find_key(fields: Mapping[str, Any], name: str) -> str:
    """Return the key in the form that is present in these fields; camelCase if absent."""
    if name in fields:
        return name
    other = _snake_case(name)
    return other if other in fields else name


def get_field(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    return value if value is not None else fields.get(_snake_case(name))


def replace_fields(fields: JsonObject, **changes: Any) -> JsonObject:
    """Return the fields with these values, None to remove a key; the same object if nothing changes."""
    changed = fields
    for name, value in changes.items():
        if get_field(fields, name) == value:
            continue
        changed = {
            key: kept for key, kept in changed.items() if value is not None or key not in (name, _snake_case(name))
        }
        if value is not None:
            changed[find_key(fields, name)] = value
    return changed


def get_object(fields: Mapping[str, Any], name: str) -> JsonObject:
    """Return the object under a key, or an empty object."""
    return object_or_none(get_field(fields, name)) or {}


def get_text(fields: Mapping[str, Any], name: str) -> str | None:
    return string_or_none(get_field(fields, name))


def get_int(fields: Mapping[str, Any], name: str) -> int | None:
    return integer_or_none(get_field(fields, name))


def get_text_strict(fields: Mapping[str, Any], name: str, path: str = "") -> str | None:
    """Return the text under a key of the object at `path`, or None. Raises `InputError` for any other type."""
    value = get_field(fields, name)
    if value is None or isinstance(value, str):
        return value
    return optional_string(value, join_path(path, find_key(fields, name)))


def get_object_strict(fields: Mapping[str, Any], name: str, path: str = "") -> tuple[JsonObject, str]:
    """Return the object under a key of the object at `path`, or an empty one, and its path."""
    inner_path = join_path(path, find_key(fields, name))
    return optional_object(get_field(fields, name), inner_path) or {}, inner_path


def get_numeric(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value under a key; the API also accepts a number as text."""
    value = get_field(fields, name)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value


def join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def as_list(value: object, path: str) -> list[Any]:
    """Return the items of a list; a single object is a list of one, null an empty list."""
    if value is None:
        return []
    lone = object_or_none(value)
    return require_list(value, path) if lone is None else [lone]
