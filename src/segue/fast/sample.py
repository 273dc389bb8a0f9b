"""Chooses a sample of a regular history that contains every kind of event in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from segue.canonical.fast_history import FastEvent, FastHistory, FastPathUnsupportedError, FastUserMessage

# Number of calls, has reasoning, has dropped keys, kind of the event before, own kind, type of the content, each
# irregular result, and the variant in its own API.
Shape: TypeAlias = tuple[int, bool, bool, object, object, type, tuple[object, ...], object]


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
    for shape, index in sorted(shapes.items(), key=lambda item: (item[0][0], item[1])):
        # The sample must have every cause of a finding, also in verified shapes.
        causes = {number for number, applies in enumerate(finding_causes(shape)) if applies}
        traits = _shape_traits(*shape)
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
    calls, has_reasoning, has_dropped_keys, before, kind, *_ = shape
    return calls > 0, kind is False, has_reasoning, has_dropped_keys, before is True and kind is FastUserMessage


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
            shape: Shape = (0, False, event.has_dropped_keys, before, kind, type(event.content), (), None)
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
            shapes[shape] = index
        before = kind
    return shapes


def _shape_traits(
    calls: int,
    has_reasoning: bool,
    has_dropped_keys: bool,
    before: object,
    kind: object,
    content: type,
    irregular_results: tuple[object, ...],
    variant: object,
) -> set[object]:
    pairs = {
        ("before", before, kind),
        ("content", kind, content),
        ("several", calls > 1),
        ("reasoning", kind, has_reasoning),
    }
    return {
        *pairs,
        ("variant", variant),
        ("dropped keys", kind, has_dropped_keys),
        *(("result", result) for result in irregular_results),
    }
