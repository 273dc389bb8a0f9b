"""What the passes make of a plain conversation. Nothing in it is missing, late or doubled, so little is left to do.

Whether a word has to be put in somewhere, the long way is asked on a sample of the conversation (see `segue.express`).
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.canonical.plain import Content, Event, Turn, Words
from segue.render.content import error_text
from segue.render.demands import TEXTS, Demands

__all__ = ["tell"]


def tell(events: Sequence[Event], demands: Demands, *, placeholders: bool, tail: bool) -> list[Event]:
    """The events as the target may be told them. `placeholders`: each reply with calls gets one for its reasoning."""
    told: list[Event] = []
    merged = demands.alternation == "merged"
    last: Event | None = None
    for event in events:
        if type(event) is Turn:
            if event.failed and not demands.error_flag:
                for index in event.failed:
                    event.results[index] = _failed(event.results[index])
                event.failed = ()
            if placeholders and event.calls:
                event.reasoning = TEXTS.no_reasoning
            if merged and type(last) is Turn and not last.calls:
                last.content = [*_listed(last.content), *_listed(event.content)]
                last.calls, last.results, last.failed = event.calls, event.results, event.failed
                last.thoughts += event.thoughts
                continue
        elif merged and type(last) is Words:
            last.content = [*_listed(last.content), *_listed(event.content)]
            continue
        last = event
        told.append(event)
    if tail:
        told.append(Words(TEXTS.tail))
    return told


def _failed(content: Content) -> Content:
    """An error where the API has no flag for it."""
    first, *rest = _listed(content)
    return [error_text(first), *rest] if rest else error_text(first)


def _listed(content: Content | None) -> list[str]:
    return [] if content is None else [content] if isinstance(content, str) else content
