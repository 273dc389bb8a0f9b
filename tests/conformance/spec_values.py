"""Values generated from a spec, and damaged ones that may violate it."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from hypothesis import strategies as st

from segue.specs.types import Spec
from tests.strategies import cached_sampled_from, cached_strategy

# Strings that match one or the other of the patterns and bounds; those that do not are damage.
STRINGS = (
    *("a", "abcdefgh1", "tooluse_1-x", "functions.f:0", "b" * 64, "s3://bucket/key", "123456789012", "DRAFT", "7"),
    *("amazon.nova-pro-v1:0", "arn:aws:bedrock:us-east-1:123456789012:guardrail/abc", "x y", "é", "a\n", "", "b" * 65),
    *("b" * 257, "b" * 2049, "s3://"),
)
_ANY = Spec(kind="any")
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


def _fits(form: Spec, text: str) -> bool:
    sized = (form.minimum or 0) <= len(text) <= (form.maximum if form.maximum is not None else len(text))
    return sized and (not form.pattern or re.fullmatch(form.pattern, text) is not None)


@cache
def _some(*names: str, least: int = 0, most: int | None = None) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from(names), min_size=least, max_size=most)


@cached_strategy
@st.composite
def value_of(draw: st.DrawFn, form: Spec) -> Any:
    """A value that has the form."""
    if form.nullable and draw(st.integers(0, 3)) == 0:
        return None
    if form.any_of:
        return draw(value_of(draw(cached_sampled_from(form.any_of))))
    least, most = form.minimum or 0, form.maximum
    match form.kind:
        case "string" | "bytes":
            return draw(cached_sampled_from(form.values or [text for text in STRINGS if _fits(form, text)]))
        case "integer":
            return draw(st.integers(int(least), int(most) if most is not None else 9))
        case "number":
            return draw(cached_sampled_from([least, 1, 0.5]))
        case "boolean":
            return draw(st.booleans())
        case "any":
            return copy.deepcopy(draw(cached_sampled_from(_DOCUMENTS)))
        case "list":
            size = draw(st.integers(int(least), int(least) + 2))
            return [draw(value_of(form.items or _ANY)) for _ in range(size)]
        case "map":
            keys = draw(_some("a", "b", least=int(least)))
            return {key: draw(value_of(form.items or _ANY)) for key in sorted(keys)}
        case "object":
            return draw(_members(form))


@cached_strategy
@st.composite
def _members(draw: st.DrawFn, form: Spec) -> dict[str, Any]:
    known = form.members
    if form.discriminator:
        choice = draw(cached_sampled_from(sorted(form.variants)))
        return {form.discriminator: choice, **draw(value_of(form.variants[choice]))}
    if form.exactly_one:
        given = [draw(cached_sampled_from(sorted(known)))]
    else:
        others = sorted(known.keys() - set(form.required))
        given = [*form.required, *sorted(draw(_some(*others, most=3)) if others else ())]
    return {name: draw(value_of(known[name])) for name in given}


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
def damaged_values(draw: st.DrawFn, form: Spec, names: tuple[str, ...]) -> dict[str, Any]:
    """A value of the form with up to two things done to it. `names` are keys that may turn up anywhere."""
    value = copy.deepcopy(draw(value_of(form)))
    for _ in range(draw(st.integers(0, 2))):
        places = _places(value)
        if not places:
            break
        holder, step = places[draw(st.integers(0, len(places) - 1))]
        junk = copy.deepcopy(draw(cached_sampled_from(_JUNK)))
        match draw(cached_sampled_from(["replace", "drop", "add", "another"])):
            case "replace":
                holder[step] = junk
            case "drop":
                del holder[step]
            case "add" if isinstance(holder, dict):
                holder[draw(cached_sampled_from(names))] = junk
            case "add":
                holder.append(junk)
            case _:
                other, there = places[draw(st.integers(0, len(places) - 1))]
                if there in (other if isinstance(other, dict) else range(len(other))):
                    holder[step] = copy.deepcopy(other[there])
    return value
