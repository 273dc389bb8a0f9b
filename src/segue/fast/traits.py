"""Traits of a conversation: all that the rest of a target body, and the findings, can depend on.

Conversations with equal traits share a body template. One event for each trait, with both ends of the conversation, is
the *minimal conversation* that the template is made from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from segue.canonical.fast_history import (
    REASONING,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastTurn,
    FastUserMessage,
)
from segue.canonical.request import Request
from segue.render.constraints import Constraints
from segue.render.response_format import has_json_word
from segue.wire.vendor_tools.convert import is_deferred


class Dependencies(Struct, frozen=True):
    """What the rest of one source body and its target depend on; the defaults are those of an unknown rest."""

    same_api: bool
    is_detected: bool
    """Whether the source was detected by the shape of the body."""
    open_exchange: bool = True
    """Reasoning may be disabled if the current exchange has calls."""
    fillers: bool = True
    """User messages after results are separated from them."""
    reasoning_on_text: bool = True
    """Replies without calls may need a placeholder."""
    response_format: bool = True
    """The word JSON may be needed in the first message."""
    calls_without_text: bool = True
    """Text next to calls becomes a message of its own."""
    deferred: frozenset[str] = frozenset()
    """The tools that are declared as deferred until they are called."""


def find_dependencies(request: Request, constraints: Constraints, unknown: Dependencies) -> Dependencies:
    """Return the dependencies of a rest that was converted."""
    return Dependencies(
        same_api=unknown.same_api,
        is_detected=unknown.is_detected,
        open_exchange=constraints.open_exchange_needs_reasoning and request.options.reasoning is not None,
        fillers=constraints.filler_after_results,
        reasoning_on_text=constraints.reasoning_required_on_text,
        response_format=request.options.response_format is not None,
        calls_without_text=constraints.calls_without_text,
        deferred=frozenset(tool.name for tool in request.tools if is_deferred(tool)),
    )


class _TurnKind(NamedTuple):
    """The kind of a turn; that of any other event is its type."""

    has_results: bool
    variant: object


class SeenTraits(Struct, frozen=True):
    """The traits of the first events of a conversation, each with the index of the first event that has it.

    `traits` has those that later events do not change, the other fields have what all traits depend on.
    """

    dependencies: Dependencies
    traits: Mapping[Hashable, int] = {}
    length: int = 0
    first_kind: object = None
    last_kind: object = None
    starts_with_json: bool = False
    """Whether the first message has the word JSON."""
    ends_with_space: bool = False
    exchange: int = 0
    """The index of the user message that the current exchange starts with."""
    opening_kind: object = None
    """The kind of the event after it."""
    open_call: int | None = None
    """The first reply of the current exchange that has calls."""

    def extend(self, history: FastHistory, start: int, stop: int) -> SeenTraits:
        """Return the traits with more events: those from `start` to `stop` of a history, which follow."""
        events = history.events
        if start == stop:
            return self
        if not self.dependencies.same_api and not self.length and not isinstance(events[0], FastUserMessage):
            # A conversation that begins with a reply may need a first user message.
            raise FastPathUnsupportedError
        traits = {**self.traits}
        offset = self.length - start
        for mark, index in history.marks.items():
            if start <= index < stop:
                traits.setdefault(mark, index + offset)
        if self.dependencies.same_api:
            self._add_shapes(history, start, stop, traits)
        else:
            self._add_kinds(history, start, stop, traits)
        exchange, opening_kind = self.exchange, self.opening_kind
        last_user = next((i for i in range(stop - 1, start - 1, -1) if isinstance(events[i], FastUserMessage)), None)
        if last_user is not None:
            exchange = last_user + offset
            opening_kind = _kind(events[min(last_user + 1, stop - 1)])
        elif self.length <= exchange + 1:
            opening_kind = _kind(events[min(start + exchange + 1 - self.length, stop - 1)])
        starts_with_json = self.starts_with_json
        if not self.length and self.dependencies.response_format:
            starts_with_json = has_json_word(_text_of(events[0]))
        return SeenTraits(
            self.dependencies,
            traits,
            self.length + stop - start,
            self.first_kind if self.length else _kind(events[0]),
            _kind(events[stop - 1]),
            starts_with_json,
            self.dependencies.same_api and _text_of(events[stop - 1])[-1:].isspace(),
            exchange,
            opening_kind,
            self._find_open_call(events, start, stop),
        )

    def find_all(self) -> frozenset[Hashable]:
        """Return all traits of the conversation, if it ends with these events."""
        return frozenset(self.locate_all())

    def locate_all(self) -> dict[Hashable, int]:
        """Return all traits of the conversation, each with the index of the first event that has it."""
        if not self.length:
            raise FastPathUnsupportedError
        last = self.length - 1
        traits = dict(self.traits)
        ends_with_reply = isinstance(self.last_kind, _TurnKind) and not self.last_kind.has_results
        if self.starts_with_json:
            traits["JSON in the first message"] = 0
        if self.dependencies.same_api:
            last_kind = self.last_kind if ends_with_reply else _neighbour_kind(self.last_kind)
            traits["ends", self.first_kind, last_kind, ends_with_reply and self.ends_with_space] = last
            # The start of the last exchange decides whether reasoning may be on.
            if self.dependencies.open_exchange or REASONING in traits:
                traits["exchange", self.opening_kind] = min(self.exchange + 1, last)
            return traits
        if ends_with_reply:
            traits["ends with a reply"] = last
        if self.dependencies.open_exchange and self.open_call is not None:
            traits["open calls"] = self.open_call
        return traits

    def _find_open_call(self, events: Sequence[FastEvent], start: int, stop: int) -> int | None:
        message = next((i for i in range(stop - 1, start - 1, -1) if not isinstance(events[i], FastTurn)), None)
        if message is None and self.open_call is not None:
            return self.open_call
        first = start if message is None else message
        found = next((index for index in range(first, stop) if _has_results(events[index])), None)
        return None if found is None else found - start + self.length

    def _add_kinds(self, history: FastHistory, start: int, stop: int, traits: dict[Hashable, int]) -> None:
        events, offset = history.events, self.length - start
        for trait, indexes in self._find_kinds(history, range(start, stop)):
            if trait not in traits and (index := next(indexes, None)) is not None:
                traits[trait] = index + offset
        if self.dependencies.is_detected:
            for index in range(start, stop):
                event = events[index]
                traits.setdefault((type(event), type(event.content)), index + offset)

    def _find_kinds(self, history: FastHistory, indexes: range) -> Iterator[tuple[Hashable, Iterator[int]]]:
        """Yield traits with the events that have them."""
        events, dependencies = history.events, self.dependencies
        yield "calls", (index for index in indexes if _has_results(events[index]))
        if dependencies.fillers:
            after_results = (index for index in indexes if index and _has_results(events[index - 1]))
            yield "message after results", (i for i in after_results if not isinstance(events[i], FastTurn))
        if dependencies.reasoning_on_text:
            replies = (index for index in indexes if isinstance(events[index], FastTurn))
            yield "reply without calls", (index for index in replies if not _has_results(events[index]))
        if dependencies.calls_without_text:
            turns = (index for index in indexes if _has_results(events[index]))
            yield "text next to calls", (index for index in turns if events[index].content is not None)
        for name in dependencies.deferred.intersection(history.names):
            call = history.names.index(name)
            turns = (index for index in indexes if isinstance(turn := events[index], FastTurn) and turn.stop > call)
            yield ("deferred tool", name), turns

    def _add_shapes(self, history: FastHistory, start: int, stop: int, shapes: dict[Hashable, int]) -> None:
        """Add the traits of events that must come back unchanged: each shape of an event is one."""
        events, results = history.events, history.results
        failed = set(history.error_results)
        calls = range(*history.find_calls(start, stop))
        irregular = failed.union([call for call in calls if not results[call] or isinstance(results[call], list)])
        before = _neighbour_kind(self.last_kind) if self.length else None
        offset = self.length - start
        for index in range(start, stop):
            event = events[index]
            shape: tuple[object, ...]
            if isinstance(event, FastTurn):
                kind: object = event.start < event.stop
                is_parallel = event.stop - event.start > 1
                shape = (before, kind, type(event.content), event.variant, event.is_reordered, is_parallel)
                if irregular:
                    for call in irregular.intersection(range(event.start, event.stop)):
                        result_shape = "result", call in failed, results[call] and type(results[call])
                        shapes.setdefault(result_shape, index + offset)
            else:
                kind = type(event)
                shape = (before, kind, type(event.content))
            shapes.setdefault(shape, index + offset)
            before = kind


def choose_events(history: FastHistory, traits: Mapping[Hashable, int], dependencies: Dependencies) -> list[int]:
    """Return the indexes of the events of the minimal conversation."""
    events = history.events
    chosen = {0, len(events) - 1, *traits.values()}
    if dependencies.same_api:
        chosen |= {max(index - 1, 0) for index in chosen}
    # A reply without calls is taken with the event after it, and a message with those before it back to a reply. So
    # none of them has a neighbour of another kind than in the whole.
    replies = [index for index in chosen if isinstance(events[index], FastTurn) and not _has_results(events[index])]
    chosen |= {min(index + 1, len(events) - 1) for index in replies}
    for index in sorted(chosen):
        while index and not isinstance(events[index], FastTurn):
            index -= 1
            chosen.add(index)
    return sorted(chosen)


def find_items(history: FastHistory, indexes: Sequence[int], item_count: int) -> list[int]:
    """Return the indexes of the items of these events, and of the system text before them."""
    stops = [*history.starts[1:], item_count]
    items = [*range(history.system_count)]
    for index in indexes:
        items += range(history.starts[index], stops[index])
    return items


def _has_results(event: FastEvent) -> bool:
    return isinstance(event, FastTurn) and event.start < event.stop


def _text_of(event: FastEvent) -> str:
    return event.content if isinstance(event.content, str) else "\n".join(event.content or ())


def _kind(event: FastEvent) -> object:
    return _TurnKind(event.start < event.stop, event.variant) if isinstance(event, FastTurn) else type(event)


def _neighbour_kind(kind: object) -> object:
    """Return the kind of an event as the shape of the next one has it."""
    return kind.has_results if isinstance(kind, _TurnKind) else kind
