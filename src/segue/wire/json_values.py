"""Typed access to JSON values: the value where it has the expected type, else None or an `InputError` with the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from segue.errors import InputError

JsonObject: TypeAlias = dict[str, Any]
JsonValue: TypeAlias = JsonObject | list[Any] | str | float | None


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


def require_object(value: Any, path: str = "") -> JsonObject:
    json: JsonValue = value
    if isinstance(json, dict):
        return json
    raise InputError(f"an object was expected, not {json_type_name(value)}", path=path)


def require_list(value: Any, path: str = "") -> list[Any]:
    json: JsonValue = value
    if isinstance(json, list):
        return json
    raise InputError(f"a list was expected, not {json_type_name(value)}", path=path)


# The values of a request: null means absent, and any other value of the wrong type raises `InputError` with its path.


def optional_object(value: object, path: str) -> JsonObject | None:
    return None if value is None else require_object(value, path)


def optional_string(value: object, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InputError(f"a string was expected, not {json_type_name(value)}", path=path)


def optional_boolean(value: object, path: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"a boolean was expected, not {json_type_name(value)}", path=path)


def optional_number(value: object, path: str) -> int | float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise InputError(f"a number was expected, not {json_type_name(value)}", path=path)


def optional_integer(value: object, path: str) -> int | None:
    """Return an integer; an integral float counts as one."""
    number = optional_number(value, path)
    if number is None or isinstance(number, int):
        return number
    if not number.is_integer():
        raise InputError(f"an integer was expected, not {number}", path=path)
    return int(number)


def optional_strings(value: object, path: str) -> tuple[str, ...] | None:
    """Return the items of a list of strings."""
    if value is None:
        return None
    items = require_list(value, path)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(f"a string was expected, not {json_type_name(item)}", path=f"{path}[{index}]")
    return tuple(items)


def optional_schema(value: Any, path: str) -> JsonObject | None:
    """Return a schema. APIs accept no other schema than an object, also not true and false."""
    json: JsonValue = value
    if json is None or isinstance(json, dict):
        return json
    raise InputError(f"a schema was expected, not {json_type_name(value)}", path=path)


def optional_list(value: object, path: str) -> list[Any] | None:
    return None if value is None else require_list(value, path)


def require_string(value: object, path: str) -> str:
    if isinstance(value, str):
        return value
    raise InputError(f"a string was expected, not {json_type_name(value)}", path=path)


# The values of replies and of unmodelled fields: a value of another type counts as absent.


def object_or_none(value: Any) -> JsonObject | None:
    json: JsonValue = value
    return json if isinstance(json, dict) else None


def objects_in(value: Any) -> list[JsonObject]:
    """Return the objects of a list, without its other items; none for any other value."""
    return [item for item in list_or_empty(value) if type(item) is dict]


def list_or_empty(value: Any) -> list[Any]:
    json: JsonValue = value
    return json if isinstance(json, list) else []


def object_list(value: Any) -> list[JsonObject]:
    """Return the items of a list, an empty object in place of each that is none."""
    return [object_or_none(item) or {} for item in list_or_empty(value)]


def drop_none(**fields: Any) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}


def string_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def text_or_none(value: object) -> str | None:
    """Return a string that is not empty."""
    return value if isinstance(value, str) and value else None


def integer_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number_or_none(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def unknown_fields(fields: Mapping[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    """Return the keys outside `known` that have a non-empty value."""
    return tuple(key for key, value in fields.items() if key not in known and value not in (None, [], {}, "", False))


def without_keys(value: Any, keys: frozenset[str]) -> Any:
    """Return a JSON value without these members, at any depth."""
    json: JsonValue = value
    if isinstance(json, dict):
        return {key: without_keys(member, keys) for key, member in json.items() if key not in keys}
    return [without_keys(item, keys) for item in json] if isinstance(json, list) else json


# Paths have the form `function.arguments` or `calls.0.id`.


def get_path(payload: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    json: JsonValue = payload
    for step in path.split(".") if path else ():
        if isinstance(json, list):
            json = json[int(step)] if step.isdigit() and int(step) < len(json) else None
        else:
            json = json.get(step) if isinstance(json, dict) else None
    return json


def set_path(payload: JsonObject, path: str, value: object) -> JsonObject:
    """Return a copy of the payload with this value at the path."""
    step, _, rest = path.partition(".")
    inner = object_or_none(payload.get(step)) or {}
    return {**payload, step: set_path(inner, rest, value) if rest else value}
