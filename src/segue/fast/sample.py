"""Chooses a sample of a regular history that contains every kind of event in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from segue.canonical.fast import FastEvent, FastHistory, FastPathUnsupportedError, FastUserMessage

__all__ = ["Shape", "choose_sample", "find_shapes", "finding_causes", "last_user_index"]

# Number of calls, has reasoning, has dropped keys, kind of the event before, own kind, type of the content, each
# irregular result, and the variant in its own API.
Shape: TypeAlias = tuple[int, bool, bool, object, object, type, tuple[object, ...], object]


def choose_sample(
    whole: FastHistory, shapes: Mapping[Shape, int], length: int, verified: set[object]
) -> tuple[list[int], set[object]]:
    """Return the indexes of the sample's items and the shapes and traits they cover.

    Covered are each kind of event after each other kind, each trait of a turn, and both ends. Of equal events the
    shortest is taken; what is `verified` is skipped.
    """
    events = whole.events
    # The start of the last exchange decides whether reasoning may be on.
    opening = last_user_index(events)
    chosen = {0, len(events) - 1, opening, min(opening + 1, len(events) - 1)}
    shown: set[object] = set()
    reported: set[int] = set()
    for shape, index in sorted(shapes.items(), key=lambda item: (item[0][0], item[1])):
        # The sample must have every cause of a finding, also in verified shapes.
        causes = {number for number, applies in enumerate(finding_causes(shape)) if applies}
        traits = _shape_traits(*shape)
        if not causes <= reported or not verified.issuperset(traits - shown):
            chosen |= {max(index - 1, 0), index}
            reported |= causes
        shown |= {shape, *traits}
    # A user message keeps its predecessor: same-API, a new sequence could be repaired.
    chosen |= {index - 1 for index in chosen if index and isinstance(events[index], FastUserMessage)}
    stops = [*whole.starts[1:], length]
    places = [*range(whole.system_count)]
    for index in sorted(chosen):
        places += range(whole.starts[index], stops[index])
    return places, shown


def finding_causes(shape: Shape) -> tuple[bool, ...]:
    """Return which causes of findings an event of this shape has.

    Calls; a reply without calls; reasoning; dropped keys; a user message after results.
    """
    calls, thinks, marked, before, kind, *_ = shape
    return calls > 0, kind is False, thinks, marked, before is True and kind is FastUserMessage


def last_user_index(events: Sequence[FastEvent]) -> int:
    """Return the index of the last user message."""
    return next((index for index in range(len(events) - 1, -1, -1) if isinstance(events[index], FastUserMessage)), 0)


def find_shapes(whole: FastHistory) -> dict[Shape, int]:
    """Return the index of the first event of each shape."""
    if not whole.events:
        raise FastPathUnsupportedError
    results = whole.results
    failed = set(whole.error_results)
    odd = failed.union([place for place, result in enumerate(results) if not result or isinstance(result, list)])
    shapes: dict[Shape, int] = {}
    before: object = None
    for index, event in enumerate(whole.events):
        if isinstance(event, FastUserMessage):
            kind: object = FastUserMessage
            shape: Shape = (0, False, event.has_dropped_keys, before, kind, type(event.content), (), None)
        else:
            start, stop = event.start, event.stop
            kind = start < stop
            found: tuple[object, ...] = ()
            if odd and not odd.isdisjoint(range(start, stop)):
                found = tuple(
                    [(place in failed, results[place] and type(results[place])) for place in range(start, stop)]
                )
            thinks = event.reasoning_count > 0
            shape = (
                stop - start,
                thinks,
                event.has_dropped_keys,
                before,
                kind,
                type(event.content),
                found,
                event.variant,
            )
        if shape not in shapes:
            shapes[shape] = index
        before = kind
    return shapes


def _shape_traits(
    calls: int,
    thinks: bool,
    marked: bool,
    before: object,
    kind: object,
    content: type,
    found: tuple[object, ...],
    form: object,
) -> set[object]:
    pairs = {("before", before, kind), ("content", kind, content), ("several", calls > 1), ("thinks", kind, thinks)}
    return {*pairs, ("form", form), ("marked", kind, marked), *(("result", result) for result in found)}
