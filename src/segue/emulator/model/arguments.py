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

from segue.emulator.model.candidates import stem
from segue.emulator.model.scalars import ScalarSource, schema_values
from segue.emulator.model.schema_check import SchemaChecker, property_schemas
from segue.wire.schema.changes import SchemaChanges
from segue.wire.schema.document import Document
from segue.wire.schema.json_schema import TYPES, Node, Schema, applies_to, is_equal, types_of
from segue.wire.schema.merge import Merger, enum_values
from segue.wire.schema.parse import parse_schema_document

__all__ = ["count_candidates", "is_valid", "make_arguments"]

_MAX_TEXT = 4_000
"""Characters of the words that are looked at, from their end."""
_SHALLOW_DEPTH = 2
_MAX_DEPTH = 12
_MAX_WORK = 4_000
_MAX_TRIES = 60


def make_arguments(schema: Mapping[str, Any] | None, text: str, *, nth: int = 0) -> Any:
    """A value for this schema. Where the words name several («Lisbon and Oslo»), the `nth` call gets the `nth`.

    Past the last of them it is the value of the first call again. For a pattern that is beyond it any text is given;
    a schema that takes no value at all gets an empty object.
    """
    return _make_value(schema, text, nth)[0]


def count_candidates(schema: Mapping[str, Any] | None, text: str) -> tuple[int, bool]:
    """How many of the arguments come from words that name them, and whether one is just what it is all about."""
    taken = _make_value(schema, text, 0)[1]
    return taken.total() - taken["topic"], taken["topic"] > 0


def is_valid(schema: Mapping[str, Any] | None, value: Any) -> bool:
    document = parse_schema_document(schema or {}, SchemaChanges())
    return SchemaChecker(document).accepts(document.root, value)


def _make_value(schema: Mapping[str, Any] | None, text: str, nth: int) -> tuple[Any, Counter[str]]:
    document = parse_schema_document(schema or {}, SchemaChanges())
    text = text[-_MAX_TEXT:]
    for patterns in (True, False):
        judge = SchemaChecker(document, patterns=patterns)
        scalars = ScalarSource(text, {}, 0)
        with suppress(_NoValueError, RecursionError):
            value = _ValueMaker(document, judge, scalars).root()
            if nth:
                value = _ValueMaker(document, judge, ScalarSource(text, scalars.taken, nth)).root()
            return value, scalars.taken
    return {}, Counter()


class _NoValueError(Exception):
    """No value was found for a schema."""


