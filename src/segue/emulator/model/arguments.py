"""Generates arguments for a tool: a value that is valid for its schema, filled from the user's text where it matches.

A schema is split into alternatives without combinators; candidate values are generated for each, and the first that is
valid for the whole schema is returned. Only required members are made up; optional ones need a match in the text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from segue.emulator.model.offers import stemmed
from segue.emulator.model.scalars import Scalars, given
from segue.emulator.model.validity import Judge, of_key
from segue.wire.schema.document import Document
from segue.wire.schema.merge import Merger, values_of
from segue.wire.schema.notes import Notes
from segue.wire.schema.read import read_document
from segue.wire.schema.vocabulary import TYPES, Node, Schema, about, same, types_of

__all__ = ["arguments_for", "fits", "offered"]

_READ = 4_000
"""Characters of the words that are looked at, from their end."""
_SHALLOW = 2
_DEEPEST = 12
_WORK = 4_000
_TRIES = 60


def arguments_for(schema: Mapping[str, Any] | None, words: str, *, nth: int = 0) -> Any:
    """A value for this schema. Where the words name several («Lisbon and Oslo»), the `nth` call gets the `nth`.

    Past the last of them it is the value of the first call again. For a pattern that is beyond it any text is given;
    a schema that takes no value at all gets an empty object.
    """
    return _made(schema, words, nth)[0]


def offered(schema: Mapping[str, Any] | None, words: str) -> tuple[int, bool]:
    """How many of the arguments come from words that name them, and whether one is just what it is all about."""
    taken = _made(schema, words, 0)[1]
    return taken.total() - taken["topic"], taken["topic"] > 0


def fits(schema: Mapping[str, Any] | None, value: Any) -> bool:
    document = read_document(schema or {}, Notes())
    return Judge(document).takes(document.root, value)


def _made(schema: Mapping[str, Any] | None, words: str, nth: int) -> tuple[Any, Counter[str]]:
    document = read_document(schema or {}, Notes())
    words = words[-_READ:]
    for patterns in (True, False):
        judge = Judge(document, patterns=patterns)
        scalars = Scalars(words, {}, 0)
        with suppress(_NoValueError, RecursionError):
            value = _Maker(document, judge, scalars).root()
            if nth:
                value = _Maker(document, judge, Scalars(words, scalars.taken, nth)).root()
            return value, scalars.taken
    return {}, Counter()


class _NoValueError(Exception):
    """No value was found for a schema."""


class _Maker:
    """Makes one value. What it takes from the words is counted in `scalars.taken`."""

    def __init__(self, document: Document, judge: Judge, scalars: Scalars) -> None:
        self._root = document.root
        self._judge = judge
        self._merger = Merger(document, Notes())
        self._scalars = scalars
        self._work = _WORK

    def root(self) -> Any:
        return self._value(self._root, "", 0)

    def _value(self, schema: Schema, name: str, depth: int, *, skip: int = 0, offered: bool = False) -> Any:
        """A value for what is called `name`: not one of the first `skip`; if `offered`, only from the words."""
        self._work -= 1
        if schema is False or depth > _DEEPEST or self._work < 0:
            raise _NoValueError
        mark = self._scalars.mark()
        for value in islice(self._candidates(schema, name, depth, offered), _TRIES + skip):
            if self._judge.takes(schema, value):
                if not skip:
                    return value
                skip -= 1
        self._scalars.give_back(mark)
        raise _NoValueError

    def _candidates(self, schema: Schema, name: str, depth: int, offered: bool) -> Iterator[Any]:
        """What may be a value. Whoever takes one leaves its words taken; whoever goes on gives them back."""
        branches = self._merger.branches(schema, "")
        for node in sorted(branches, key=_weight) if depth > _SHALLOW else branches:
            values = values_of(node)
            if values is not None:
                yield from self._scalars.listed(values, node, name, offered=offered)
                continue
            for kind in _kinds(node, depth):
                mark = self._scalars.mark()
                with suppress(_NoValueError):
                    yield from self._of_kind(kind, node, name, depth, offered)
                self._scalars.give_back(mark)

    def _of_kind(self, kind: str, node: Node, name: str, depth: int, offered: bool) -> Iterator[Any]:
        if kind == "object":
            if not offered:
                yield from self._objects(node, depth)
        elif kind == "array":
            yield from self._arrays(node, stemmed(name), depth, offered)
        elif kind == "string":
            yield from self._scalars.texts(node, name, offered=offered)
        elif kind in ("number", "integer"):
            yield from self._scalars.numbers(node, name, whole=kind == "integer", offered=offered)
        elif kind == "boolean":
            yield from self._scalars.flags(node, name, offered=offered)
        elif not offered:
            yield None

    # -------------------------------------------------------------------------------------------------------- arrays

    def _arrays(self, node: Node, name: str, depth: int, offered: bool) -> Iterator[list[Any]]:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        least, most = node.get("minItems", 0), node.get("maxItems", math.inf)
        told = [] if prefix else self._told(node.get("items", True), name, depth, most)
        if told:
            yield self._padded(told, node, name, depth, least)
        if offered:
            return
        yield from (value for value in given(node) if isinstance(value, list))
        needed = [self._value(part, name, depth + 1) for part in prefix[: int(min(most, len(prefix)))]]
        if "contains" in node:
            count = node.get("minContains", 1)
            needed += [self._value(node["contains"], name, depth + 1, skip=skip) for skip in range(count)]
        if depth < _SHALLOW and not needed and most > 0:
            with suppress(_NoValueError):
                yield self._padded([], node, name, depth, max(1, least))
        yield self._padded(needed, node, name, depth, least)
        yield []

    def _told(self, item: Schema, name: str, depth: int, most: float) -> list[Any]:
        """Items out of the words, as many as were told in one breath."""
        told: list[Any] = []
        with self._scalars.of_one_breath(), suppress(_NoValueError):
            while len(told) < most:
                told.append(self._value(item, name, depth + 1, offered=True))
                if not self._scalars.stay():
                    break
        return told

    def _padded(self, items: list[Any], node: Node, name: str, depth: int, least: int) -> list[Any]:
        items = list(items)
        skip = 0
        while len(items) < least:
            value = self._value(node.get("items", True), name, depth + 1, skip=skip)
            if node.get("uniqueItems") and any(same(value, other) for other in items):
                skip += 1
            else:
                items.append(value)
        return items

    # ------------------------------------------------------------------------------------------------------- objects

    def _objects(self, node: Node, depth: int) -> Iterator[dict[str, Any]]:
        bare: dict[str, Any] = {}
        order = {name: place for place, name in enumerate(node.get("properties", ()))}
        for name in sorted(node.get("required", ()), key=lambda name: order.get(name, len(order))):
            bare[name] = self._property(node, name, depth)
        made = self._with_offered(bare, node, depth)
        if not made:
            made = self._with_offered(bare, node, depth, weak=True)
        for value in (made, bare):
            yield self._completed(value, node, depth)
        yield from (value for value in given(node) if isinstance(value, dict))
        for skip in range(1, 6):
            for name in bare:
                with suppress(_NoValueError):
                    yield {**bare, name: self._property(node, name, depth, skip=skip)}

    def _property(self, node: Node, name: str, depth: int, *, skip: int = 0, offered: bool = False) -> Any:
        parts = of_key(node, name)
        return self._value(
            parts[0] if len(parts) == 1 else {"allOf": parts}, name, depth + 1, skip=skip, offered=offered
        )

    def _with_offered(self, made: dict[str, Any], node: Node, depth: int, *, weak: bool = False) -> dict[str, Any]:
        """And what may be left out, where the words offer something of a kind that nothing was taken of yet."""
        made = dict(made)
        for name in node.get("properties", ()):
            if name not in made:
                with self._scalars.untouched(weak=weak), suppress(_NoValueError):
                    made[name] = self._property(node, name, depth, offered=True)
        return made

    def _completed(self, made: dict[str, Any], node: Node, depth: int) -> dict[str, Any]:
        """And what has to be there because of others, and as many keys as are wanted."""
        made = dict(made)
        least = node.get("minProperties", 0)
        for name in [name for key in made for name in node.get("dependentRequired", {}).get(key, ())]:
            if name not in made:
                made[name] = self._property(node, name, depth)
        for name in (*node.get("properties", ()), *(f"key{number}" for number in range(1, 9))):
            if len(made) < least and name not in made:
                with suppress(_NoValueError):
                    made[name] = self._property(node, name, depth)
        return made


_WEIGHTS = {"null": 0, "boolean": 1, "integer": 1, "number": 1, "string": 1, "array": 2, "object": 3}


def _weight(node: Node) -> int:
    """How much a node may grow: deep inside, what ends goes first."""
    return 0 if values_of(node) else min(_WEIGHTS[kind] for kind in types_of(node) or ("null",))


def _kinds(node: Node, depth: int) -> list[str]:
    """The types to try, in order: what the keywords are about first where none is named, null last."""
    types = types_of(node)
    if types is None:
        hinted = [kind for kind in TYPES if any(about(key, [kind]) and not about(key, ["null"]) for key in node)]
        types = list(dict.fromkeys([*hinted, *TYPES]))
    if depth > _SHALLOW:
        return sorted(types, key=_WEIGHTS.__getitem__)
    return sorted(types, key=lambda kind: (depth == 0 and kind != "object", kind == "null"))
