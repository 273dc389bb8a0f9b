"""Renders streams of numbered blocks in sequence, each with a start, deltas and a stop (Anthropic, Bedrock).

Blocks that the client's API cannot represent are dropped as in complete replies. A text block starts with its first
non-empty text, a reasoning block when its kind is known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.request import Usage
from segue.wire.base import ApiError, RenderContext
from segue.wire.events import (
    BlockEnd,
    BlockStart,
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
from segue.wire.stream_deltas import InputObjectWriter, TextBuffer
from segue.wire.stream_renderer import BlockOrder, StreamRenderer

__all__ = ["BlockRenderer"]


class BlockRenderer(StreamRenderer):
    """`index` is the number of the open block; `response_fields` the API's own fields of the reply."""

    api: str
    """The API of the stream; only reasoning from the same API is rendered."""

    def __init__(self, context: RenderContext, model: str | None) -> None:
        super().__init__(context, model)
        self._order = BlockOrder()
        self._open_block: Text | Thinking | ToolCall | None = None
        self._started = False
        self._held_text = TextBuffer()
        self._input_writer: InputObjectWriter | None = None
        self.block_index = 0
        self.same_api = False
        self.response_fields: Mapping[str, Any] = {}
        self.has_calls = False
        self.has_broken_call = False
        self.usage: Usage | None = None

    # Implemented by each API's renderer.

    @abstractmethod
    def render_reply_start(self, event: ReplyStart) -> bytes: ...

    @abstractmethod
    def begin_text(self, block: Text) -> bytes: ...

    @abstractmethod
    def begin_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def begin_call(self, call: ToolCall) -> bytes: ...

    @abstractmethod
    def render_delta(self, text: str) -> bytes:
        """A delta of the open block."""

    @abstractmethod
    def end_text(self, block: Text) -> bytes:
        """The deltas after the text of a text block (citations)."""

    @abstractmethod
    def end_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def render_block_stop(self) -> bytes: ...

    @abstractmethod
    def render_encrypted(self, block: Thinking) -> bytes:
        """A complete block of encrypted reasoning."""

    @abstractmethod
    def render_whole(self, block: Block) -> bytes:
        """A complete block, start to stop."""

    @abstractmethod
    def render_finish(self, event: Finished) -> bytes: ...

    @abstractmethod
    def render_error(self, error: ApiError) -> bytes: ...

    @abstractmethod
    def blocks_for_client(self, block: Block) -> list[Block]:
        """The block in a form that the client's API supports; an empty list and a finding if there is none."""

    @abstractmethod
    def is_valid_text(self, text: str) -> bool:
        """Whether the API accepts this text when it is sent back."""

    # Shared.

    def render(self, events: Iterable[Event]) -> bytes:
        rendered: list[bytes] = []
        for event in self._order.reorder(events):
            if isinstance(event, TextDelta):
                rendered.append(self.render_delta(event.text) if self._started else self._first_text(event.text))
            elif isinstance(event, InputDelta):
                rendered.append(self._render_input(event.text))
            elif isinstance(event, ThinkingDelta):
                rendered.append(self.render_delta(event.text) if self._started else self._first_thinking(event.text))
            else:
                rendered.append(self._render_event(event))
        return b"".join(rendered)

    def _render_event(self, event: Event) -> bytes:
        match event:
            case ReplyStart():
                native = event.native
                self.same_api = native is not None and native.api == self.api
                self.response_fields = native.fragment if native is not None and self.same_api else {}
                return self.render_reply_start(event)
            case BlockStart():
                return self._start(event.block)
            case BlockEnd(block=Text() as block):
                return self._end_text(block)
            case BlockEnd(block=Thinking() as block):
                return self._end_thinking(block)
            case BlockEnd(block=ToolCall() as block):
                return self._end_call(block)
            case WholeBlock():
                return b"".join(map(self.render_whole, self.blocks_for_client(event.block)))
            case UsageUpdate():
                self.usage = event.usage
                return b""
            case Finished():
                return self.render_finish(event)
            case Failed():
                return self.render_error(event.error)
            case _:
                return b""

    def _start(self, block: Text | Thinking | ToolCall) -> bytes:
        self._open_block, self._started, self._held_text = block, False, TextBuffer()
        if not isinstance(block, ToolCall):
            return b""
        self._input_writer = InputObjectWriter(block)
        return self.begin_call(block)

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
            if not self.same_api and not self.blocks_for_client(block):
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