class _ValueMaker:
    """Makes one value. What it takes from the words is counted in `scalars.taken`."""

    def __init__(self, document: Document, judge: SchemaChecker, scalars: ScalarSource) -> None:
        self._root = document.root
        self._judge = judge
        self._merger = Merger(document, SchemaChanges())
        self._scalars = scalars
        self._work = _MAX_WORK

    def root(self) -> Any:
        return self._value(self._root, "", 0)

    def _value(self, schema: Schema, name: str, depth: int, *, skip: int = 0, offered: bool = False) -> Any:
        """A value for what is called `name`: not one of the first `skip`; if `offered`, only from the words."""
        self._work -= 1
        if schema is False or depth > _MAX_DEPTH or self._work < 0:
            raise _NoValueError
        mark = self._scalars.mark()
        for value in islice(self._candidates(schema, name, depth, offered), _MAX_TRIES + skip):
            if self._judge.accepts(schema, value):
                if not skip:
                    return value
                skip -= 1
        self._scalars.restore(mark)
        raise _NoValueError

    def _candidates(self, schema: Schema, name: str, depth: int, offered: bool) -> Iterator[Any]:
        """What may be a value. Whoever takes one leaves its words taken; whoever goes on gives them back."""
        branches = self._merger.expand_branches(schema, "")
        for node in sorted(branches, key=_weight) if depth > _SHALLOW_DEPTH else branches:
            values = enum_values(node)
            if values is not None:
                yield from self._scalars.enum_values(values, node, name, offered=offered)
                continue
            for kind in _types_to_try(node, depth):
                mark = self._scalars.mark()
                with suppress(_NoValueError):
                    yield from self._values_of_type(kind, node, name, depth, offered)
                self._scalars.restore(mark)

    def _values_of_type(self, kind: str, node: Node, name: str, depth: int, offered: bool) -> Iterator[Any]:
        if kind == "object":
            if not offered:
                yield from self._objects(node, depth)
        elif kind == "array":
            yield from self._arrays(node, stem(name), depth, offered)
        elif kind == "string":
            yield from self._scalars.strings(node, name, offered=offered)
        elif kind in ("number", "integer"):
            yield from self._scalars.numbers(node, name, whole=kind == "integer", offered=offered)
        elif kind == "boolean":
            yield from self._scalars.booleans(node, name, offered=offered)
        elif not offered:
            yield None

    # -------------------------------------------------------------------------------------------------------- arrays

    def _arrays(self, node: Node, name: str, depth: int, offered: bool) -> Iterator[list[Any]]:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        least, most = node.get("minItems", 0), node.get("maxItems", math.inf)
        told = [] if prefix else self._listed_items(node.get("items", True), name, depth, most)
        if told:
            yield self._pad_items(told, node, name, depth, least)
        if offered:
            return
        yield from (value for value in schema_values(node) if isinstance(value, list))
        needed = [self._value(part, name, depth + 1) for part in prefix[: int(min(most, len(prefix)))]]
        if "contains" in node:
            count = node.get("minContains", 1)
            needed += [self._value(node["contains"], name, depth + 1, skip=skip) for skip in range(count)]
        if depth < _SHALLOW_DEPTH and not needed and most > 0:
            with suppress(_NoValueError):
                yield self._pad_items([], node, name, depth, max(1, least))
        yield self._pad_items(needed, node, name, depth, least)
        yield []

    def _listed_items(self, item: Schema, name: str, depth: int, most: float) -> list[Any]:
        """Items out of the words, as many as were told in one breath."""
        told: list[Any] = []
        with self._scalars.one_group(), suppress(_NoValueError):
            while len(told) < most:
                told.append(self._value(item, name, depth + 1, offered=True))
                if not self._scalars.bind_to_last():
                    break
        return told

    def _pad_items(self, items: list[Any], node: Node, name: str, depth: int, least: int) -> list[Any]:
        items = list(items)
        skip = 0
        while len(items) < least:
            value = self._value(node.get("items", True), name, depth + 1, skip=skip)
            if node.get("uniqueItems") and any(is_equal(value, other) for other in items):
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
        made = self._add_optional(bare, node, depth)
        if not made:
            made = self._add_optional(bare, node, depth, weak=True)
        for value in (made, bare):
            yield self._add_required(value, node, depth)
        yield from (value for value in schema_values(node) if isinstance(value, dict))
        for skip in range(1, 6):
            for name in bare:
                with suppress(_NoValueError):
                    yield {**bare, name: self._property(node, name, depth, skip=skip)}

    def _property(self, node: Node, name: str, depth: int, *, skip: int = 0, offered: bool = False) -> Any:
        parts = property_schemas(node, name)
        return self._value(
            parts[0] if len(parts) == 1 else {"allOf": parts}, name, depth + 1, skip=skip, offered=offered
        )

    def _add_optional(self, made: dict[str, Any], node: Node, depth: int, *, weak: bool = False) -> dict[str, Any]:
        """And what may be left out, where the words offer something of a kind that nothing was taken of yet."""
        made = dict(made)
        for name in node.get("properties", ()):
            if name not in made:
                with self._scalars.unused_sources(weak=weak), suppress(_NoValueError):
                    made[name] = self._property(node, name, depth, offered=True)
        return made

    def _add_required(self, made: dict[str, Any], node: Node, depth: int) -> dict[str, Any]:
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
    return 0 if enum_values(node) else min(_WEIGHTS[kind] for kind in types_of(node) or ("null",))


def _types_to_try(node: Node, depth: int) -> list[str]:
    """The types to try, in order: what the keywords are about first where none is named, null last."""
    types = types_of(node)
    if types is None:
        hinted = [
            kind for kind in TYPES if any(applies_to(key, [kind]) and not applies_to(key, ["null"]) for key in node)
        ]
        types = list(dict.fromkeys([*hinted, *TYPES]))
    if depth > _SHALLOW_DEPTH:
        return sorted(types, key=_WEIGHTS.__getitem__)
    return sorted(types, key=lambda kind: (depth == 0 and kind != "object", kind == "null"))
