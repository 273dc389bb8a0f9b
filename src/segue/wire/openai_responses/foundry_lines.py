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

from segue.wire.fields import JsonObject

__all__ = ["MISFIT", "Loss", "Record", "lines", "mended"]

_KINDS: dict[str, tuple[type, ...]] = {
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
_ALIKE = re.compile(r"\|(?![^\[<]*[\]>])")
MISFIT: Final = object()
"""Returned for a value that cannot be repaired by dropping parts of it."""


class Plain(Struct, frozen=True):
    types: tuple[type, ...]


class Word(Struct, frozen=True):
    known: tuple[str, ...]


class Listed(Struct, frozen=True):
    each: Form
    loose: bool


class Keyed(Struct, frozen=True):
    each: Form


class Either(Struct, frozen=True):
    forms: tuple[Form, ...]


class Record(Struct, frozen=True):
    """The fields with their presence marks; `by_type` if the field `type` selects the fields."""

    members: Mapping[str, tuple[Mark, Form]] = {}
    by_type: Mapping[str, Record] | None = None


Mark: TypeAlias = Literal["", "?", "!"]
Form: TypeAlias = Plain | Word | Listed | Keyed | Either | Record


class Loss(Struct, frozen=True):
    """An invalid or missing value, its path, and whether the field is required."""

    path: str
    value: object
    needed: bool


# ------------------------------------------------------------------------------------------------------------- parsing


def lines(table: Mapping[str, str | Mapping[str, str]], known: Mapping[str, Record] | None = None) -> dict[str, Record]:
    """Parse a table of types; a line may refer to earlier ones and to those in `defined`."""
    read = dict(known or {})
    made: dict[str, Record] = {}
    for name, entry in table.items():
        if isinstance(entry, str):
            made[name] = _record(entry, read)
        else:
            made[name] = Record(by_type={kind: _record(line, read) for kind, line in entry.items()})
        read[name] = made[name]
    return made


def _record(line: str, known: Mapping[str, Record]) -> Record:
    members: dict[str, tuple[Mark, Form]] = {}
    for field in line.split():
        name, _, notation = field.partition(":")
        mark: Mark = "?" if name.endswith("?") else "!" if name.endswith("!") else ""
        members[name.rstrip("?!")] = (mark, _form(notation or "s", known))
    return Record(members)


def _form(notation: str, known: Mapping[str, Record]) -> Form:
    parts = _ALIKE.split(notation)
    if len(parts) > 1:
        return Either(tuple(_form(part, known) for part in parts))
    inner = notation[1:-1]
    match notation[0]:
        case "=":
            return Word(tuple(notation[1:].split(",")))
        case "[":
            return Listed(_form(inner.removeprefix("?"), known), loose=inner.startswith("?"))
        case "<":
            return Keyed(_form(inner, known))
        case "@":
            return known[notation[1:]]
        case _:
            return Plain(tuple(kind for letter in notation for kind in _KINDS[letter]))


# -------------------------------------------------------------------------------------------------------------- repair


def mended(value: Any, form: Form, lost: list[Loss], path: str = "") -> Any:
    """The value without invalid droppable parts: the same object if valid, `INVALID` if not repairable."""
    match form:
        case Plain():
            truth = isinstance(value, bool) and bool not in form.types and object not in form.types
            return value if isinstance(value, form.types) and not truth else MISFIT
        case Word():
            return value if isinstance(value, str) and value in form.known else MISFIT
        case Either():
            return _nearest(value, form, lost, path)
        case Listed():
            return _mended_list(cast("list[Any]", value), form, lost, path) if isinstance(value, list) else MISFIT
        case Keyed() | Record():
            return _mended_members(cast("JsonObject", value), form, lost, path) if isinstance(value, dict) else MISFIT


def _mended_list(value: list[Any], form: Listed, lost: list[Loss], path: str) -> Any:
    kept: list[Any] = []
    for index, entry in enumerate(value):
        made = mended(entry, form.each, lost, f"{path}[{index}]")
        if made is not MISFIT:
            kept.append(made)
            continue
        lost.append(Loss(f"{path}[{index}]", entry, needed=not form.loose))
        if not form.loose:
            return MISFIT
    same = len(kept) == len(value) and all(a is b for a, b in zip(kept, value, strict=True))
    return value if same else kept


def _nearest(value: Any, form: Either, lost: list[Loss], path: str) -> Any:
    """Repair by the alternative that drops the least."""
    tried: list[tuple[bool, list[Loss], Any]] = []
    for option in form.forms:
        less: list[Loss] = []
        made = mended(value, option, less, path)
        if made is value:
            return value
        tried.append((made is MISFIT, less, made))
    misfit, less, made = min(tried, key=lambda one: (one[0], not one[1] if one[0] else len(one[1])))
    lost += less
    return MISFIT if misfit else made


def _mended_members(value: JsonObject, form: Record | Keyed, lost: list[Loss], path: str) -> Any:
    if isinstance(form, Keyed):
        form = Record(dict.fromkeys(value, ("!", form.each)))
    if form.by_type is not None:
        kind = value.get("type")
        chosen = form.by_type.get(kind) if isinstance(kind, str) else None
        if chosen is None:
            lost.append(Loss(_under(path, "type"), kind, needed=True))
            return MISFIT
        return _mended_members(value, chosen, lost, path)
    changes: JsonObject = {}
    for name, (mark, member) in form.members.items():
        if name not in value:
            if not mark:
                lost.append(Loss(_under(path, name), None, needed=True))
                return MISFIT
            continue
        made = mended(value[name], member, lost, _under(path, name))
        if made is MISFIT:
            lost.append(Loss(_under(path, name), value[name], mark != "?"))
            if mark != "?":
                return MISFIT
        if made is not value[name]:
            changes[name] = made
    if not changes:
        return value
    return {name: made for name, old in value.items() if (made := changes.get(name, old)) is not MISFIT}


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
