"""Stored events as styled lines for a terminal, sanitized."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct

from segue.canonical.blocks import (
    Block,
    Code,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    calls_of,
    responses_of,
    state_of,
)
from segue.errors import format_count
from segue.store.base import StoredEvent
from segue.store.events import (
    CallCancelled,
    CallCompleted,
    CompressionApplied,
    CompressionUndone,
    Event,
    Forked,
    MessageAdded,
    Renamed,
    ReplyBroken,
    Restored,
    ResultPublished,
    ResultRecorded,
    Rewound,
    Sent,
    SettingsChanged,
    Switched,
    UnknownEvent,
    event_kind,
)
from segue.view.format import (
    SPEAKERS,
    STATES,
    format_arguments,
    format_media,
    format_opaque,
    format_result,
    is_shown,
    shorten,
)
from segue.view.sanitize import sanitize

Style = Literal["head", "text", "call", "result", "bad", "dim"]
_RESULT_LINES = 8
_MAX_WIDTH = 400
_MAX_ARGUMENTS = 60


class CallLabels:
    """The calls listed so far. Where several are open at once, a call and its result get the same number."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._numbers: dict[str, int] = {}
        self._open: set[str] = set()
        self._newest = ""

    def add_message(self, message: Message) -> None:
        """Record a message before it is listed."""
        calls = [call for call in calls_of(message) if call.id]
        answered = {response.call_id for response in responses_of(message)}
        pending = [call for call in calls if call.id not in answered]
        if len(pending) > 1 or (pending and self._open):
            for call in pending:
                self._numbers[call.id] = len(self._numbers) + 1
        self._calls.update((call.id, call) for call in calls)
        self._open.update(call.id for call in pending)
        self._newest = calls[-1].id if calls else self._newest

    def label_call(self, call: ToolCall) -> str:
        """Return the label after the name of a call."""
        return f" #{self._numbers[call.id]}" if call.id in self._numbers else ""

    def label_result(self, response: ToolResponse) -> str:
        """Return the label after the name of a result: its call's number, or its arguments if it is not the newest."""
        self._open.discard(response.call_id)
        if response.call_id in self._numbers:
            return f" #{self._numbers[response.call_id]}"
        if response.call_id in ("", self._newest):
            return ""
        call = self._calls.get(response.call_id)
        return (
            f" (of {shorten(format_arguments(call), _MAX_ARGUMENTS)})"
            if call is not None
            else " (its call is not shown)"
        )


class Line(Struct, frozen=True):
    style: Style
    text: str


def is_message(event: Event) -> bool:
    return isinstance(event, MessageAdded | CallCompleted | ResultRecorded | CallCancelled)


def format_event(record: StoredEvent, labels: CallLabels | None = None, *, full: bool = False) -> Iterator[Line]:
    """Yield the lines of an event. Long results are truncated unless `full`; `labels` holds the calls listed before."""
    match record.event:
        case MessageAdded(message) | CallCompleted(message) | ResultRecorded(message) | CallCancelled(message):
            labels = labels if labels is not None else CallLabels()
            labels.add_message(message)
            for line in _message_lines(message, labels, full=full):
                yield Line(line.style, sanitize(line.text))
        case event:
            yield Line("dim", sanitize(f"· {describe_event(event)}"))


def describe_event(event: Event) -> str:
    """Describe an event that is not a message in one line."""
    match event:
        case SettingsChanged():
            return f"settings: {_describe_settings(event)}"
        case Sent():
            return f"sent to {_format_target(event.target, event.model)}" if event.target else "sent (target unknown)"
        case Restored():
            return _describe_restored(event)
        case ReplyBroken():
            return f"incomplete reply ({event.reply.finish}): {shorten(event.reply.text, 80) or 'no text'}"
        case CompressionApplied():
            kept = sum(stop - start for start, stop in event.kept)
            sizes = f"{format_count(kept, 'message')} kept, {len(event.replaced):,} new"
            return f"compressed with {event.strategy} to {event.budget} tokens: {sizes}"
        case ResultPublished():
            return f"added {format_count(len(event.calls), 'result')} recorded earlier to the history"
        case CompressionUndone() | Rewound():
            return (
                f"undid the compression at event {event.seq}"
                if isinstance(event, CompressionUndone)
                else f"rewound to {event.turn}"
            )
        case Switched():
            return f"switched to {_format_target(event.target, event.model)}"
        case Forked():
            return f"forked from {event.origin} at event {event.seq}"
        case Renamed():
            return f"title: {shorten(event.text, 80)}"
        case UnknownEvent():
            return f"{event.kind}: written by a newer version of segue"
        case _:
            return event_kind(event)


def _describe_settings(event: SettingsChanged) -> str:
    length = sum(len(block.text) for block in event.system)
    parts = [f"{format_count(length, 'character')} of system text"] if length else []
    parts += [format_count(len(event.tools), "tool")] if event.tools else []
    return ", ".join(parts) or "no system text and no tools"


def _describe_restored(event: Restored) -> str:
    if event.pins:
        return f"pinned: message {', '.join(str(pin.place + 1) for pin in event.pins)}"
    calls = f": {format_count(len(event.ledger), 'call')}" if event.ledger else ""
    return f"restored the state from before this conversation was stored{calls}"


def _format_target(target: str, model: str | None) -> str:
    return f"{target} ({model})" if model else target


def _message_lines(message: Message, calls: CallLabels, *, full: bool) -> Iterator[Line]:
    if message.speaker != "tool":
        yield Line("head", SPEAKERS[message.speaker])
    for block in message.blocks:
        yield from _block_lines(block, calls, full=full)


def _block_lines(block: Block, calls: CallLabels, *, full: bool) -> Iterator[Line]:
    match block:
        case Text():
            yield from (Line("text", line) for line in block.text.splitlines())
        case Thinking():
            lines = block.text.splitlines() if full else [shorten(block.text, 160)]
            yield from (Line("dim", f"  {line}") for line in lines if line)
        case ToolCall():
            text = format_arguments(block)
            yield Line("call", f"→ {block.name}{calls.label_call(block)} {text if full else shorten(text, _MAX_WIDTH)}")
        case ToolResponse():
            yield from _result_lines(block, calls.label_result(block), full=full)
        case Media():
            yield Line("dim", f"[{format_media(block)}]")
        case Code():
            yield from (Line("text", line) for line in block.code.splitlines())
        case Opaque():
            if is_shown(block):
                yield Line("dim", f"[{format_opaque(block)}]")
        case _:  # pragma: no cover
            assert_never(block)


def _result_lines(block: ToolResponse, label: str, *, full: bool) -> Iterator[Line]:
    state = STATES[state_of(block)]
    style: Style = "bad" if state else "result"
    lines = format_result(block).splitlines() or [""]
    shown = lines if full else lines[:_RESULT_LINES]
    name = f"← {block.name or 'result'}{label}{f' ({state})' if state else ''}"
    if len(lines) == 1:
        yield Line(style, f"{name} {lines[0] if full else shorten(lines[0], _MAX_WIDTH)}".rstrip())
        return
    yield Line(style, name)
    yield from (Line(style, f"  {line if full else line[:_MAX_WIDTH]}") for line in shown)
    if len(lines) > len(shown):
        yield Line("dim", f"  … {len(lines) - len(shown):,} more lines (--full)")
