"""Chooses a sample of a regular history that contains every kind of event in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from segue.canonical.fast_history import FastEvent, FastHistory, FastPathUnsupportedError, FastUserMessage


class Shape(NamedTuple):
    """The features of an event that its rendering depends on.

    A kind is `FastUserMessage`, or for a turn whether it has calls; the kind before the first event is None.
    `irregular_results` has an entry for each result of the turn if one of them is an error, empty, or a list of texts,
    and is empty otherwise.
    `variant` is that of the `FastTurn`.
    """

    call_count: int
    has_reasoning: bool
    has_dropped_keys: bool
    kind_before: object
    kind: object
    content_type: type
    irregular_results: tuple[object, ...]
    variant: object


def choose_sample(
    history: FastHistory, shapes: Mapping[Shape, int], length: int, verified: set[object]
) -> tuple[list[int], set[object]]:
    """Return the indexes of the sample's items, and the shapes and traits they cover.

    The sample covers each kind of event after each other kind, each trait of a turn, and both ends. Shapes with few
    calls are preferred; those in `verified` are skipped.
    """
    events = history.events
    # The start of the last exchange decides whether reasoning may be on.
    opening = last_user_index(events)
    chosen = {0, len(events) - 1, opening, min(opening + 1, len(events) - 1)}
    covered: set[object] = set()
    reported: set[int] = set()
    for shape, index in sorted(shapes.items(), key=lambda item: (item[0].call_count, item[1])):
        # The sample must have every cause of a finding, also in verified shapes.
        causes = {number for number, applies in enumerate(finding_causes(shape)) if applies}
        traits = _shape_traits(shape)
        if not causes <= reported or not verified.issuperset(traits - covered):
            chosen |= {max(index - 1, 0), index}
            reported |= causes
        covered |= {shape, *traits}
    # A user message is taken with its predecessor: after another one, a same-API sample could be repaired.
    chosen |= {index - 1 for index in chosen if index and isinstance(events[index], FastUserMessage)}
    stops = [*history.starts[1:], length]
    indexes = [*range(history.system_count)]
    for index in sorted(chosen):
        indexes += range(history.starts[index], stops[index])
    return indexes, covered


def finding_causes(shape: Shape) -> tuple[bool, ...]:
    """Return which causes of findings an event of this shape has.

    Calls; a reply without calls; reasoning; dropped keys; a user message after results.
    """
    is_user_after_results = shape.kind_before is True and shape.kind is FastUserMessage
    return shape.call_count > 0, shape.kind is False, shape.has_reasoning, shape.has_dropped_keys, is_user_after_results


def last_user_index(events: Sequence[FastEvent]) -> int:
    """Return the index of the last user message."""
    return next((index for index in range(len(events) - 1, -1, -1) if isinstance(events[index], FastUserMessage)), 0)


def find_shapes(history: FastHistory) -> dict[Shape, int]:
    """Return the index of the first event of each shape."""
    if not history.events:
        raise FastPathUnsupportedError
    results = history.results
    failed = set(history.error_results)
    irregular = failed.union(
        [call_index for call_index, result in enumerate(results) if not result or isinstance(result, list)]
    )
    shapes: dict[Shape, int] = {}
    before: object = None
    for index, event in enumerate(history.events):
        if isinstance(event, FastUserMessage):
            kind: object = FastUserMessage
            # A plain tuple, which equals the `Shape` and is faster to make: most events repeat a shape.
            shape = (0, False, event.has_dropped_keys, before, kind, type(event.content), (), None)
        else:
            start, stop = event.start, event.stop
            kind = start < stop
            irregular_results: tuple[object, ...] = ()
            if irregular and not irregular.isdisjoint(range(start, stop)):
                irregular_results = tuple(
                    [
                        (call_index in failed, results[call_index] and type(results[call_index]))
                        for call_index in range(start, stop)
                    ]
                )
            has_reasoning = event.reasoning_count > 0
            shape = (
                stop - start,
                has_reasoning,
                event.has_dropped_keys,
                before,
                kind,
                type(event.content),
                irregular_results,
                event.variant,
            )
        if shape not in shapes:
            shapes[Shape(*shape)] = index
        before = kind
    return shapes


def _shape_traits(shape: Shape) -> set[object]:
    kind = shape.kind
    return {
        ("before", shape.kind_before, kind),
        ("content", kind, shape.content_type),
        ("several", shape.call_count > 1),
        ("reasoning", kind, shape.has_reasoning),
        ("variant", shape.variant),
        ("dropped keys", kind, shape.has_dropped_keys),
        *(("result", result) for result in shape.irregular_results),
    }
