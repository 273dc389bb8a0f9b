"""Arguments for a tool: a value that its schema takes, filled from the human's words where they fit.

A schema is taken apart into alternatives without combinators, values are made for one after the other, and the first
that the whole schema takes is given. Only what is required is made up; what may be left out needs a fitting word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from segue.emulator.offers import Offer, Source, offers_in, stemmed, tokens
from segue.emulator.slots import fitted, made_numbers, made_texts, of_format, slot_of
from segue.emulator.validity import Judge, of_key
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
_LIMITS = frozenset({"limit", "count", "num", "max", "top", "maximum", "number", "n", "amount", "size"})


def arguments_for(schema: Mapping[str, Any] | None, words: str, *, nth: int = 0) -> Any:
    """A value for this schema. Where the words name several («Lisbon and Oslo»), the `nth` call gets the `nth`.

    Past the last of them it is the value of the first call again. A schema that takes no value gets an empty object.
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
    maker = _Maker(document, words, Counter(), 0)
    value = maker.root()
    if nth:
        value = _Maker(document, words, maker.taken, nth).root()
    return value, maker.taken


class _NoValueError(Exception):
    """No value was found for a schema."""


class _Maker:
    """Makes one value. `first` counts what the first call took: of what it took one, the `nth` call takes another."""

    def __init__(self, document: Document, words: str, first: Counter[str], nth: int) -> None:
        self._root = document.root
        self._judge = Judge(document)
        self._merger = Merger(document, Notes())
        self._offers = offers_in(words)
        self._tokens = tokens(words)
        self._words = [word.strip(".,;:!?()[]\"'") for word in words.split()]
        self._first = first
        self._nth = nth
        self._work = _WORK
        self._used: set[str] = set()
        self._closed: frozenset[str] = frozenset()
        self._last: tuple[Source, int] | None = None
        self._group: tuple[Source, int] | None = None
        self._weak = False
        self.taken: Counter[str] = Counter()

    def root(self) -> Any:
        try:
            return self._value(self._root, "", 0)
        except (_NoValueError, RecursionError):
            return {}

    # ---------------------------------------------------------------------------------------------------- any schema

    def _value(self, schema: Schema, name: str, depth: int, *, skip: int = 0, offered: bool = False) -> Any:
        """A value for what is called `name`: not one of the first `skip`; if `offered`, only from the words."""
        self._work -= 1
        if schema is False or depth > _DEEPEST or self._work < 0:
            raise _NoValueError
        before = self._used.copy(), self.taken.copy()
        for value in islice(self._candidates(schema, name, depth, offered), _TRIES + skip):
            if self._judge.takes(schema, value):
                if not skip:
                    return value
                skip -= 1
        self._used, self.taken = before
        raise _NoValueError

    def _candidates(self, schema: Schema, name: str, depth: int, offered: bool) -> Iterator[Any]:
        """What may be a value. Whoever takes one leaves its words taken; whoever goes on gives them back."""
        branches = self._merger.branches(schema, "")
        if depth > _SHALLOW:
            branches.sort(key=_weight)
        for node in branches:
            values = values_of(node)
            if values is not None:
                yield from self._listed(values, node, name, offered)
                continue
            for kind in _kinds(node, depth):
                before = self._used.copy(), self.taken.copy()
                with suppress(_NoValueError):
                    yield from self._of_kind(kind, node, name, depth, offered)
                self._used, self.taken = before

    def _of_kind(self, kind: str, node: Node, name: str, depth: int, offered: bool) -> Iterator[Any]:
        if kind == "object":
            if not offered:
                yield from self._objects(node, depth)
        elif kind == "array":
            yield from self._arrays(node, name, depth, offered)
        elif kind == "string":
            yield from self._texts(node, name, offered)
        elif kind in ("number", "integer"):
            yield from self._numbers(node, name, offered, whole=kind == "integer")
        elif kind == "boolean":
            yield from self._flags(node, name, offered)
        elif not offered:
            yield None

    def _listed(self, values: list[Any], node: Node, name: str, offered: bool) -> Iterator[Any]:
        """Of several values that are listed, those that the words name go first."""
        named = [value for value in values if self._says(value)]
        if named and name not in self._closed:
            place = self._nth if self._nth < len(named) and self._first[name] == 1 else 0
            self.taken[name] += 1
            yield from named[place:]
            self.taken[name] -= 1
        if not offered:
            yield from _given(node)
            yield from values

    def _says(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return False
        said = tokens(str(value))
        starts = range(len(self._tokens) - len(said) + 1)
        return bool(said) and any(self._tokens[at : at + len(said)] == said for at in starts)

    # ------------------------------------------------------------------------------------------------------- scalars

    def _take(self, sources: tuple[Source, ...]) -> Iterator[Offer]:
        """What the words offer, marked as taken for as long as nobody asks for the next."""
        for source in sources:
            if source in self._closed:
                continue
            for offer in self._offers.get(source, ()):
                offer = self._nth_of(source, offer)
                place = (source, offer.group)
                if offer.text in self._used or self._group not in (None, place):
                    continue
                self._used.add(offer.text)
                self.taken[source] += 1
                self._last = place
                yield offer
                self._used.discard(offer.text)
                self.taken[source] -= 1

    def _nth_of(self, source: Source, offer: Offer) -> Offer:
        if not self._nth or self._first[source] != 1:
            return offer
        told = [other for other in self._offers[source] if other.group == offer.group]
        place = told.index(offer) + self._nth
        return told[place] if place < len(told) else offer

    def _texts(self, node: Node, name: str, offered: bool) -> Iterator[str]:
        form = node.get("format")
        known = of_format(form)
        slot = slot_of(name, node)
        if slot.named or known or not offered:
            for offer in self._take(known.sources if known else slot.sources):
                text = fitted(offer.text, form)
                if text is not None:
                    yield text
        if offered and not self._weak:
            return
        if not offered:
            yield from (value for value in _given(node) if isinstance(value, str))
        if not known:
            yield from (offer.text for offer in self._take(slot.weak))
        if offered:
            return
        yield from made_texts(node, name, self._words)

    def _numbers(self, node: Node, name: str, offered: bool, *, whole: bool) -> Iterator[Any]:
        asked = set(tokens(name))
        numbers = list(self._take(("number",)))
        near = [offer for offer in numbers if _is_beside(offer, asked)]
        wanted = {offer.text for offer in (near if near or offered else numbers)}
        for offer in self._take(("number",)):
            if offer.text in wanted:
                yield _number(offer.text)
        if not offered:
            yield from _given(node)
            yield from made_numbers(node, whole=whole)

    def _flags(self, node: Node, name: str, offered: bool) -> Iterator[bool]:
        if any(word.startswith(asked) for asked in tokens(name) if len(asked) > 3 for word in self._tokens):
            yield True
        if not offered:
            yield from (value for value in _given(node) if isinstance(value, bool))
            yield from (False, True)

    # ---------------------------------------------------------------------------------------------------- containers

    def _arrays(self, node: Node, name: str, depth: int, offered: bool) -> Iterator[list[Any]]:
        prefix = cast("list[Schema]", node.get("prefixItems", []))
        least, most = node.get("minItems", 0), node.get("maxItems", math.inf)
        item, singular = node.get("items", True), stemmed(name)
        told = [] if prefix else self._told(item, singular, depth, most)
        if told:
            yield self._padded(told, node, singular, depth, least)
        if offered:
            return
        yield from (value for value in _given(node) if isinstance(value, list))
        needed = [self._value(part, singular, depth + 1) for part in prefix[: int(min(most, len(prefix)))]]
        if "contains" in node:
            needed += [
                self._value(node["contains"], singular, depth + 1, skip=n) for n in range(node.get("minContains", 1))
            ]
        if depth < _SHALLOW and not needed and most > 0:
            with suppress(_NoValueError):
                yield self._padded([], node, singular, depth, max(1, least))
        yield self._padded(needed, node, singular, depth, least)
        yield []

    def _told(self, item: Schema, name: str, depth: int, most: float) -> list[Any]:
        """Items out of the words, all of one breath."""
        told: list[Any] = []
        outer, self._last = self._group, None
        with suppress(_NoValueError):
            while len(told) < most:
                told.append(self._value(item, name, depth + 1, offered=True))
                self._group = self._last
                if self._last is None:  # what is listed in the schema can be named once
                    break
        self._group = outer
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

    def _objects(self, node: Node, depth: int) -> Iterator[dict[str, Any]]:
        made: dict[str, Any] = {}
        declared = cast("dict[str, Schema]", node.get("properties", {}))
        required = cast("list[str]", node.get("required", []))
        for name in sorted(
            required, key=lambda name: list(declared).index(name) if name in declared else len(declared)
        ):
            self._put(made, node, name, depth)
        bare = dict(made)
        self._put_offered(made, node, depth)
        if not made:
            self._weak = True
            self._put_offered(made, node, depth)
            self._weak = False
        for value in (made, bare):
            yield self._completed(value, node, depth)
        yield from (value for value in _given(node) if isinstance(value, dict))
        for skip in range(1, 6):
            for name in bare:
                try:
                    yield {**bare, name: self._value(_whole(node, name), name, depth + 1, skip=skip)}
                except _NoValueError:
                    continue

    def _put_offered(self, made: dict[str, Any], node: Node, depth: int) -> None:
        """What may be left out, where the words offer something of a kind that nobody took from yet."""
        outer = self._closed
        for name in node.get("properties", ()):
            self._closed = frozenset(source for source, count in self.taken.items() if count)
            if name not in made:
                with suppress(_NoValueError):
                    self._put(made, node, name, depth, offered=True)
        self._closed = outer

    def _put(self, made: dict[str, Any], node: Node, name: str, depth: int, *, offered: bool = False) -> None:
        made[name] = self._value(_whole(node, name), name, depth + 1, offered=offered)

    def _completed(self, made: dict[str, Any], node: Node, depth: int) -> dict[str, Any]:
        """With what has to be there because of the others, and as many keys as are wanted."""
        made = dict(made)
        wanted = [name for key in made for name in node.get("dependentRequired", {}).get(key, ())]
        wanted += list(node.get("properties", ())) if len(made) < node.get("minProperties", 0) else []
        for name in (*wanted, "key", "more", *(f"key{number}" for number in range(2, 9))):
            if name in made or (name not in wanted and len(made) >= node.get("minProperties", 0)):
                continue
            try:
                self._put(made, node, name, depth)
            except _NoValueError:
                continue
        return made


def _whole(node: Node, name: str) -> Schema:
    parts = of_key(node, name)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _given(node: Node) -> Iterator[Any]:
    """What the schema itself gives as a value."""
    if "default" in node:
        yield node["default"]
    yield from node.get("examples", ())


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


def _is_beside(offer: Offer, asked: set[str]) -> bool:
    before, after = offer.beside
    if before in asked or after in asked:
        return True
    return bool(asked & _LIMITS) and before in ("top", "first", "last", "limit", "most", "max")


def _number(text: str) -> int | float:
    plain = text.replace(",", "").replace("−", "-")
    return float(plain) if "." in plain else int(plain)
