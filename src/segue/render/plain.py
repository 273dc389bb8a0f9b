"""What the passes make of a plain conversation. Nothing in it is missing, late or doubled, so little is left to do.

Whether a word has to be put in somewhere, the long way is asked on a sample of the conversation (see `segue.express`).
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
    """How a conversation has to be told: by whose demands, with placeholders for reasoning, with a word at the end."""

    demands: Demands
    id_scheme: str = ""
    placeholders: bool = False
    tail: bool = False


def tell(plain: Plain, ways: Ways) -> list[Event]:
    """The events as the target may be told them. Telling is done once: it changes what it tells."""
    demands = ways.demands
    # What failed without a word gets one, and the report a line for each.
    if not all(any(_listed(plain.results[place])) for place in plain.failed):
        raise NotPlainError
    if not demands.error_flag:
        for place in plain.failed:
            plain.results[place] = _failed(plain.results[place])
        plain.failed = []
    told = plain.events
    if ways.placeholders:
        for turn in thoughtless(plain, demands):
            turn.placeholder = demands.placeholder_signature or TEXTS.no_reasoning
    if demands.alternation != "free":
        told = _merged(told)
    if demands.calls_alone:
        told = [part for event in told for part in _parted(event)]
    if demands.bridge:
        told = _bridged(told)
    return [*told, Words(TEXTS.tail)] if ways.tail else told


def thoughtless(plain: Plain, demands: Demands) -> list[Turn]:
    """The replies that get a placeholder where there is no reasoning."""
    turns = [event for event in plain.events if isinstance(event, Turn)]
    return turns if demands.reasoning_on_words else [turn for turn in turns if turn.start < turn.stop]


def _parted(event: Event) -> list[Event]:
    """A turn with words and calls as two."""
    if isinstance(event, Words) or event.content is None or event.start == event.stop:
        return [event]
    words = Turn(event.content, event.start, event.start, event.thoughts, event.form, event.marked)
    return [words, Turn(None, event.start, event.stop, placeholder=event.placeholder)]


def _bridged(events: list[Event]) -> list[Event]:
    """The events with a word of the assistant between results and the human's."""
    told: list[Event] = []
    for event in events:
        if isinstance(event, Words) and told and _ends_on_results(told[-1]):
            told.append(Turn(TEXTS.bridge, 0, 0))
        told.append(event)
    return told


def bridges(events: Sequence[Event]) -> int:
    """How many such words there must be."""
    return sum(isinstance(event, Words) and _ends_on_results(before) for before, event in pairwise(events))


def _ends_on_results(event: Event) -> bool:
    return isinstance(event, Turn) and event.start < event.stop


def _merged(events: list[Event]) -> list[Event]:
    """Neighbours of one speaker as one. A turn without calls has nothing behind it that would part it from the next."""
    told: list[Event] = []
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
        told.append(event)
        last = event
    return told


def _failed(content: Content) -> Content:
    """An error where the API has no flag for it."""
    first, *rest = _listed(content)
    return [error_text(first), *rest] if rest else error_text(first)


def _listed(content: Content | None) -> list[str]:
    return [] if content is None else [content] if isinstance(content, str) else content
