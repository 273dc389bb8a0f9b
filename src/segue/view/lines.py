"""Stored events as styled lines for a terminal, sanitized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse, state_of
from segue.store.base import Record
from segue.store.events import (
    Broke,
    Cancelled,
    Completed,
    Compressed,
    Event,
    Forked,
    Known,
    Opened,
    Published,
    Recalled,
    Rewound,
    Said,
    Sent,
    Switched,
    Titled,
    Undone,
    Unknown,
    kind_of,
)
from segue.view.calls import Calls
from segue.view.clean import harmless
from segue.view.words import (
    SPEAKERS,
    STATES,
    argument_text,
    counted,
    media_words,
    opaque_words,
    result_text,
    shortened,
)

__all__ = ["Line", "event_words", "is_message", "lines_of"]

Style = Literal["head", "text", "call", "result", "bad", "dim"]
_RESULT_LINES = 8
_WIDE = 400


class Line(Struct, frozen=True):
    style: Style
    text: str


def is_message(event: Event) -> bool:
    return isinstance(event, Said | Completed | Known | Cancelled)


def lines_of(record: Record, calls: Calls | None = None, *, full: bool = False) -> Iterator[Line]:
    """The lines of one event. Long results are truncated unless `full`; `numbers` holds the calls listed before."""
    match record.event:
        case Said(message) | Completed(message) | Known(message) | Cancelled(message):
            calls = calls if calls is not None else Calls()
            calls.meet(message)
            for line in _message(message, calls, full=full):
                yield Line(line.style, harmless(line.text))
        case event:
            yield Line("dim", harmless(f"· {event_words(event)}"))


def event_words(event: Event) -> str:
    """One line about an event that is not a message."""
    match event:
        case Opened():
            return f"started with {_given(event)}"
        case Sent():
            return f"sent to {_target(event.target, event.model)}" if event.target else "sent (target unknown)"
        case Recalled():
            return _recalled(event)
        case Broke():
            return f"incomplete reply ({event.reply.finish}): {shortened(event.reply.text, 80) or 'no text'}"
        case Compressed():
            kept = sum(stop - start for start, stop in event.kept)
            sizes = f"{counted(kept, 'message')} kept, {len(event.replaced):,} new"
            return f"compressed with {event.strategy} to {event.budget} tokens: {sizes}"
        case Published():
            return f"published {counted(len(event.calls), 'result')} recorded earlier"
        case Undone() | Rewound():
            return f"undid event {event.seq}" if isinstance(event, Undone) else f"rewound to {event.turn}"
        case Switched():
            return f"switched to {_target(event.target, event.model)}"
        case Forked():
            return f"forked from {event.origin} at event {event.seq}"
        case Titled():
            return f"title: {shortened(event.text, 80)}"
        case Unknown():
            return f"{event.kind}: written by a newer version of segue"
        case _:
            return kind_of(event)


def _given(event: Opened) -> str:
    text = sum(len(block.text) for block in event.system)
    parts = [f"{counted(text, 'character')} of system text"] if text else []
    parts += [counted(len(event.tools), "tool")] if event.tools else []
    return ", ".join(parts) or "no system text and no tools"


def _recalled(event: Recalled) -> str:
    if event.pins:
        return f"pinned: message {', '.join(str(pin.place + 1) for pin in event.pins)}"
    calls = f": {counted(len(event.ledger), 'call')}" if event.ledger else ""
    return f"restored the state from before this conversation was stored{calls}"


def _target(target: str, model: str | None) -> str:
    return f"{target} ({model})" if model else target


def _message(message: Message, calls: Calls, *, full: bool) -> Iterator[Line]:
    if message.speaker != "tool":
        yield Line("head", SPEAKERS[message.speaker])
    for block in message.blocks:
        yield from _block(block, calls, full=full)


def _block(block: Block, calls: Calls, *, full: bool) -> Iterator[Line]:
    match block:
        case Text():
            yield from (Line("text", line) for line in block.text.splitlines())
        case Thinking():
            lines = block.text.splitlines() if full else [shortened(block.text, 160)]
            yield from (Line("dim", f"  {line}") for line in lines if line)
        case ToolCall():
            text = argument_text(block)
            yield Line("call", f"→ {block.name}{calls.of_call(block)} {text if full else shortened(text, _WIDE)}")
        case ToolResponse():
            yield from _result(block, calls.of_result(block), full=full)
        case Media():
            yield Line("dim", f"[{media_words(block)}]")
        case Code():
            yield from (Line("text", line) for line in block.code.splitlines())
        case Opaque():
            if block.silent is None:
                yield Line("dim", f"[{opaque_words(block)}]")
        case _:  # pragma: no cover
            assert_never(block)


def _result(block: ToolResponse, whose: str, *, full: bool) -> Iterator[Line]:
    state = STATES[state_of(block)]
    style: Style = "bad" if state else "result"
    lines = result_text(block).splitlines() or [""]
    shown = lines if full else lines[:_RESULT_LINES]
    name = f"← {block.name or 'result'}{whose}{f' ({state})' if state else ''}"
    if len(lines) == 1:
        yield Line(style, f"{name} {lines[0] if full else shortened(lines[0], _WIDE)}".rstrip())
        return
    yield Line(style, name)
    yield from (Line(style, f"  {line if full else line[:_WIDE]}") for line in shown)
    if len(lines) > len(shown):
        yield Line("dim", f"  … {len(lines) - len(shown):,} more lines (--full)")
