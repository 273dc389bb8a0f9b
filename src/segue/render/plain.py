"""The passes of the fast path. Nothing in a `FastHistory` is missing, late or repeated, so few are needed.

Whether texts have to be inserted is taken from a run of the full pipeline on a sample (see `segue.fast`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from segue.canonical.plain import Content, Event, NotPlainError, Plain, Turn, Words
from segue.render.content import error_text
from segue.render.demands import TEXTS, Demands

__all__ = ["Ways", "bridges", "tell", "thoughtless"]


class Ways(Struct, frozen=True):
    """How to render: the constraints, with or without reasoning placeholders and a last user message."""

    demands: Demands
    id_scheme: str = ""
    placeholders: bool = False
    tail: bool = False


def tell(plain: Plain, ways: Ways) -> list[Event]:
    """Return the events as the target accepts them. Run it once: it modifies the history."""
    constraints = ways.demands
    # Error results without text need a fixed text and a finding each: that is left to the full pipeline.
    if not all(any(_listed(plain.results[place])) for place in plain.failed):
        raise NotPlainError
    if not constraints.error_flag:
        for place in plain.failed:
            plain.results[place] = _failed(plain.results[place])
        plain.failed = []
    events = plain.events
    if ways.placeholders:
        for turn in thoughtless(plain, constraints):
            turn.placeholder = constraints.placeholder_signature or TEXTS.no_reasoning
    if constraints.alternation != "free":
        events = _merged(events)
    if constraints.calls_alone:
        events = [part for event in events for part in _parted(event)]
    if constraints.bridge:
        events = _bridged(events)
    return [*events, Words(TEXTS.tail)] if ways.tail else events


def thoughtless(plain: Plain, constraints: Demands) -> list[Turn]:
    """Return the replies that need a reasoning placeholder."""
    turns = [event for event in plain.events if isinstance(event, Turn)]
    return turns if constraints.reasoning_on_words else [turn for turn in turns if turn.start < turn.stop]


def _parted(event: Event) -> list[Event]:
    """Split a turn with text and calls into two."""
    if isinstance(event, Words) or event.content is None or event.start == event.stop:
        return [event]
    text = Turn(event.content, event.start, event.start, event.thoughts, event.form, event.marked)
    return [text, Turn(None, event.start, event.stop, placeholder=event.placeholder)]


def _bridged(events: list[Event]) -> list[Event]:
    """Insert an assistant message between results and a user message."""
    made: list[Event] = []
    for event in events:
        if isinstance(event, Words) and made and _ends_on_results(made[-1]):
            made.append(Turn(TEXTS.bridge, 0, 0))
        made.append(event)
    return made


def bridges(events: Sequence[Event]) -> int:
    """Return how many assistant messages have to be inserted between results and user messages."""
    return sum(isinstance(event, Words) and _ends_on_results(before) for before, event in pairwise(events))


def _ends_on_results(event: Event) -> bool:
    return isinstance(event, Turn) and event.start < event.stop


def _merged(events: list[Event]) -> list[Event]:
    """Merge neighbours of one speaker. A turn without calls has no results that separate it from the next."""
    made: list[Event] = []
    last: Event | None = None
    for event in events:
        if isinstance(event, Words):
            if isinstance(last, Words):
                last.content = [*_listed(last.content), *_listed(event.content)]
                continue
        elif isinstance(last, Turn) and last.start == last.stop:
            last.content = [*_listed(last.content), *_listed(event.content)]
            last.start, last.stop, last.placeholder = event.start, event.stop, event.placeholder
            continue
        made.append(event)
        last = event
    return made


def _failed(content: Content) -> Content:
    """Return error content with the error label, for an API without an error flag."""
    first, *rest = _listed(content)
    return [error_text(first), *rest] if rest else error_text(first)


def _listed(content: Content | None) -> list[str]:
    return [] if content is None else [content] if isinstance(content, str) else content
