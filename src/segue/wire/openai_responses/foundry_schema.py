"""A compact notation for JSON object types, and the repair of values that do not match it.

A type is a line of fields. `?` marks an optional field, dropped if invalid; `!` one that is optional but too important
to be dropped; after `:` follows its type, string by default. Letters are scalar types (string, integer, number,
boolean, array, object, `0` for null, `x` for any); `=a,b` is an enumeration, `[…]` a list, `[?…]` a list whose invalid
entries are dropped, `<…>` an object with any keys, `@name` another type of the table, and `|` separates alternatives.
Fields that a type does not name are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from segue.wire.json_values import JsonObject

__all__ = ["INVALID", "InvalidValue", "ObjectType", "parse_types", "repair"]

_SCALAR_TYPES: dict[str, tuple[type, ...]] = {
    "s": (str,),
    "a": (list,),
    "o": (dict,),
    "i": (int,),
    "n": (int, float),
    "b": (bool,),
    "0": (type(None),),
    "x": (object,),
}
# Brackets are never nested, so a `|` outside of them is not followed by a closing one.
_ALTERNATIVES = re.compile(r"\|(?![^\[<]*[\]>])")
INVALID: Final = object()
"""Returned for a value that cannot be repaired by dropping parts of it."""


class Scalar(Struct, frozen=True):
    types: tuple[type, ...]


class Literals(Struct, frozen=True):
    values: tuple[str, ...]


class ListOf(Struct, frozen=True):
    entry: FieldType
    can_drop: bool


class MapOf(Struct, frozen=True):
    value: FieldType


class AnyOf(Struct, frozen=True):
    types: tuple[FieldType, ...]


class ObjectType(Struct, frozen=True):
    """The fields with their presence marks; `by_type` if the field `type` selects the fields."""

    members: Mapping[str, tuple[Presence, FieldType]] = {}
    by_type: Mapping[str, ObjectType] | None = None


Presence: TypeAlias = Literal["", "?", "!"]
FieldType: TypeAlias = Scalar | Literals | ListOf | MapOf | AnyOf | ObjectType


class InvalidValue(Struct, frozen=True):
    """An invalid or missing value, its path, and whether the field is required."""

    path: str
    value: object
    required: bool


# ------------------------------------------------------------------------------------------------------------- parsing


def parse_types(
    table: Mapping[str, str | Mapping[str, str]], defined: Mapping[str, ObjectType] | None = None
) -> dict[str, ObjectType]:
    """Parse a table of types; a line may refer to earlier ones and to those in `defined`."""
    known = dict(defined or {})
    parsed: dict[str, ObjectType] = {}
    for name, entry in table.items():
        if isinstance(entry, str):
            parsed[name] = _parse_object(entry, known)
        else:
            parsed[name] = ObjectType(by_type={kind: _parse_object(line, known) for kind, line in entry.items()})
        known[name] = parsed[name]
    return parsed


def _parse_object(line: str, known: Mapping[str, ObjectType]) -> ObjectType:
    members: dict[str, tuple[Presence, FieldType]] = {}
    for field in line.split():
        name, _, notation = field.partition(":")
        presence: Presence = "?" if name.endswith("?") else "!" if name.endswith("!") else ""
        members[name.rstrip("?!")] = (presence, _parse_type(notation or "s", known))
    return ObjectType(members)


def _parse_type(notation: str, known: Mapping[str, ObjectType]) -> FieldType:
    parts = _ALTERNATIVES.split(notation)
    if len(parts) > 1:
        return AnyOf(tuple(_parse_type(part, known) for part in parts))
    inner = notation[1:-1]
    match notation[0]:
        case "=":
            return Literals(tuple(notation[1:].split(",")))
        case "[":
            return ListOf(_parse_type(inner.removeprefix("?"), known), can_drop=inner.startswith("?"))
        case "<":
            return MapOf(_parse_type(inner, known))
        case "@":
            return known[notation[1:]]
        case _:
            return Scalar(tuple(kind for letter in notation for kind in _SCALAR_TYPES[letter]))


# -------------------------------------------------------------------------------------------------------------- repair


def repair(value: Any, expected: FieldType, invalid: list[InvalidValue], path: str = "") -> Any:
    """The value without invalid droppable parts: the same object if valid, `INVALID` if not repairable."""
    match expected:
        case Scalar():
            is_unexpected_bool = isinstance(value, bool) and bool not in expected.types and object not in expected.types
            return value if isinstance(value, expected.types) and not is_unexpected_bool else INVALID
        case Literals():
            return value if isinstance(value, str) and value in expected.values else INVALID
        case AnyOf():
            return _repair_any_of(value, expected, invalid, path)
        case ListOf():
            return (
                _repair_list(cast("list[Any]", value), expected, invalid, path) if isinstance(value, list) else INVALID
            )
        case MapOf() | ObjectType():
            return (
                _repair_fields(cast("JsonObject", value), expected, invalid, path)
                if isinstance(value, dict)
                else INVALID
            )


def _repair_list(value: list[Any], form: ListOf, invalid: list[InvalidValue], path: str) -> Any:
    kept: list[Any] = []
    for index, entry in enumerate(value):
        repaired = repair(entry, form.entry, invalid, f"{path}[{index}]")
        if repaired is not INVALID:
            kept.append(repaired)
            continue
        invalid.append(InvalidValue(f"{path}[{index}]", entry, required=not form.can_drop))
        if not form.can_drop:
            return INVALID
    unchanged = len(kept) == len(value) and all(a is b for a, b in zip(kept, value, strict=True))
    return value if unchanged else kept


def _repair_any_of(value: Any, form: AnyOf, invalid: list[InvalidValue], path: str) -> Any:
    """Repair by the alternative that drops the least."""
    attempts: list[tuple[bool, list[InvalidValue], Any]] = []
    for option in form.types:
        dropped: list[InvalidValue] = []
        repaired = repair(value, option, dropped, path)
        if repaired is value:
            return value
        attempts.append((repaired is INVALID, dropped, repaired))
    is_invalid, dropped, repaired = min(
        attempts, key=lambda attempt: (attempt[0], not attempt[1] if attempt[0] else len(attempt[1]))
    )
    invalid += dropped
    return INVALID if is_invalid else repaired


def _repair_fields(value: JsonObject, form: ObjectType | MapOf, invalid: list[InvalidValue], path: str) -> Any:
    if isinstance(form, MapOf):
        form = ObjectType(dict.fromkeys(value, ("!", form.value)))
    if form.by_type is not None:
        kind = value.get("type")
        chosen = form.by_type.get(kind) if isinstance(kind, str) else None
        if chosen is None:
            invalid.append(InvalidValue(_join_path(path, "type"), kind, required=True))
            return INVALID
        return _repair_fields(value, chosen, invalid, path)
    changes: JsonObject = {}
    for name, (presence, member) in form.members.items():
        if name not in value:
            if not presence:
                invalid.append(InvalidValue(_join_path(path, name), None, required=True))
                return INVALID
            continue
        repaired = repair(value[name], member, invalid, _join_path(path, name))
        if repaired is INVALID:
            invalid.append(InvalidValue(_join_path(path, name), value[name], presence != "?"))
            if presence != "?":
                return INVALID
        if repaired is not value[name]:
            changes[name] = repaired
    if not changes:
        return value
    return {
        name: repaired for name, original in value.items() if (repaired := changes.get(name, original)) is not INVALID
    }


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
