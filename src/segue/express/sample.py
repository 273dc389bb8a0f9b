"""Which part of a plain conversation shows all that there is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from segue.canonical.plain import Event, NotPlainError, Plain, Words

__all__ = ["Shape", "last_words", "sample_places", "shapes_of"]

# How many calls, what stands before, what it is, the form of its words, whether it thinks, each odd result, and what
# else its own API tells it by.
Shape: TypeAlias = tuple[int, object, object, type, bool, tuple[object, ...], object]


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
    calls = thoughts = False
    for shape, index in sorted(shapes.items(), key=lambda item: (item[0][0], item[1])):
        # The report on the sample must tell of calls and of thoughts, whatever was seen before.
        wanted = (shape[0] > 0 and not calls) or (shape[4] and not thoughts)
        traits = _traits(*shape)
        if wanted or not proven.issuperset(traits - shown):
            chosen |= {max(index - 1, 0), index}
            calls, thoughts = calls or shape[0] > 0, thoughts or shape[4]
        shown |= {shape, *traits}
    # Words stand behind what they stood behind: at home, what is new there would be mended.
    chosen |= {index - 1 for index in chosen if index and isinstance(events[index], Words)}
    stops = [*whole.starts[1:], length]
    places = [*range(whole.head)]
    for index in sorted(chosen):
        places += range(whole.starts[index], stops[index])
    return places, shown


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
            shape: Shape = (0, before, kind, type(event.content), False, (), None)
        else:
            start, stop = event.start, event.stop
            kind = start < stop
            found: tuple[object, ...] = ()
            if odd and not odd.isdisjoint(range(start, stop)):
                found = tuple(
                    [(place in failed, results[place] and type(results[place])) for place in range(start, stop)]
                )
            shape = (stop - start, before, kind, type(event.content), event.thoughts > 0, found, event.form)
        if shape not in shapes:
            shapes[shape] = index
        before = kind
    return shapes


def _traits(
    calls: int, before: object, kind: object, content: type, thinks: bool, found: tuple[object, ...], form: object
) -> set[object]:
    pairs = {("before", before, kind), ("content", kind, content), ("several", calls > 1), ("thinks", kind, thinks)}
    return {*pairs, ("form", form), *(("result", result) for result in found)}
