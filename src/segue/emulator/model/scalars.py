"""Strings, numbers and booleans for a schema: candidates of the text, then schema defaults, then generated ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from segue.emulator.model.candidates import Candidate, Source, find_candidates, tokenize
from segue.emulator.model.property_hints import find_format, fit_format, hint_for, make_numbers, make_strings
from segue.wire.schema.json_schema import Node

__all__ = ["Mark", "ScalarSource", "schema_values"]

_LIMITS = frozenset({"limit", "count", "num", "max", "top", "maximum", "number", "n", "amount", "size"})
_BEFORE_LIMITS = frozenset({"top", "first", "last", "limit", "most", "max"})
Mark: TypeAlias = tuple[frozenset[str], Mapping[str, int]]


class ScalarSource:
    """Takes from the words one by one, so that no two arguments get the same.

    `first` counts what the first call took: of what that took one of, the `nth` call takes another. With `offered`
    only what the words offer is given.
    """

    def __init__(self, text: str, first: Mapping[str, int], nth: int) -> None:
        self._candidates = find_candidates(text)
        self._tokens = tokenize(text)
        self._words = [word.strip(".,;:!?()[]\"'") for word in text.split()]
        self._first = first
        self._nth = nth
        self._used: set[str] = set()
        self._closed: frozenset[str] = frozenset()
        self._weak = False
        self._group: tuple[Source, int] | None = None
        self._last: tuple[Source, int] | None = None
        self.taken: Counter[str] = Counter()

    # -------------------------------------------------------------------------------------------------------- taking

    def mark(self) -> Mark:
        return frozenset(self._used), dict(self.taken)

    def restore(self, mark: Mark) -> None:
        """As if nothing had been taken since."""
        self._used, self.taken = set(mark[0]), Counter(mark[1])

    @contextmanager
    def unused_sources(self, *, weak: bool = False) -> Generator[None]:
        """Only sources that nothing was taken from yet; `weak` ones too, which tell what it is all about."""
        outer = self._closed, self._weak
        self._closed, self._weak = frozenset(source for source, count in self.taken.items() if count), weak
        yield
        self._closed, self._weak = outer

    @contextmanager
    def one_group(self) -> Generator[None]:
        """After the first only what was told together with it."""
        outer, self._group, self._last = self._group, None, None
        yield
        self._group = outer

    def bind_to_last(self) -> bool:
        """Bound from now on to where the last one was taken; whether there is such a place."""
        self._group = self._last
        return self._last is not None

    def _take(self, sources: tuple[Source, ...]) -> Iterator[Candidate]:
        """What the words offer, marked as taken for as long as nobody asks for the next."""
        for source in sources:
            for offer in () if source in self._closed else self._candidates.get(source, ()):
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

    def _nth_of(self, source: Source, offer: Candidate) -> Candidate:
        if not self._nth or self._first.get(source) != 1:
            return offer
        told = [other for other in self._candidates[source] if other.group == offer.group]
        place = told.index(offer) + self._nth
        return told[place] if place < len(told) else offer

    # -------------------------------------------------------------------------------------------------------- values

    def enum_values(self, values: list[Any], node: Node, name: str, *, offered: bool) -> Iterator[Any]:
        """Of the values that a schema lists, those that the words name go first."""
        named = [value for value in values if self._mentions(value)]
        key = f"one of {name}"
        if named and key not in self._closed:
            place = self._nth if self._nth < len(named) and self._first.get(key) == 1 else 0
            self.taken[key] += 1
            yield from named[place:]
            self.taken[key] -= 1
        if not offered:
            yield from schema_values(node)
            yield from values

    def _mentions(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return False
        said = tokenize(str(value))
        starts = range(len(self._tokens) - len(said) + 1)
        return bool(said) and any(self._tokens[at : at + len(said)] == said for at in starts)

    def strings(self, node: Node, name: str, *, offered: bool) -> Iterator[str]:
        form = node.get("format")
        known = find_format(form)
        slot = hint_for(name, node)
        if slot.is_named or known or not offered:
            for offer in self._take(known.sources if known else slot.sources):
                text = fit_format(offer.text, form)
                if text is not None:
                    yield text
        if not offered:
            yield from (value for value in schema_values(node) if isinstance(value, str))
        if not known and (self._weak or not offered):
            yield from (offer.text for offer in self._take(slot.fallback_sources))
        if not offered:
            yield from make_strings(node, name, self._words)

    def numbers(self, node: Node, name: str, *, whole: bool, offered: bool) -> Iterator[Any]:
        """A number beside the property's own name goes first («3 days»); one that may be left out needs that."""
        asked = set(tokenize(name))
        there = list(self._take(("number",)))
        near = [offer for offer in there if _is_beside(offer, asked)]
        wanted = {offer.text for offer in (near if near or offered else there)}
        for offer in self._take(("number",)):
            if offer.text in wanted:
                yield _number(offer.text)
        if not offered:
            yield from schema_values(node)
            yield from make_numbers(node, whole=whole)

    def booleans(self, node: Node, name: str, *, offered: bool) -> Iterator[bool]:
        if any(word.startswith(asked) for asked in tokenize(name) if len(asked) > 3 for word in self._tokens):
            yield True
        if not offered:
            yield from (value for value in schema_values(node) if isinstance(value, bool))
            yield from (False, True)


def schema_values(node: Node) -> Iterator[Any]:
    """What the schema itself gives as a value. It need not fit."""
    if "default" in node:
        yield node["default"]
    yield from node.get("examples", ())


def _is_beside(offer: Candidate, asked: set[str]) -> bool:
    before, after = offer.neighbors
    return before in asked or after in asked or (bool(asked & _LIMITS) and before in _BEFORE_LIMITS)


def _number(text: str) -> int | float:
    plain = text.replace(",", "").replace("−", "-")
    return float(plain) if "." in plain else int(plain)
