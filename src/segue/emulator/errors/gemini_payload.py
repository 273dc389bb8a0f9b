"""Paths and error texts of Gemini's JSON parser.

The parser uses field names in snake_case (`function_call`) and indexes for map entries (`properties[0].value`), and
lists all errors, a line each. The later checks use keys for map entries (`properties[a]`).
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from segue.conformance.gemini.fields import is_invalid_base64, message, to_snake
from segue.conformance.values import is_object
from segue.emulator.errors.broken_rule import BrokenRule
from segue.specs.types import Spec
from segue.wire.base import ApiError

_PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta"
_TYPE_NAMES = {
    "string": "TYPE_STRING",
    "bytes": "TYPE_BYTES",
    "boolean": "TYPE_BOOL",
    "map": "type.googleapis.com/google.protobuf.Struct",
    "object": f"{_PACKAGE}.Object",
}
_LONGEST = 80


def invalid_argument(message: str, param: str | None = None) -> ApiError:
    """Build an INVALID_ARGUMENT error; `param` is the field in the parser's path."""
    return ApiError(400, message, "invalid_request_error", "INVALID_ARGUMENT", param)


class Location(Struct, frozen=True):
    """A location in the body, with its path in two formats."""

    path: str
    """In the format of the parser."""
    validator_path: str
    """In the format of the checks after it."""
    parent_path: str
    """The path of the parent, in the format of the parser."""
    key: str
    spec: Spec | None
    """The type of the field, `None` if the API has no such field."""
    value: Any


def locate(broken: BrokenRule) -> Location:
    """Return the location of the first violation."""
    path = checked = above = key = ""
    spec: Spec | None = message("GenerateContentRequest")
    value: object = broken.body
    for step in broken.steps:
        above = path
        if isinstance(step, int):
            path, checked = f"{path}[{step}]", f"{checked}[{step}]"
            spec = _entry_type(spec)
        elif spec is not None and spec.kind == "map" and spec.items is not None:
            number = list(value).index(step) if is_object(value) and step in value else 0
            path, checked = f"{path}[{number}].value", f"{checked}[{step}]"
            key, spec = step, spec.items
        else:
            known = _entry_type(spec)
            name = to_snake(step)
            key, spec = step, known.members.get(name) if known is not None else None
            path, checked = (f"{prefix}.{name}" if prefix else name for prefix in (path, checked))
        value = _step_into(value, step)
    return Location(path, checked, above, key, spec, value)


def _entry_type(spec: Spec | None) -> Spec | None:
    """Return the type of the entries of a list; a single value counts as a list of one."""
    return spec.items if spec is not None and spec.kind == "list" else spec


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


def _type_name(spec: Spec) -> str:
    if spec.name:
        return f"{_PACKAGE}.{spec.name.replace('ConfigMode', 'Config.Mode')}"
    if spec.kind == "map" and spec.items is not None:
        return f"{_PACKAGE}.{{}}{spec.items.name.lower()}"
    return _TYPE_NAMES[spec.kind]


def _has_type(value: Any, spec: Spec) -> bool:
    if spec.kind in ("object", "map"):
        return is_object(value)
    if spec.kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, str) and (not spec.values or value.upper() in spec.values)


def unknown_name_line(at: Location, why: str = "Cannot find field.") -> str:
    """Return the parser's line for an unknown name."""
    inside = f" at '{at.parent_path}'" if at.parent_path else ""
    return f'Invalid JSON payload received. Unknown name "{at.key}"{inside}: {why}'


def parser_line(at: Location) -> str:
    """Return the parser's line for the value at this location, `""` if it is valid."""
    value, spec = at.value, at.spec
    if spec is None:
        return unknown_name_line(at)
    if not isinstance(value, list | tuple):
        spec = _entry_type(spec) or spec
    if value is None or spec.kind in ("any", "list"):
        return ""
    if isinstance(value, list | tuple):
        return unknown_name_line(at, "Proto field is not repeating, cannot start list.")
    prefix_text = f"Invalid value at '{at.path}' ({_type_name(spec)}), "
    if spec.kind == "bytes" and isinstance(value, str):
        return f"{prefix_text}Base64 decoding failed for {_format_value(value)}" if is_invalid_base64(value) else ""
    return "" if _has_type(value, spec) else f"{prefix_text}{_format_value(value)}"
