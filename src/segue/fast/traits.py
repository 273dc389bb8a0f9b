"""Traits of a conversation: all that the rest of a target body, and the findings, can depend on.

Conversations with equal traits share a body template. One event for each trait, with both ends of the conversation, is
the *minimal conversation* that the template is made from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from segue.canonical.fast_history import FastEvent, FastHistory, FastPathUnsupportedError, FastTurn, FastUserMessage
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
    deferred: frozenset[str] = frozenset()
    """The tools that are declared as deferred until they are called."""


def find_dependencies(request: Request, constraints: Constraints, unknown: Dependencies) -> Dependencies:
    """Return the dependencies of a rest that was converted."""
    return Dependencies(
        same_api=unknown.same_api,
        is_detected=unknown.is_detected,
        open_exchange=constraints.open_exchange_needs_reasoning,
        fillers=constraints.filler_after_results,
        reasoning_on_text=constraints.reasoning_required_on_text,
        response_format=request.options.response_format is not None,
        deferred=frozenset(tool.name for tool in request.tools if is_deferred(tool)),
    )


def locate_traits(history: FastHistory, dependencies: Dependencies) -> dict[Hashable, int]:
    """Return the traits of a conversation, each with the index of the first event that has it."""
    if not history.events:
        raise FastPathUnsupportedError
    if dependencies.same_api:
        return _locate_shapes(history)
    # A conversation that begins with a reply may need a first user message.
    if not isinstance(history.events[0], FastUserMessage):
        raise FastPathUnsupportedError
    traits = dict(history.marks)
    for trait, indexes in _find_kinds(history, dependencies):
        index = next(indexes, None)
        if index is not None:
            traits[trait] = index
    if dependencies.is_detected:
        for index, event in enumerate(history.events):
            traits.setdefault((type(event), type(event.content)), index)
    return traits


def _find_kinds(history: FastHistory, dependencies: Dependencies) -> Iterator[tuple[Hashable, Iterator[int]]]:
    """Yield traits with the events that have them."""
    events = history.events
    all_indexes, last = range(len(events)), len(events) - 1
    yield "calls", (index for index in all_indexes if _has_results(events[index]))
    if isinstance(events[last], FastTurn) and not _has_results(events[last]):
        yield "ends with a reply", iter([last])
    if dependencies.open_exchange:
        start = next(index for index in reversed(all_indexes) if not isinstance(events[index], FastTurn))
        yield "open calls", (index for index in all_indexes[start:] if _has_results(events[index]))
    if dependencies.fillers:
        after_results = (index for index in all_indexes[1:] if _has_results(events[index - 1]))
        yield "message after results", (index for index in after_results if not isinstance(events[index], FastTurn))
    if dependencies.reasoning_on_text:
        replies = (index for index in all_indexes if isinstance(events[index], FastTurn))
        yield "reply without calls", (index for index in replies if not _has_results(events[index]))
    if dependencies.response_format and has_json_word(_text_of(events[0])):
        yield "JSON in the first message", iter([0])
    for name in dependencies.deferred.intersection(history.names):
        call = history.names.index(name)
        turns = (index for index in all_indexes if isinstance(turn := events[index], FastTurn) and turn.stop > call)
        yield ("deferred tool", name), turns


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


# ------------------------------------------------------------------------------------------------------------ same-API


def _locate_shapes(history: FastHistory) -> dict[Hashable, int]:
    """Return the traits of a conversation whose items must come back unchanged: each shape of an event is one."""
    events, results = history.events, history.results
    failed = set(history.error_results)
    irregular = failed.union([index for index, result in enumerate(results) if not result or isinstance(result, list)])
    shapes = dict(history.marks)
    before: object = None
    for index, event in enumerate(events):
        shape: tuple[object, ...]
        if isinstance(event, FastTurn):
            kind: object = event.start < event.stop
            shape = (before, kind, type(event.content), event.variant, event.is_reordered, event.stop - event.start > 1)
            if irregular:
                for call in irregular.intersection(range(event.start, event.stop)):
                    shapes.setdefault(("result", call in failed, results[call] and type(results[call])), index)
        else:
            kind = type(event)
            shape = (before, kind, type(event.content))
        shapes.setdefault(shape, index)
        before = kind
    last = len(events) - 1
    # The start of the last exchange decides whether reasoning may be on.
    start = next((index for index in range(last, -1, -1) if isinstance(events[index], FastUserMessage)), 0)
    opening = min(start + 1, last)
    ends = _kind(events[0]), _kind(events[opening]), _kind(events[last])
    shapes[ends] = opening
    shapes[_text_of(events[last])[-1:].isspace(), has_json_word(_text_of(events[0]))] = start
    return shapes


def _kind(event: FastEvent) -> object:
    return (event.start < event.stop, event.variant) if isinstance(event, FastTurn) else type(event)
