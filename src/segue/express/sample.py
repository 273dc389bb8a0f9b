"""Which part of a plain conversation shows all that there is in it."""

from __future__ import annotations

from segue.canonical.plain import Event, NotPlain, Plain, Turn, Words

__all__ = ["sample_places"]


def sample_places(whole: Plain, length: int) -> list[int]:
    """The places of the items that show all there is.

    That is each kind of event behind each other kind, each trait that a turn can have, each tool, and both ends.
    """
    events = whole.events
    if not events:
        raise NotPlain
    chosen = {0, len(events) - 1}
    shapes: set[object] = set()
    tools: set[str] = set()
    known: set[object] = set()
    before: Event | None = None
    spoken = 0
    for index, event in enumerate(events):
        if isinstance(event, Words):
            spoken, calls = index, ()
            shape: object = (_kind(before), type(event.content))
        else:
            calls = event.calls
            marks = (event.thoughts > 0, event.failed, event.listed, "" in event.results)
            shape = (_kind(before), type(event.content), len(calls), marks)
        if shape not in shapes or not tools.issuperset([call.name for call in calls]):
            tools.update([call.name for call in calls])
            shapes.add(shape)
            traits = _traits(before, event)
            if not known.issuperset(traits):
                known.update(traits)
                chosen |= {index - 1, index}
        before = event
    # What opens the last exchange decides whether reasoning may be asked for.
    chosen |= {spoken, spoken + 1}
    stops = [*whole.starts[1:], length]
    places = [*range(whole.head)]
    for index in sorted(chosen & set(range(len(events)))):
        places += range(whole.starts[index], stops[index])
    return places


def _kind(event: Event | None) -> object:
    return bool(event.calls) if isinstance(event, Turn) else type(event)


def _traits(before: Event | None, event: Event) -> set[object]:
    traits: set[object] = {(_kind(before), _kind(event)), (_kind(event), type(event.content))}
    if isinstance(event, Turn):
        traits |= {("tool", call.name) for call in event.calls}
        traits |= {("result", result and type(result)) for result in event.results}
        traits |= {("several", len(event.calls) > 1), ("failed", bool(event.failed)), ("thoughts", event.thoughts > 0)}
    return traits
