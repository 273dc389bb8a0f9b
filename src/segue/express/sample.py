"""Which part of a plain conversation shows all that there is in it."""

from __future__ import annotations

from segue.canonical.plain import NotPlain, Plain, Words

__all__ = ["sample_places"]


def sample_places(whole: Plain, length: int) -> list[int]:
    """The places of the items that show all there is: each kind of event with the one before it, each tool, the ends."""
    events = whole.events
    if not events:
        raise NotPlain
    chosen = {0, len(events) - 1}
    kinds: set[object] = set()
    tools: set[str] = set()
    before: object = None
    spoken = 0
    for index, event in enumerate(events):
        content = type(event.content)
        if isinstance(event, Words):
            kind = (before, content)
            before, spoken = Words, index
        else:
            lists, empty = list in map(type, event.results), "" in event.results
            kind = (before, content, event.thoughts > 0, len(event.calls) > 1, bool(event.failed), lists, empty)
            before = bool(event.calls)
            for call in event.calls:
                if call.name not in tools:
                    tools.add(call.name)
                    chosen.add(index)
        if kind not in kinds:
            kinds.add(kind)
            chosen |= {index - 1, index}
    # What opens the last exchange decides whether reasoning may be asked for.
    chosen |= {spoken, spoken + 1}
    stops = [*whole.starts[1:], length]
    places = [*range(whole.head)]
    for index in sorted(chosen & set(range(len(events)))):
        places += range(whole.starts[index], stops[index])
    return places


