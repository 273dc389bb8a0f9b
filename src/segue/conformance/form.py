"""A vendor's JSON types as data (`Spec`), and the paths where a value does not match its spec.

Each checker writes its API's schema with these functions and maps each mismatch to a rule and a message. The walk
follows the spec, not the value: values whose spec is open are never entered, however deep they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from segue.conformance.values import is_list, is_object

__all__ = [
    "ANY",
    "BOOLEAN",
    "INTEGER",
    "NUMBER",
    "TEXT",
    "Fault",
    "Form",
    "Kind",
    "Wrong",
    "chosen",
    "closed",
    "either",
    "entries",
    "faults",
    "mapped",
    "maybe",
    "members",
    "one_of",
    "sized",
    "text",
]

Kind = Literal["string", "integer", "number", "boolean", "bytes", "list", "map", "object", "any"]
Wrong = Literal["type", "missing", "unknown", "none", "several", "value", "short", "long", "pattern", "choice"]


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a value. `minimum` and `maximum` bound the length of strings and lists and the value of numbers."""

    kind: Kind
    null: bool = False
    values: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    each: Form | None = None
    key: Form | None = None
    needs: tuple[str, ...] = ()
    members: Mapping[str, Form] = {}
    closed: bool = False
    union: bool = False
    """Exactly one of the members must be given."""
    by: str = ""
    default: str = ""
    choices: Mapping[str, Form] = {}
    """Specs by the value of the member `discriminator`, or by `default` if that is absent."""
    either: tuple[Form, ...] = ()


class Fault(msgspec.Struct, frozen=True):
    """A path where a value does not match its spec. `key` is the missing or unknown member."""

    path: str
    wrong: Wrong
    form: Form
    value: object
    key: str = ""


TEXT = Form(kind="string")
INTEGER = Form(kind="integer")
NUMBER = Form(kind="number")
BOOLEAN = Form(kind="boolean")
ANY = Form(kind="any")


def text(*values: str) -> Form:
    """A string, one of these values if any are given."""
    return Form(kind="string", values=values)


def sized(kind: Kind, least: float | None = None, most: float | None = None, pattern: str = "") -> Form:
    """A scalar within bounds."""
    return Form(kind=kind, least=least, most=most, pattern=pattern)


def entries(each: Form, least: float | None = None, most: float | None = None) -> Form:
    """A list whose entries have one spec."""
    return Form(kind="list", each=each, least=least, most=most)


def mapped(each: Form, key: Form | None = None, least: float | None = None, most: float | None = None) -> Form:
    """An object with arbitrary keys."""
    return Form(kind="map", each=each, key=key, least=least, most=most)


def members(required: Mapping[str, Form] | None = None, /, **optional: Form) -> Form:
    """An object with required and optional members; other keys are allowed."""
    required = required or {}
    return Form(kind="object", needs=tuple(sorted(required)), members={**required, **optional})


def closed(required: Mapping[str, Form] | None = None, /, **optional: Form) -> Form:
    """An object with these members and no other keys."""
    return msgspec.structs.replace(members(required, **optional), closed=True)


def one_of(**specs: Form) -> Form:
    """An object with exactly one of these members."""
    return Form(kind="object", members=specs, closed=True, union=True)


def chosen(discriminator: str, variants: Mapping[str, Form], *, default: str = "") -> Form:
    """An object whose spec depends on the value of one of its members."""
    return Form(kind="object", by=discriminator, choices=variants, default=default)


def either(*specs: Form) -> Form:
    """A value that matches one of these specs."""
    return Form(kind="any", either=specs)


def maybe(spec: Form) -> Form:
    """The same spec, or null."""
    return msgspec.structs.replace(spec, null=True)


def _is(value: object, kind: Kind) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "bytes":
            return isinstance(value, str | bytes | bytearray)
        case "list":
            return is_list(value)
        case "object" | "map":
            return is_object(value)
        case "any":
            return True


def faults(spec: Form, value: object, path: str = "") -> Iterator[Fault]:
    """Yields every mismatch between the value and the spec."""
    if value is None and spec.null:
        return
    if spec.either:
        yield from _nearest(spec, value, path)
    elif not _is(value, spec.kind):
        yield Fault(path, "type", spec, value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _text_faults(spec, value, path)
    elif isinstance(value, int | float):
        if not isinstance(value, bool):
            yield from _bound_faults(spec, value, value, path)
    elif is_list(value):
        if spec.kind == "list":
            yield from _bound_faults(spec, value, len(value), path)
            for index, entry in enumerate(value if spec.each is not None else ()):
                yield from faults(spec.each or ANY, entry, f"{path}[{index}]")
    elif is_object(value) and spec.kind != "any":
        yield from _member_faults(spec, value, f"{path}." if path else "", path)


def _nearest(spec: Form, value: object, path: str) -> Iterator[Fault]:
    """Yields the mismatches of the alternative with the fewest; none if the value matches one."""
    nearest: list[Fault] | None = None
    for option in spec.either:
        if _is(value, option.kind):
            found = list(faults(option, value, path))
            if nearest is None or len(found) < len(nearest):
                nearest = found
    yield from [Fault(path, "type", spec, value)] if nearest is None else nearest


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _text_faults(spec: Form, value: str | bytes | bytearray, path: str) -> Iterator[Fault]:
    if spec.values and value not in spec.values:
        yield Fault(path, "value", spec, value)
    bounds = list(_bound_faults(spec, value, len(value), path))
    yield from bounds
    if spec.pattern and not bounds and isinstance(value, str) and not _compiled(spec.pattern).fullmatch(value):
        yield Fault(path, "pattern", spec, value)


def _bound_faults(spec: Form, value: object, size: float, path: str) -> Iterator[Fault]:
    if spec.least is not None and size < spec.least:
        yield Fault(path, "short", spec, value)
    elif spec.most is not None and size > spec.most:
        yield Fault(path, "long", spec, value)


def _member_faults(spec: Form, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Fault]:
    if spec.kind == "map":
        yield from _bound_faults(spec, value, len(value), path)
    if spec.union and len(value) != 1:
        yield Fault(path, "several" if value else "none", spec, value)
    for key in spec.needs:
        if key not in value:
            yield Fault(f"{prefix}{key}", "missing", spec, value, key)
    for key, entry in value.items():
        known = spec.members.get(key)
        if known is not None:
            yield from faults(known, entry, f"{prefix}{key}")
        elif spec.closed:
            yield Fault(f"{prefix}{key}", "unknown", spec, value, str(key))
        elif spec.each is not None:
            if spec.key is not None:
                yield from faults(spec.key, key, f"{prefix}{key}")
            yield from faults(spec.each, entry, f"{prefix}{key}")
    if spec.by:
        yield from _choice_faults(spec, value, prefix, path)


def _choice_faults(spec: Form, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Fault]:
    here = f"{prefix}{spec.by}"
    if spec.by not in value and not spec.default:
        yield Fault(here, "missing", spec, value, spec.by)
        return
    choice = value.get(spec.by, spec.default)
    if not isinstance(choice, str):
        yield Fault(here, "type", TEXT, choice)
    elif choice not in spec.choices:
        yield Fault(here, "choice", spec, choice)
    else:
        yield from faults(spec.choices[choice], value, path)
