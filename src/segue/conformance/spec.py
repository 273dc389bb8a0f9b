"""`Spec`, a small schema language for JSON values, and `find_mismatches`, which lists where a value differs from it.

Each checker writes its API's schema as a `Spec` and maps each mismatch to a rule and a message. Values of the kind
`any` are not searched, so that deep nesting there costs nothing.
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
    "STRING",
    "Mismatch",
    "MismatchKind",
    "Spec",
    "ValueKind",
    "any_of",
    "bounded",
    "closed_object",
    "enum_of",
    "find_mismatches",
    "list_of",
    "map_of",
    "nullable",
    "object_of",
    "tagged",
    "union_of",
]

ValueKind = Literal["string", "integer", "number", "boolean", "bytes", "list", "map", "object", "any"]
# `none` and `several`: not exactly one member. `value`: not in `values`. `choice`: not a key of `variants`.
MismatchKind = Literal["type", "missing", "unknown", "none", "several", "value", "short", "long", "pattern", "choice"]


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a value. `minimum` and `maximum` bound the length of strings and lists and the value of numbers.

    `values` are the allowed strings. `items` is the spec of list entries and map values, `keys` that of map keys.
    `members` are the members of an object by name; a `closed` object has no others.
    """

    kind: ValueKind
    nullable: bool = False
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    items: Spec | None = None
    keys: Spec | None = None
    required: tuple[str, ...] = ()
    members: Mapping[str, Spec] = {}
    closed: bool = False
    exactly_one: bool = False
    """Exactly one of the members must be given."""
    discriminator: str = ""
    default: str = ""
    variants: Mapping[str, Spec] = {}
    """Specs by the value of the member `discriminator`, or by `default` if that is absent."""
    any_of: tuple[Spec, ...] = ()


class Mismatch(msgspec.Struct, frozen=True):
    """A path where a value does not match its spec. `key` is the missing or unknown member."""

    path: str
    kind: MismatchKind
    spec: Spec
    value: object
    key: str = ""


STRING = Spec(kind="string")
INTEGER = Spec(kind="integer")
NUMBER = Spec(kind="number")
BOOLEAN = Spec(kind="boolean")
ANY = Spec(kind="any")


def enum_of(*values: str) -> Spec:
    """A string, one of these values if any are given."""
    return Spec(kind="string", values=values)


def bounded(kind: ValueKind, minimum: float | None = None, maximum: float | None = None, pattern: str = "") -> Spec:
    """A scalar within bounds."""
    return Spec(kind=kind, minimum=minimum, maximum=maximum, pattern=pattern)


def list_of(each: Spec, minimum: float | None = None, maximum: float | None = None) -> Spec:
    """A list whose entries have one spec."""
    return Spec(kind="list", items=each, minimum=minimum, maximum=maximum)


def map_of(each: Spec, key: Spec | None = None, minimum: float | None = None, maximum: float | None = None) -> Spec:
    """An object with arbitrary keys."""
    return Spec(kind="map", items=each, keys=key, minimum=minimum, maximum=maximum)


def object_of(required: Mapping[str, Spec] | None = None, /, **optional: Spec) -> Spec:
    """An object with required and optional members; other keys are allowed."""
    required = required or {}
    return Spec(kind="object", required=tuple(sorted(required)), members={**required, **optional})


def closed_object(required: Mapping[str, Spec] | None = None, /, **optional: Spec) -> Spec:
    """An object with these members and no other keys."""
    return msgspec.structs.replace(object_of(required, **optional), closed=True)


def union_of(**specs: Spec) -> Spec:
    """An object with exactly one of these members."""
    return Spec(kind="object", members=specs, closed=True, exactly_one=True)


def tagged(discriminator: str, variants: Mapping[str, Spec], *, default: str = "") -> Spec:
    """An object whose spec depends on the value of one of its members."""
    return Spec(kind="object", discriminator=discriminator, variants=variants, default=default)


def any_of(*specs: Spec) -> Spec:
    """A value that matches one of these specs."""
    return Spec(kind="any", any_of=specs)


