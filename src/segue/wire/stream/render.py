"""Stream rendering, events to bytes: the base classes of the stream renderers of all APIs.

Blocks that the client's API cannot represent are dropped as in complete replies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.json import encode_json, encode_json_text, parse_argument_text
from segue.canonical.request import Usage
from segue.render.report import Report
from segue.wire.base import ApiError, RenderContext
from segue.wire.stream.deltas import TextBuffer
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
)
from segue.wire.tools import FREE_TEXT_KEY, render_arguments_object

RenderText: TypeAlias = Callable[[str, bytes], bytes]
"""Renders a delta with this text, given also as it is encoded in JSON."""
_PROBE = "\u00b6probe"


class DeltaFormat(NamedTuple):
    """The form of the deltas of one block; without `render_text`, the encoded text between `head` and `tail`."""

    render_text: RenderText | None
    head: bytes = b""
    tail: bytes = b""

    def render(self, text: str) -> bytes:
        encoded = encode_json(text)
        return self.head + encoded + self.tail if self.render_text is None else self.render_text(text, encoded)

    @classmethod
    def from_function(cls, render: Callable[[str], bytes]) -> DeltaFormat:
        """Return the format of what this function renders."""
        head, probe, tail = render(_PROBE).partition(encode_json(_PROBE))
        if probe and head + encode_json("") + tail == render(""):
            return cls(None, head, tail)

        def render_text(text: str, _encoded: bytes) -> bytes:
            return render(text)

        return cls(render_text)


class StreamRenderer(ABC):
    """Renders the events of one reply as a stream of bytes. `model` is used where the reply names none.

    `response_fields` are the fields of the reply if it is `same_api`: one of the API that is rendered.
    """

    api: str

    def __init__(self, context: RenderContext, model: str | None) -> None:
        self.ids = context.ids
        self.report = context.report
        self.context = context
        self.model = model or ""
        self.order = BlockOrder()
        self.same_api = False
        self.response_fields: Mapping[str, Any] = {}
        self.usage: Usage | None = None

    @abstractmethod
    def render(self, events: Iterable[Event]) -> bytes:
        """Render these events; the bytes of the last one include the end of the stream."""

    @abstractmethod
    def render_reply_start(self, event: ReplyStart) -> Iterable[bytes]: ...

    @abstractmethod
    def render_block_start(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]: ...

    @abstractmethod
    def render_block_end(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]: ...

    @abstractmethod
    def render_block(self, block: Block) -> Iterable[bytes]:
        """Render a block that is not streamed."""

    @abstractmethod
    def render_finish(self, event: Finished) -> Iterable[bytes]: ...

    @abstractmethod
    def render_error(self, error: ApiError) -> Iterable[bytes]: ...

    def render_event(
        self, event: ReplyStart | BlockStart | BlockEnd | WholeBlock | UsageUpdate | Finished | Failed
    ) -> Iterable[bytes]:
        """Render an event that is not a delta."""
        match event:
            case ReplyStart():
                native = event.native
                if native is not None and native.api == self.api:
                    self.same_api, self.response_fields = True, native.fragment
                return self.render_reply_start(event)
            case BlockStart():
                return self.render_block_start(event.index, event.block)
            case BlockEnd():
                return self.render_block_end(event.index, event.block)
            case WholeBlock():
                return self.render_block(event.block)
            case UsageUpdate():
                self.usage = event.usage
                return ()
            case Finished():
                return self.render_finish(event)
            case Failed():
                return self.render_error(event.error)

    def open_run(self, delta: Delta) -> DeltaFormat | None:
        """Return the format of more deltas of the same block, right after `delta` was rendered.

        It is valid until another event is rendered. None if each delta must be rendered as an event.
        """
        return None

    def render_failure(self, error: ApiError) -> bytes:
        """Render only the error that ends a failed stream, in the form that clients detect."""
        return self.render((Failed(error),))


_DELTAS = (TextDelta, InputDelta, ThinkingDelta)
_REPLY_EVENTS = (ReplyStart, UsageUpdate, Finished, Failed)


class BlockOrder:
    """Orders events for an API whose blocks follow one another: events of later blocks wait until the open one ends."""

    def __init__(self) -> None:
        self.current: int | None = None
        """Index of the open block."""
        self._waiting: dict[int, list[Event]] = {}
        self._waiting_indexes: list[int] = []

    def reorder(self, events: Iterable[Event]) -> list[Event]:
        ordered: list[Event] = []
        for event in events:
            if (isinstance(event, _DELTAS) and event.index == self.current) or isinstance(event, _REPLY_EVENTS):
                ordered.append(event)
            elif self.current is None or self.current == event.index:
                self._emit(event, ordered)
            else:
                if event.index not in self._waiting:
                    heappush(self._waiting_indexes, event.index)
                self._waiting.setdefault(event.index, []).append(event)
        return ordered

    def _emit(
        self, event: BlockStart | TextDelta | ThinkingDelta | InputDelta | BlockEnd | WholeBlock, ordered: list[Event]
    ) -> None:
        ordered.append(event)
        if isinstance(event, BlockStart):
            self.current = event.index
        elif isinstance(event, BlockEnd):
            self.current = None
            while self.current is None and self._waiting:
                index = heappop(self._waiting_indexes)
                queued = self._waiting.pop(index)
                ordered += queued
                if not isinstance(queued[-1], BlockEnd | WholeBlock):
                    self.current = index


class _InputObjectWriter:
    """Renders the arguments of one call as the text of a JSON object while their deltas arrive.

    Text that begins like an object is passed through at once, and so is free text, as the only member of an object.
    Any other value, and invalid JSON, is rendered when it is complete.
    """

    __slots__ = ("_buffer_all", "_free_text", "_held", "_opened", "passthrough")

    def __init__(self, call: ToolCall) -> None:
        self.passthrough = False
        self._free_text = call.kind == "custom"
        self._held = ""
        self._opened = False
        self._buffer_all = False

    def feed(self, text: str) -> str:
        if self.passthrough:
            return text
        if self._free_text:
            return self._open_object() + encode_json_text(text)[1:-1]
        if self._buffer_all:
            return ""
        self._held += text
        stripped = self._held.strip()
        second = stripped[1:].lstrip()[:1]
        if stripped[:1] not in ("{", "") or second not in ('"', "}", ""):
            self._buffer_all = True
            return ""
        # Text that is closed but invalid JSON may be all of the arguments.
        self.passthrough = bool(second) and not (stripped.endswith("}") and parse_argument_text(stripped)[0] is None)
        return self._held if self.passthrough else ""

    def _open_object(self) -> str:
        opened, self._opened = self._opened, True
        return "" if opened else f'{{"{FREE_TEXT_KEY}":"'

    def finish(self, call: ToolCall, report: Report) -> str:
        """Return the rest of the text once the call is finished; nothing is added to a truncated call."""
        if call.broken:
            return "" if self.passthrough or self._buffer_all or self._free_text else self._held.lstrip()
        if self.passthrough:
            if call.arguments is None and call.arguments_text:
                message = "arguments are not valid JSON; they were already streamed to the client"
                report.add("argument", message, call_id=call.id, subject=call.name)
            return ""
        if self._free_text:
            render_arguments_object(call, report)
            return self._open_object() + '"}'
        if not self._held and call.arguments in ({}, None):
            return ""
        return encode_json_text(render_arguments_object(call, report))


class BlockRenderer(StreamRenderer):
    """Renders streams of numbered blocks in sequence, each with a start, deltas and a stop (Anthropic, Bedrock).

    A text block starts with its first non-empty text, a reasoning block when its kind is known. `block_index` is the
    number of the open block. Only reasoning from the same API is rendered.
    """

    def __init__(self, context: RenderContext, model: str | None) -> None:
        super().__init__(context, model)
        self._open_block: Text | Thinking | ToolCall | None = None
        self._started = False
        self._held_text = TextBuffer()
        self._input_writer: _InputObjectWriter | None = None
        self.block_index = 0
        self.has_calls = False
        self.has_broken_call = False

    # Implemented by each API's renderer.

    @abstractmethod
    def begin_text(self, block: Text) -> bytes: ...

    @abstractmethod
    def begin_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def begin_call(self, call: ToolCall) -> bytes: ...

    @abstractmethod
    def render_delta(self, text: str) -> bytes:
        """Render a delta of the open block."""

    @abstractmethod
    def end_text(self, block: Text) -> bytes:
        """Render the deltas after the text of a text block (citations)."""

    @abstractmethod
    def end_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def render_block_stop(self) -> bytes: ...

    @abstractmethod
    def render_encrypted(self, block: Thinking) -> bytes:
        """Render a complete block of encrypted reasoning."""

    @abstractmethod
    def render_whole(self, block: Block) -> bytes:
        """Render a complete block, start to stop."""

    @abstractmethod
    def blocks_for_client(self, block: Block) -> list[Block]:
        """Return the block in a form that the client's API supports; an empty list and a finding if there is none."""

    @abstractmethod
    def is_valid_text(self, text: str) -> bool:
        """Return whether the API accepts this text when it is sent back."""

    # Shared.

    def render(self, events: Iterable[Event]) -> bytes:
        rendered: list[bytes] = []
        for event in self.order.reorder(events):
            if isinstance(event, TextDelta):
                rendered.append(self.render_delta(event.text) if self._started else self._first_text(event.text))
            elif isinstance(event, InputDelta):
                rendered.append(self._render_input(event.text))
            elif isinstance(event, ThinkingDelta):
                rendered.append(self.render_delta(event.text) if self._started else self._first_thinking(event.text))
            else:
                rendered += self.render_event(event)
        return b"".join(rendered)

    def open_run(self, delta: Delta) -> DeltaFormat | None:
        if delta.index != self.order.current:
            return None
        is_passed_on = self._started
        if isinstance(delta, InputDelta):
            is_passed_on = self._input_writer is not None and self._input_writer.passthrough
        return self.open_deltas() if is_passed_on else None

    def open_deltas(self) -> DeltaFormat:
        """Return the format of the deltas of the open block."""
        return DeltaFormat.from_function(self.render_delta)

    def render_block_start(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        self._open_block, self._started, self._held_text = block, False, TextBuffer()
        if isinstance(block, ToolCall):
            self._input_writer = _InputObjectWriter(block)
            yield self.begin_call(block)

    def render_block_end(self, index: int, block: Text | Thinking | ToolCall) -> Iterable[bytes]:
        match block:
            case Text():
                yield self._end_text(block)
            case Thinking():
                yield self._end_thinking(block)
            case ToolCall():
                yield self._end_call(block)

    def render_block(self, block: Block) -> Iterable[bytes]:
        return map(self.render_whole, self.blocks_for_client(block))

    def _first_text(self, text: str) -> bytes:
        self._held_text.append(text)
        return self._begin_held_text() if self.is_valid_text(text) else b""

    def _begin_held_text(self) -> bytes:
        if not isinstance(self._open_block, Text):
            return b""
        self._started = True
        text = self._held_text.text()
        start = self.begin_text(self._open_block)
        return start + self.render_delta(text) if text else start

    def _first_thinking(self, text: str) -> bytes:
        block = self._open_block
        if not isinstance(block, Thinking) or block.origin.provider != self.api:
            return b""
        self._started = True
        return self.begin_thinking(block) + self.render_delta(text)

    def _render_input(self, text: str) -> bytes:
        writer = self._input_writer
        if writer is not None and not writer.passthrough:
            text = writer.feed(text)
        return self.render_delta(text) if text else b""

    def _end_text(self, block: Text) -> bytes:
        start = b""
        if not self._started:
            # Same-API, an empty text block is kept too.
            if not (self.same_api and block.native is not None and block.native.api == self.api):
                return b""
            start = self._begin_held_text()
        return start + self.end_text(block) + self.render_block_stop()

    def _end_thinking(self, block: Thinking) -> bytes:
        start = b""
        if not self._started:
            # Same-API, reasoning found in the text is not the API's own.
            is_own = self.same_api and block.origin.provider == self.api
            if not is_own and not self.blocks_for_client(block):
                return b""
            if block.encrypted is not None:
                return self.render_encrypted(block)
            start = self.begin_thinking(self._open_block if isinstance(self._open_block, Thinking) else block)
        return start + self.end_thinking(block) + self.render_block_stop()

    def _end_call(self, call: ToolCall) -> bytes:
        self.has_calls = True
        self.has_broken_call = self.has_broken_call or call.broken
        rest = self._input_writer.finish(call, self.report) if self._input_writer is not None else ""
        return (self.render_delta(rest) if rest else b"") + self.render_block_stop()
