"""The forms that a vendor's schema gives to values, as data, and where a value departs from them.

A judge writes its API's schema with these and says itself which rule each fault breaks and in which words. The walk
follows the schema, not the value: what a schema leaves open is never entered, however deep it is.
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
    """What a value may be. `least` and `most` bound the length of strings and lists and the value of numbers."""

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
    """Whether exactly one of the members is given."""
    by: str = ""
    default: str = ""
    choices: Mapping[str, Form] = {}
    """By the member `by`, or by `default` where that is absent."""
    either: tuple[Form, ...] = ()


class Fault(msgspec.Struct, frozen=True):
    """Where a value departs from its form. `key` is the member that is missing or not known."""

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
    """A string, one of these where there are any."""
    return Form(kind="string", values=values)


def sized(kind: Kind, least: float | None = None, most: float | None = None, pattern: str = "") -> Form:
    """A scalar within bounds."""
    return Form(kind=kind, least=least, most=most, pattern=pattern)


def entries(each: Form, least: float | None = None, most: float | None = None) -> Form:
    """A list of values of one form."""
    return Form(kind="list", each=each, least=least, most=most)


def mapped(each: Form, key: Form | None = None, least: float | None = None, most: float | None = None) -> Form:
    """An object with keys of the caller's choice."""
    return Form(kind="map", each=each, key=key, least=least, most=most)


def members(needs: Mapping[str, Form] | None = None, /, **may: Form) -> Form:
    """An object with the members that it needs and others that it may have; of more keys nothing is said."""
    needs = needs or {}
    return Form(kind="object", needs=tuple(sorted(needs)), members={**needs, **may})


def closed(needs: Mapping[str, Form] | None = None, /, **may: Form) -> Form:
    """An object with these members and no other keys."""
    return msgspec.structs.replace(members(needs, **may), closed=True)


def one_of(**forms: Form) -> Form:
    """An object with exactly one of these members."""
    return Form(kind="object", members=forms, closed=True, union=True)


def chosen(by: str, choices: Mapping[str, Form], *, default: str = "") -> Form:
    """An object whose form is told by one of its members."""
    return Form(kind="object", by=by, choices=choices, default=default)


def either(*forms: Form) -> Form:
    """A value that has one of these forms."""
    return Form(kind="any", either=forms)


def maybe(form: Form) -> Form:
    """The same, or null."""
    return msgspec.structs.replace(form, null=True)


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


def faults(form: Form, value: object, path: str = "") -> Iterator[Fault]:
    """Every place where the value departs from the form."""
    if value is None and form.null:
        return
    if form.either:
        yield from _nearest(form, value, path)
    elif not _is(value, form.kind):
        yield Fault(path, "type", form, value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _text_faults(form, value, path)
    elif isinstance(value, int | float):
        if not isinstance(value, bool):
            yield from _bound_faults(form, value, value, path)
    elif is_list(value):
        if form.kind == "list":
            yield from _bound_faults(form, value, len(value), path)
            for index, entry in enumerate(value if form.each is not None else ()):
                yield from faults(form.each or ANY, entry, f"{path}[{index}]")
    elif is_object(value) and form.kind != "any":
        yield from _member_faults(form, value, f"{path}." if path else "", path)


def _nearest(form: Form, value: object, path: str) -> Iterator[Fault]:
    """The faults of the form that the value comes nearest to; none where it has one of them."""
    nearest: list[Fault] | None = None
    for option in form.either:
        if _is(value, option.kind):
            found = list(faults(option, value, path))
            if nearest is None or len(found) < len(nearest):
                nearest = found
    yield from [Fault(path, "type", form, value)] if nearest is None else nearest


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _text_faults(form: Form, value: str | bytes | bytearray, path: str) -> Iterator[Fault]:
    if form.values and value not in form.values:
        yield Fault(path, "value", form, value)
    bounds = list(_bound_faults(form, value, len(value), path))
    yield from bounds
    if form.pattern and not bounds and isinstance(value, str) and not _compiled(form.pattern).fullmatch(value):
        yield Fault(path, "pattern", form, value)


def _bound_faults(form: Form, value: object, size: float, path: str) -> Iterator[Fault]:
    if form.least is not None and size < form.least:
        yield Fault(path, "short", form, value)
    elif form.most is not None and size > form.most:
        yield Fault(path, "long", form, value)


def _member_faults(form: Form, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Fault]:
    if form.kind == "map":
        yield from _bound_faults(form, value, len(value), path)
    if form.union and len(value) != 1:
        yield Fault(path, "several" if value else "none", form, value)
    for key in form.needs:
        if key not in value:
            yield Fault(f"{prefix}{key}", "missing", form, value, key)
    for key, entry in value.items():
        known = form.members.get(key)
        if known is not None:
            yield from faults(known, entry, f"{prefix}{key}")
        elif form.closed:
            yield Fault(f"{prefix}{key}", "unknown", form, value, str(key))
        elif form.each is not None:
            if form.key is not None:
                yield from faults(form.key, key, f"{prefix}{key}")
            yield from faults(form.each, entry, f"{prefix}{key}")
    if form.by:
        yield from _choice_faults(form, value, prefix, path)


def _choice_faults(form: Form, value: Mapping[str, object], prefix: str, path: str) -> Iterator[Fault]:
    here = f"{prefix}{form.by}"
    if form.by not in value and not form.default:
        yield Fault(here, "missing", form, value, form.by)
        return
    choice = value.get(form.by, form.default)
    if not isinstance(choice, str):
        yield Fault(here, "type", TEXT, choice)
    elif choice not in form.choices:
        yield Fault(here, "choice", form, choice)
    else:
        yield from faults(form.choices[choice], value, path)
