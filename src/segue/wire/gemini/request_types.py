"""Removal of the fields of `generateContent` requests that the API rejects.

Unknown fields are dropped from same-API bodies too. Parts of an unknown type are kept: they may be newer than the types
in `segue.specs`. Keys may be in snake_case, null means absent, and a single value may replace a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from segue.canonical.json import are_identical
from segue.render.report import Report, field_level
from segue.specs.types import ANY, Spec, load_types
from segue.wire.gemini.fields import JsonObject, both_cases
from segue.wire.schema.openapi import to_camel_case

_KINDS = {"GenerateContentRequest": "request", "FileData": "file", "FunctionDeclaration": "function"}


@cache
def _kind_of(name: str) -> str:
    """Return the name of a message in findings."""
    return _KINDS.get(name) or name[0].lower() + name[1:]


@cache
def _fields_by_kind() -> Mapping[str, Mapping[str, Spec]]:
    """Return the fields of each message, in camelCase and in snake_case."""
    return {
        _kind_of(message): {
            key: field for name, field in spec.members.items() for key in both_cases(to_camel_case(name))
        }
        for message, spec in load_types("gemini").items()
    }


_DATA_FIELDS = both_cases(
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)


def is_part_field(key: str) -> bool:
    return key in _fields_by_kind()["part"]


def is_unknown_part(part: JsonObject) -> bool:
    """Return whether the only data of a part is one object under an unknown key."""
    fields = _fields_by_kind()["part"]
    present = [key for key, value in part.items() if value is not None]
    unknown = [key for key in present if key not in fields]
    return len(unknown) == 1 and isinstance(part[unknown[0]], dict) and _DATA_FIELDS.isdisjoint(present)


def drop_invalid_fields(value: JsonObject, kind: str, report: Report) -> JsonObject:
    """Return the object without fields that the API rejects; the same object if there are none."""
    cleaned = value
    fields = _fields_by_kind()[kind]
    if kind == "part" and not value.keys() <= fields.keys() and is_unknown_part(value):
        fields = {**fields, **{key: ANY for key in value if key not in fields and value[key] is not None}}
    for key, item in value.items():
        kept = _keep_valid(item, fields[key], report) if key in fields and item is not None else None
        if kept is item and key in fields:
            continue
        if cleaned is value:
            cleaned = dict(value)
        if kept is None:
            report.add(
                "dropped", f"`{key}` of a {kind} dropped: not a valid Gemini field", subject=key, level=field_level(key)
            )
            del cleaned[key]
        else:
            cleaned[key] = kept
    return cleaned


def _keep_valid(value: Any, spec: Spec, report: Report) -> Any:
    """Return the value without invalid parts; None if nothing of it is valid."""
    if isinstance(value, str) and spec.kind == "string" and not spec.values:
        return value
    # The wire converts schemas itself, with findings of their own.
    if spec.kind == "any" or spec.name == "Schema":
        return value
    if spec.kind == "list" and spec.items is not None:
        items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        kept: list[Any] = [_keep_valid(item, spec.items, report) for item in items]
        if are_identical(kept, items):
            return cast("object", value)
        return [item for item in kept if item is not None] or None
    if spec.members:
        fields = cast("JsonObject", value)
        return drop_invalid_fields(fields, _kind_of(spec.name), report) if isinstance(value, dict) else None
    match spec.kind:
        case "object" | "map":
            valid = isinstance(value, dict)
        case "boolean":
            valid = isinstance(value, bool) or value in ("true", "false")
        case _ if spec.values:
            valid = value.upper() in spec.values if isinstance(value, str) else isinstance(value, int)
        case _:
            valid = isinstance(value, str)
    return value if valid else None
