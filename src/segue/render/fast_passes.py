"""The passes of the fast path. A `FastHistory` has no missing or late results, so only a few are needed.

Whether placeholders are inserted is taken from the full pipeline's result for a minimal conversation (`segue.fast`).
"""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.fast_history import (
    SYSTEM,
    Content,
    FastEvent,
    FastHistory,
    FastPathUnsupportedError,
    FastSystemMessage,
    FastTurn,
    FastUserMessage,
)
from segue.render.constraints import TEXTS, Constraints
from segue.render.content import format_error


class FastRenderOptions(Struct, frozen=True):
    """How to render a history. `keeps_order`: same-API, results stay in the order of the body."""

    constraints: Constraints
    id_scheme: str = ""
    insert_placeholders: bool = False
    keeps_order: bool = False


def render_events(history: FastHistory, options: FastRenderOptions) -> list[FastEvent]:
    """Return the events in a form that the target accepts. It modifies the history, so call it once."""
    constraints = options.constraints
    # Only the full pipeline handles error results without text: each needs a fixed text and a finding.
    if not all(any(_as_list(history.results[index])) for index in history.error_results):
        raise FastPathUnsupportedError
    if not constraints.has_error_flag:
        for index in history.error_results:
            history.results[index] = _format_error_content(history.results[index])
        history.error_results = []
    events = history.events
    if options.insert_placeholders:
        for turn in turns_needing_reasoning(history, constraints):
            turn.placeholder = constraints.placeholder_signature or TEXTS.reasoning_placeholder
    if SYSTEM in history.marks and constraints.later_system == "text":
        events = [*map(_system_to_user, events)]
    if constraints.alternation != "free":
        events = _merge_neighbours(events)
    if constraints.calls_without_text:
        events = [part for event in events for part in _split_turn(event)]
    if constraints.filler_after_results:
        events = _insert_fillers(events)
    if constraints.ending != "free" and isinstance(last := events[-1], FastTurn) and last.start == last.stop:
        return [*events, FastUserMessage(TEXTS.last_user_message)]
    return events


def turns_needing_reasoning(history: FastHistory, constraints: Constraints) -> list[FastTurn]:
    """Return the replies that need a reasoning placeholder."""
    turns = [event for event in history.events if isinstance(event, FastTurn)]
    return turns if constraints.reasoning_required_on_text else [turn for turn in turns if turn.start < turn.stop]


def _system_to_user(event: FastEvent) -> FastEvent:
    """Return system text as a user message; any other event unchanged."""
    if not isinstance(event, FastSystemMessage):
        return event
    texts = [TEXTS.system.format(content=text) for text in _as_list(event.content)]
    # The new message is sent as a string where the target accepts one.
    return FastUserMessage(texts[0] if len(texts) == 1 else texts)


def _split_turn(event: FastEvent) -> list[FastEvent]:
    """Split a turn with text and calls into two."""
    if not isinstance(event, FastTurn) or event.content is None or event.start == event.stop:
        return [event]
    text = FastTurn(event.content, event.start, event.start)
    return [text, FastTurn(None, event.start, event.stop, placeholder=event.placeholder)]


def _insert_fillers(events: list[FastEvent]) -> list[FastEvent]:
    """Insert an assistant message between results and a user message."""
    filled: list[FastEvent] = []
    for event in events:
        if isinstance(event, FastUserMessage) and filled and _has_results(filled[-1]):
            filled.append(FastTurn(TEXTS.filler, 0, 0))
        filled.append(event)
    return filled


def _has_results(event: FastEvent) -> bool:
    return isinstance(event, FastTurn) and event.start < event.stop


def _merge_neighbours(events: list[FastEvent]) -> list[FastEvent]:
    """Merge neighbours of one speaker. A turn without calls has no results that separate it from the next."""
    merged: list[FastEvent] = []
    last: FastEvent | None = None
    for event in events:
        if isinstance(event, FastUserMessage):
            if isinstance(last, FastUserMessage):
                last.content = [*_as_list(last.content), *_as_list(event.content)]
                continue
        elif isinstance(event, FastTurn) and isinstance(last, FastTurn) and last.start == last.stop:
            last.content = [*_as_list(last.content), *_as_list(event.content)]
            last.start, last.stop, last.placeholder = event.start, event.stop, event.placeholder
            continue
        merged.append(event)
        last = event
    return merged


def _format_error_content(content: Content) -> Content:
    """Return error content with the error label, for an API without an error flag."""
    first, *rest = _as_list(content)
    return [format_error(first), *rest] if rest else format_error(first)


def _as_list(content: Content | None) -> list[str]:
    return [] if content is None else [content] if isinstance(content, str) else content