def nullable(spec: Spec) -> Spec:
    """The same spec, or null."""
    return msgspec.structs.replace(spec, nullable=True)


def _has_kind(value: object, kind: ValueKind) -> bool:
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


def find_mismatches(spec: Spec, value: object, path: str = "") -> Iterator[Mismatch]:
    """Yields every mismatch between the value and the spec."""
    if value is None and spec.nullable:
        return
    if spec.any_of:
        yield from _closest_mismatches(spec, value, path)
    elif not _has_kind(value, spec.kind):
        yield Mismatch(path, "type", spec, value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _check_string(spec, value, path)
    elif isinstance(value, int | float):
        if not isinstance(value, bool):
            yield from _check_bounds(spec, value, value, path)
    elif is_list(value):
        if spec.kind == "list":
            yield from _check_bounds(spec, value, len(value), path)
            for index, entry in enumerate(value if spec.items is not None else ()):
                yield from find_mismatches(spec.items or ANY, entry, f"{path}[{index}]")
    elif is_object(value) and spec.kind != "any":
        yield from _check_members(spec, value, f"{path}." if path else "", path)


def _closest_mismatches(spec: Spec, value: object, path: str) -> Iterator[Mismatch]:
    """Yields the mismatches of the alternative with the fewest; none if the value matches one."""
    nearest: list[Mismatch] | None = None
    for option in spec.any_of:
        if _has_kind(value, option.kind):
            mismatches = list(find_mismatches(option, value, path))
            if nearest is None or len(mismatches) < len(nearest):
                nearest = mismatches
    yield from [Mismatch(path, "type", spec, value)] if nearest is None else nearest


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _check_string(spec: Spec, value: str | bytes | bytearray, path: str) -> Iterator[Mismatch]:
    if spec.values and value not in spec.values:
        yield Mismatch(path, "value", spec, value)
    bounds = list(_check_bounds(spec, value, len(value), path))
    yield from bounds
    if spec.pattern and not bounds and isinstance(value, str) and not _compile(spec.pattern).fullmatch(value):
        yield Mismatch(path, "pattern", spec, value)


def _check_bounds(spec: Spec, value: object, size: float, path: str) -> Iterator[Mismatch]:
    if spec.minimum is not None and size < spec.minimum:
        yield Mismatch(path, "short", spec, value)
    elif spec.maximum is not None and size > spec.maximum:
        yield Mismatch(path, "long", spec, value)


def _check_members(spec: Spec, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Mismatch]:
    if spec.kind == "map":
        yield from _check_bounds(spec, value, len(value), path)
    if spec.exactly_one and len(value) != 1:
        yield Mismatch(path, "several" if value else "none", spec, value)
    for key in spec.required:
        if key not in value:
            yield Mismatch(f"{prefix}{key}", "missing", spec, value, key)
    for key, entry in value.items():
        known = spec.members.get(key)
        if known is not None:
            yield from find_mismatches(known, entry, f"{prefix}{key}")
        elif spec.closed:
            yield Mismatch(f"{prefix}{key}", "unknown", spec, value, str(key))
        elif spec.items is not None:
            if spec.keys is not None:
                yield from find_mismatches(spec.keys, key, f"{prefix}{key}")
            yield from find_mismatches(spec.items, entry, f"{prefix}{key}")
    if spec.discriminator:
        yield from _check_variant(spec, value, prefix, path)


def _check_variant(spec: Spec, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Mismatch]:
    here = f"{prefix}{spec.discriminator}"
    if spec.discriminator not in value and not spec.default:
        yield Mismatch(here, "missing", spec, value, spec.discriminator)
        return
    choice = value.get(spec.discriminator, spec.default)
    if not isinstance(choice, str):
        yield Mismatch(here, "type", STRING, choice)
    elif choice not in spec.variants:
        yield Mismatch(here, "choice", spec, choice)
    else:
        yield from find_mismatches(spec.variants[choice], value, path)
