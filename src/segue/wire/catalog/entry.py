"""An entry of `types.json`: the discriminator of a type, and the fields of its payload."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from segue.errors import InputError
from segue.wire.json_values import JsonObject, get_path, json_type_name, require_object


class Entry(Struct, frozen=True):
    """`ids` are the fields that may hold an id; `identity` is the kind of id that the type has.

    The fields of an `enveloped` type are those of the member that the discriminator names.
    """

    provider: str
    wire_type: str
    role: Literal["call", "output", "call+output"]
    family: str
    surface: str
    discriminator: Mapping[str, Any]
    identity: Literal["natural", "nullable", "conflated", "absent"]
    ids: Mapping[str, str]
    fields: Mapping[str, str]
    pairs_with: tuple[str, ...] = ()
    enveloped: bool = False

    @property
    def member(self) -> str | None:
        """The member that holds the fields of an enveloped type."""
        return list(self.discriminator)[-1].split(".")[0] if self.enveloped else None


@cache
def load_entries() -> tuple[Entry, ...]:
    data = resources.files("segue.wire.catalog").joinpath("types.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Entry, ...])


def matches_discriminator(payload: Mapping[str, Any], entry: Entry) -> bool:
    return all(_has_value(payload, key, value) for key, value in entry.discriminator.items())


def _has_value(payload: Mapping[str, Any], key: str, value: Any) -> bool:
    actual = get_path(payload, key)
    if value == "*":
        return actual is not None
    return actual in value if isinstance(value, list) else actual == value


def check_payload(payload: JsonObject, entry: Entry) -> None:
    """Raise `InputError` with the path if the payload is not of this type."""
    fault = next(find_mismatches(payload, entry), None)
    if fault is not None:
        path, message = fault
        raise InputError(f"{message} ({entry.provider} {entry.wire_type})", path=path)


def find_mismatches(payload: JsonObject, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield path and message of each mismatch between the payload and this type."""
    for key, value in entry.discriminator.items():
        if not _has_value(payload, key, value):
            values = cast("list[object]", value) if isinstance(value, list) else [value]
            expected = "a value" if value == "*" else " or ".join(map(str, values))
            yield key, f"{expected} was expected"
    fields, root = payload, ""
    if entry.member is not None:
        try:
            fields, root = require_object(payload.get(entry.member), entry.member), f"{entry.member}."
        except InputError as error:
            yield error.path, error.message
            return
    for name, spec in entry.fields.items():
        expected = _json_kinds(spec)
        if name not in fields:
            if not spec.endswith(_OPTIONAL):
                yield f"{root}{name}", "a required field is missing"
        elif expected is not None and json_type_name(fields[name]) not in expected:
            if fields[name] is None and spec.endswith(_OPTIONAL):
                continue
            yield f"{root}{name}", f"{' or '.join(sorted(expected))} was expected, not {json_type_name(fields[name])}"


_OPTIONAL = ", optional"
_KIND_NAMES = {
    "str": "a string",
    "string": "a string",
    "datetime": "a string",
    "bool": "a boolean",
    "int": "a number",
    "float": "a number",
    "null": "null",
}
_ENUMS = frozenset({"Language", "Outcome", "ToolType", "FunctionResponseScheduling"})
_UNION_SEPARATOR = re.compile(r"\|(?![^\[]*\])")


@cache
def _json_kinds(spec: str) -> frozenset[str] | None:
    """Return the kinds of values that a field accepts; None for any."""
    kinds: set[str] = set()
    for name in _UNION_SEPARATOR.split(spec.removesuffix(_OPTIONAL)):
        if name in ("Any", "object") or name.startswith("union of"):
            return None
        if name in _KIND_NAMES:
            kinds.add(_KIND_NAMES[name])
        elif name.startswith('"') or name in _ENUMS:
            kinds.add("a string")
        elif name.startswith("list"):
            kinds |= {"a list"} | ({"null"} if name.endswith("or null") else set())
        else:
            kinds.add("an object")
    return frozenset(kinds)
