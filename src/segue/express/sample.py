"""Which part of a plain conversation shows all that there is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from segue.canonical.plain import Event, NotPlainError, Plain, Words

__all__ = ["Shape", "causes_of", "last_words", "sample_places", "shapes_of"]

# How many calls, whether it thinks, whether it is marked, what stands before, what it is, the form of its words, each
# odd result, and what else its own API tells it by.
Shape: TypeAlias = tuple[int, bool, bool, object, object, type, tuple[object, ...], object]


def sample_places(
    whole: Plain, shapes: Mapping[Shape, int], length: int, proven: set[object]
) -> tuple[list[int], set[object]]:
    """The places of the items that show all there is, and what they show: each kind of event behind each other kind,
    each trait that a turn can have, and both ends. Of equals the shortest is taken, of what is `proven` none.
    """
    events = whole.events
    # What opens the last exchange decides whether reasoning may be asked for.
    spoken = last_words(events)
    chosen = {0, len(events) - 1, spoken, min(spoken + 1, len(events) - 1)}
    shown: set[object] = set()
    reported: set[int] = set()
    for shape, index in sorted(shapes.items(), key=lambda item: (item[0][0], item[1])):
        # What the report tells of each event, the sample must show, whatever was seen before.
        causes = {number for number, there in enumerate(causes_of(shape)) if there}
        traits = _traits(*shape)
        if not causes <= reported or not proven.issuperset(traits - shown):
            chosen |= {max(index - 1, 0), index}
            reported |= causes
        shown |= {shape, *traits}
    # Words stand behind what they stood behind: at home, what is new there would be mended.
    chosen |= {index - 1 for index in chosen if index and isinstance(events[index], Words)}
    stops = [*whole.starts[1:], length]
    places = [*range(whole.head)]
    for index in sorted(chosen):
        places += range(whole.starts[index], stops[index])
    return places, shown


def causes_of(shape: Shape) -> tuple[bool, ...]:
    """What an event of this shape may give cause to report, each time that there is one.

    Calls; a reply without any; reasoning; a mark; words behind results.
    """
    calls, thinks, marked, before, kind, *_ = shape
    return calls > 0, kind is False, thinks, marked, before is True and kind is Words


def last_words(events: Sequence[Event]) -> int:
    """Where the human spoke last."""
    return next((index for index in range(len(events) - 1, -1, -1) if isinstance(events[index], Words)), 0)


def shapes_of(whole: Plain) -> dict[Shape, int]:
    """The first event of each shape."""
    if not whole.events:
        raise NotPlainError
    results = whole.results
    failed = set(whole.failed)
    odd = failed.union([place for place, result in enumerate(results) if not result or isinstance(result, list)])
    shapes: dict[Shape, int] = {}
    before: object = None
    for index, event in enumerate(whole.events):
        if isinstance(event, Words):
            kind: object = Words
            shape: Shape = (0, False, event.marked, before, kind, type(event.content), (), None)
        else:
            start, stop = event.start, event.stop
            kind = start < stop
            found: tuple[object, ...] = ()
            if odd and not odd.isdisjoint(range(start, stop)):
                found = tuple(
                    [(place in failed, results[place] and type(results[place])) for place in range(start, stop)]
                )
            thinks = event.thoughts > 0
            shape = (stop - start, thinks, event.marked, before, kind, type(event.content), found, event.form)
        if shape not in shapes:
            shapes[shape] = index
        before = kind
    return shapes


def _traits(
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
