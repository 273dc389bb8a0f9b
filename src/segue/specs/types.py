"""Types of JSON values: `Spec`, the types that vendors publish (`load_types`), and where a value differs from its type.

`<api>.json` holds the types of an API, written by `scripts/generate_specs.py` from the vendor's SDK.
`<api>_overrides.json` lists where the service differs from it, each with its reason. `find_mismatches` compares a value
with a `Spec`; rules, messages and repairs are the caller's. Values of the kind `any` are not searched, so that deep
nesting there costs nothing.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, TypeGuard

import msgspec

ValueKind = Literal["string", "integer", "number", "boolean", "bytes", "list", "map", "object", "any"]
# `none` and `several`: not exactly one member. `value`: not in `values`. `choice`: not a key of `variants`.
MismatchKind = Literal["type", "missing", "unknown", "none", "several", "value", "short", "long", "pattern", "choice"]


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The type of a value. `minimum` and `maximum` bound the length of strings and lists and the value of numbers.

    `values` are the allowed strings. `items` is the spec of list entries and map values, `keys` that of map keys.
    `members` are the members of an object by name; a `closed` object has no others.
    """

    kind: ValueKind = "any"
    name: str = ""
    """The vendor's name of the type, if it has one."""
    ref: str = ""
    """In the files only: the name of another type of the API, in place of a spec."""
    nullable: bool = False
    values: tuple[str, ...] = ()
    minimum: int | float | None = None
    maximum: int | float | None = None
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
    """Return the spec of a string, one of these values if any are given."""
    return Spec(kind="string", values=values)


def bounded(kind: ValueKind, minimum: float | None = None, maximum: float | None = None, pattern: str = "") -> Spec:
    """Return the spec of a scalar within bounds."""
    return Spec(kind=kind, minimum=minimum, maximum=maximum, pattern=pattern)


def list_of(each: Spec, minimum: float | None = None, maximum: float | None = None) -> Spec:
    """Return the spec of a list whose entries have one spec."""
    return Spec(kind="list", items=each, minimum=minimum, maximum=maximum)


def map_of(each: Spec, key: Spec | None = None, minimum: float | None = None, maximum: float | None = None) -> Spec:
    """Return the spec of an object with arbitrary keys."""
    return Spec(kind="map", items=each, keys=key, minimum=minimum, maximum=maximum)


def object_of(required: Mapping[str, Spec] | None = None, /, **optional: Spec) -> Spec:
    """Return the spec of an object with required and optional members; other keys are allowed."""
    required = required or {}
    return Spec(kind="object", required=tuple(sorted(required)), members={**required, **optional})


def closed_object(required: Mapping[str, Spec] | None = None, /, **optional: Spec) -> Spec:
    """Return the spec of an object with these members and no other keys."""
    return msgspec.structs.replace(object_of(required, **optional), closed=True)


def tagged(discriminator: str, variants: Mapping[str, Spec], *, default: str = "") -> Spec:
    """Return the spec of an object that depends on the value of one of its members."""
    return Spec(kind="object", discriminator=discriminator, variants=variants, default=default)


def any_of(*specs: Spec) -> Spec:
    """Return the spec of a value that matches one of these specs."""
    return Spec(kind="any", any_of=specs)


def nullable(spec: Spec) -> Spec:
    """Return the same spec, which null matches too."""
    return msgspec.structs.replace(spec, nullable=True)


# ---------------------------------------------------------------------------------------------- the types of an API


class PublishedTypes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `<api>.json`: types by name, and the package and version that they come from."""

    source: str
    types: dict[str, Spec]


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A difference between the service and the published types. Members are written `Type.member`."""

    reason: str
    types: dict[str, Spec] = {}
    """Added or replaced types."""
    members: dict[str, Spec] = {}
    """Added or replaced members."""
    optional: tuple[str, ...] = ()
    """Members that are not required."""
    absent: tuple[str, ...] = ()
    """Members that the service does not accept."""


def read_published(api: str) -> PublishedTypes:
    """Read the types that the vendor publishes."""
    return msgspec.json.decode(_read(f"{api}.json"), type=PublishedTypes)


def read_overrides(api: str) -> list[Override]:
    """Read the differences between the service and the published types."""
    return msgspec.json.decode(_read(f"{api}_overrides.json"), type=list[Override])


def _read(name: str) -> bytes:
    data = pkgutil.get_data("segue.specs", name)
    assert data is not None
    return data


@cache
def load_types(api: str) -> Mapping[str, Spec]:
    """Return the types of an API by name, with its overrides. A type that refers to itself is a cyclic value."""
    types = read_published(api).types
    for override in read_overrides(api):
        types.update(override.types)
        for place, spec in override.members.items():
            name, _, member = place.partition(".")
            types[name] = msgspec.structs.replace(types[name], members={**types[name].members, member: spec})
        for place in override.optional:
            name, _, member = place.partition(".")
            required = tuple(key for key in types[name].required if key != member)
            types[name] = msgspec.structs.replace(types[name], required=required)
        for place in override.absent:
            name, _, member = place.partition(".")
            members = {key: spec for key, spec in types[name].members.items() if key != member}
            types[name] = msgspec.structs.replace(types[name], members=members)
    return _Linker(types).link_all()


class _Linker:
    """Replaces references by the specs that they refer to. Cycles must lead through an object."""

    def __init__(self, types: Mapping[str, Spec]) -> None:
        self._types = types
        self._linked: dict[str, Spec] = {}

    def link_all(self) -> Mapping[str, Spec]:
        return {name: self._link_type(name) for name in self._types}

    def _link_type(self, name: str) -> Spec:
        if name not in self._linked:
            self._link(msgspec.structs.replace(self._types[name], name=name))
        return self._linked[name]

    def _link(self, spec: Spec) -> Spec:
        if spec.ref:
            target = self._link_type(spec.ref)
            return msgspec.structs.replace(target, nullable=True) if spec.nullable else target
        members: dict[str, Spec] = {}
        variants: dict[str, Spec] = {}
        linked = msgspec.structs.replace(
            spec,
            items=self._link(spec.items) if spec.items is not None else None,
            keys=self._link(spec.keys) if spec.keys is not None else None,
            any_of=tuple(map(self._link, spec.any_of)),
            members=members,
            variants=variants,
        )
        if spec.name:
            self._linked[spec.name] = linked
        # Filled afterwards, so that a type may refer to itself.
        members.update((key, self._link(member)) for key, member in spec.members.items())
        variants.update((key, self._link(variant)) for key, variant in spec.variants.items())
        return linked


# ----------------------------------------------------------------------------------------------------- comparison


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


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
            return _is_list(value)
        case "object" | "map":
            return _is_object(value)
        case "any":
            return True


def find_mismatches(spec: Spec, value: object, path: str = "") -> Iterator[Mismatch]:
    """Yield every mismatch between the value and the spec."""
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
    elif _is_list(value):
        if spec.kind == "list":
            yield from _check_bounds(spec, value, len(value), path)
            for index, entry in enumerate(value if spec.items is not None else ()):
                yield from find_mismatches(spec.items or ANY, entry, f"{path}[{index}]")
    elif _is_object(value) and spec.kind != "any":
        yield from _check_members(spec, value, f"{path}." if path else "", path)


def _closest_mismatches(spec: Spec, value: object, path: str) -> Iterator[Mismatch]:
    """Yield the mismatches of the alternative with the fewest; none if the value matches one."""
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
