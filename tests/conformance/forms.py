"""Values drawn from a form, and what can be done to them so that they may have it no longer."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from hypothesis import strategies as st

from segue.conformance.form import Form
from tests.drawing import between, pick

# Strings that match one or the other of the patterns and bounds; those that do not are damage.
STRINGS = (
    *("a", "abcdefgh1", "tooluse_1-x", "functions.f:0", "b" * 64, "s3://bucket/key", "123456789012", "DRAFT", "7"),
    *("amazon.nova-pro-v1:0", "arn:aws:bedrock:us-east-1:123456789012:guardrail/abc", "x y", "é", "a\n", "", "b" * 65),
    *("b" * 257, "b" * 2049, "s3://"),
)
_DOCUMENTS: tuple[Any, ...] = ({}, {"type": "object"}, [1, {"a": None}], "t", 1, 0.5, True, None)
_JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2,
    1.5,
    [],
    {},
    [None],
    ["a"],
    {"text": "t"},
    {"type": "text"},
    *STRINGS,
)


def _fits(form: Form, text: str) -> bool:
    sized = (form.least or 0) <= len(text) <= (form.most if form.most is not None else len(text))
    return sized and (not form.pattern or re.fullmatch(form.pattern, text) is not None)


@cache
def _some(names: tuple[str, ...], most: int | None, least: int = 0) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from(names), min_size=least, max_size=most)


@st.composite
def value_of(draw: st.DrawFn, form: Form) -> Any:
    """A value that has the form."""
    return _value(draw, form)


def _value(draw: st.DrawFn, form: Form) -> Any:
    if form.null and draw(between(0, 3)) == 0:
        return None
    if form.either:
        return _value(draw, pick(draw, form.either))
    least, most = form.least or 0, form.most
    match form.kind:
        case "string" | "bytes":
            return pick(draw, form.values or [text for text in STRINGS if _fits(form, text)])
        case "integer":
            return draw(between(int(least), int(most) if most is not None else 9))
        case "number":
            return pick(draw, [least, 1, 0.5])
        case "boolean":
            return draw(st.booleans())
        case "any":
            return copy.deepcopy(pick(draw, _DOCUMENTS))
        case "list":
            size = draw(between(int(least), int(least) + 2))
            return [_value(draw, form.each or Form(kind="any")) for _ in range(size)]
        case "map":
            keys = draw(_some(("a", "b"), None, int(least)))
            return {key: _value(draw, form.each or Form(kind="any")) for key in sorted(keys)}
        case "object":
            return _members(draw, form)


def _members(draw: st.DrawFn, form: Form) -> dict[str, Any]:
    known = form.members
    if form.by:
        choice = pick(draw, sorted(form.choices))
        return {form.by: choice, **_value(draw, form.choices[choice])}
    if form.union:
        given = [pick(draw, sorted(known))]
    else:
        others = sorted(known.keys() - set(form.needs))
        given = [*form.needs, *sorted(draw(_some(tuple(others), 3)) if others else ())]
    return {name: _value(draw, known[name]) for name in given}


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys or indexes."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        steps = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        places += [(holder, step) for step in steps]
        waiting += [holder[step] for step in steps if isinstance(holder[step], dict | list)]
    return places


@st.composite
def damaged(draw: st.DrawFn, form: Form, names: tuple[str, ...]) -> dict[str, Any]:
    """A value of the form with up to two things done to it. `names` are keys that may turn up anywhere."""
    value = copy.deepcopy(_value(draw, form))
    for _ in range(draw(between(0, 2))):
        places = _places(value)
        if not places:
            break
        holder, step = pick(draw, places)
        junk = copy.deepcopy(pick(draw, _JUNK))
        match pick(draw, ["replace", "drop", "add", "another"]):
            case "replace":
                holder[step] = junk
            case "drop":
                del holder[step]
            case "add" if isinstance(holder, dict):
                holder[pick(draw, names)] = junk
            case "add":
                holder.append(junk)
            case _:
                other, there = pick(draw, places)
                if there in (other if isinstance(other, dict) else range(len(other))):
                    holder[step] = copy.deepcopy(other[there])
    return value
