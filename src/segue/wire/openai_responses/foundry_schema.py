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
    read = dict(defined or {})
    made: dict[str, ObjectType] = {}
    for name, entry in table.items():
        if isinstance(entry, str):
            made[name] = _parse_object(entry, read)
        else:
            made[name] = ObjectType(by_type={kind: _parse_object(line, read) for kind, line in entry.items()})
        read[name] = made[name]
    return made


def _parse_object(line: str, known: Mapping[str, ObjectType]) -> ObjectType:
    members: dict[str, tuple[Presence, FieldType]] = {}
    for field in line.split():
        name, _, notation = field.partition(":")
        mark: Presence = "?" if name.endswith("?") else "!" if name.endswith("!") else ""
        members[name.rstrip("?!")] = (mark, _parse_type(notation or "s", known))
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
            truth = isinstance(value, bool) and bool not in expected.types and object not in expected.types
            return value if isinstance(value, expected.types) and not truth else INVALID
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


def _repair_list(value: list[Any], form: ListOf, lost: list[InvalidValue], path: str) -> Any:
    kept: list[Any] = []
    for index, entry in enumerate(value):
        made = repair(entry, form.entry, lost, f"{path}[{index}]")
        if made is not INVALID:
            kept.append(made)
            continue
        lost.append(InvalidValue(f"{path}[{index}]", entry, required=not form.can_drop))
        if not form.can_drop:
            return INVALID
    same = len(kept) == len(value) and all(a is b for a, b in zip(kept, value, strict=True))
    return value if same else kept


def _repair_any_of(value: Any, form: AnyOf, lost: list[InvalidValue], path: str) -> Any:
    """Repair by the alternative that drops the least."""
    tried: list[tuple[bool, list[InvalidValue], Any]] = []
    for option in form.types:
        less: list[InvalidValue] = []
        made = repair(value, option, less, path)
        if made is value:
            return value
        tried.append((made is INVALID, less, made))
    misfit, less, made = min(tried, key=lambda one: (one[0], not one[1] if one[0] else len(one[1])))
    lost += less
    return INVALID if misfit else made


def _repair_fields(value: JsonObject, form: ObjectType | MapOf, lost: list[InvalidValue], path: str) -> Any:
    if isinstance(form, MapOf):
        form = ObjectType(dict.fromkeys(value, ("!", form.value)))
    if form.by_type is not None:
        kind = value.get("type")
        chosen = form.by_type.get(kind) if isinstance(kind, str) else None
        if chosen is None:
            lost.append(InvalidValue(_join_path(path, "type"), kind, required=True))
            return INVALID
        return _repair_fields(value, chosen, lost, path)
    changes: JsonObject = {}
    for name, (mark, member) in form.members.items():
        if name not in value:
            if not mark:
                lost.append(InvalidValue(_join_path(path, name), None, required=True))
                return INVALID
            continue
        made = repair(value[name], member, lost, _join_path(path, name))
        if made is INVALID:
            lost.append(InvalidValue(_join_path(path, name), value[name], mark != "?"))
            if mark != "?":
                return INVALID
        if made is not value[name]:
            changes[name] = made
    if not changes:
        return value
    return {name: made for name, old in value.items() if (made := changes.get(name, old)) is not INVALID}


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
