"""Paths and error texts of Gemini's JSON parser.

The parser uses field names in snake_case (`function_call`) and indexes for map entries (`properties[0].value`), and
lists all errors, a line each. The later checks use keys for map entries (`properties[a]`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from segue.conformance.gemini.fields import FIELDS, is_invalid_base64, to_snake
from segue.conformance.values import is_object
from segue.emulator.errors.broken_rule import BrokenRule
from segue.wire.base import ApiError

_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta"
_SCALARS = {"string": "TYPE_STRING", "bytes": "TYPE_BYTES", "signature": "TYPE_BYTES", "bool": "TYPE_BOOL"}
_NAMED = {
    "request": f"{_PACKAGE}.GenerateContentRequest",
    "struct": "type.googleapis.com/google.protobuf.Struct",
    "result": "type.googleapis.com/google.protobuf.Struct",
    "type": f"{_PACKAGE}.Type",
    "mode": f"{_PACKAGE}.FunctionCallingConfig.Mode",
}
_ENUMS: Mapping[str, frozenset[str]] = {
    "type": frozenset({"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}),
    "mode": frozenset({"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}),
}
_LONGEST = 80


def invalid_argument(message: str, param: str | None = None) -> ApiError:
    """Build an INVALID_ARGUMENT error; `param` is the field in the parser's path."""
    return ApiError(400, message, "invalid_request_error", "INVALID_ARGUMENT", param)


def member(value: object, *spellings: str) -> object:
    """Return the value of an object under one of these names, or None."""
    if is_object(value):
        return next((value[name] for name in spellings if name in value), None)
    return None


class Location(Struct, frozen=True):
    """A location in the body, with its path in two formats."""

    path: str
    """In the format of the parser."""
    validator_path: str
    """In the format of the checks after it."""
    parent_path: str
    """The path of the parent, in the format of the parser."""
    key: str
    field_type: str
    """The type of the field (`part`, `[]part`, `string` …), `""` if the API has no such field."""
    value: Any


def locate(broken: BrokenRule) -> Location:
    """Return the location of the first violation."""
    path = checked = above = key = ""
    what = "request"
    value: object = broken.body
    for step in broken.steps:
        above = path
        if isinstance(step, int):
            path, checked = f"{path}[{step}]", f"{checked}[{step}]"
            what = what.removeprefix("[]")
        elif what.startswith("{}"):
            number = list(value).index(step) if is_object(value) and step in value else 0
            path, checked = f"{path}[{number}].value", f"{checked}[{step}]"
            key, what = step, what[2:]
        else:
            known = FIELDS.get(what.removeprefix("[]"), {})
            name = to_snake(step)
            key, what = step, known.get(name, "")
            path, checked = (f"{prefix}.{name}" if prefix else name for prefix in (path, checked))
        value = _step_into(value, step)
    return Location(path, checked, above, key, what, value)


def _step_into(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None


def _format_value(value: Any) -> str:
    if is_object(value):
        return "Starting an object on a scalar field"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…"'


def _type_name(what: str) -> str:
    if what in _SCALARS:
        return _SCALARS[what]
    return _NAMED.get(what) or f"{_PACKAGE}.{''.join(word.capitalize() for word in what.split('_'))}"


def _has_type(value: Any, what: str) -> bool:
    if what in FIELDS or what.startswith("{}") or what in ("struct", "object", "result"):
        return is_object(value)
    if what == "bool":
        return isinstance(value, bool)
    return isinstance(value, str) and (what not in _ENUMS or value.upper() in _ENUMS[what])


def unknown_name_line(at: Location, why: str = "Cannot find field.") -> str:
    """Return the parser's line for an unknown name."""
    inside = f" at '{at.parent_path}'" if at.parent_path else ""
    return f'Invalid JSON payload received. Unknown name "{at.key}"{inside}: {why}'


def parser_line(at: Location) -> str:
    """Return the parser's line for the value at this location, `""` if it is valid."""
    value, what = at.value, at.field_type
    if not what:
        return unknown_name_line(at)
    if what.startswith("[]") and not isinstance(value, list | tuple):
        # A single value counts as a list of one.
        what = what[2:]
    if value is None or what == "any" or what.startswith("[]"):
        return ""
    if isinstance(value, list | tuple):
        return unknown_name_line(at, "Proto field is not repeating, cannot start list.")
    prefix_text = f"Invalid value at '{at.path}' ({_type_name(what)}), "
    if what in ("bytes", "signature") and isinstance(value, str):
        return f"{prefix_text}Base64 decoding failed for {_format_value(value)}" if is_invalid_base64(value) else ""
    return "" if _has_type(value, what) else f"{prefix_text}{_format_value(value)}"
