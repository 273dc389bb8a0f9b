"""Renders streams of numbered blocks in sequence, each with a start, deltas and a stop (Anthropic, Bedrock).

Blocks that the client's API has no form for are dropped as in complete replies. A text block starts with its first
non-empty text, a reasoning block when its kind is known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.request import Usage
from segue.wire.base import ApiError, Projection
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    Whole,
)
from segue.wire.stream_pieces import GrowingText, InputPieces
from segue.wire.stream_renderer import InOrder, StreamRenderer

__all__ = ["BlockRenderer"]


class BlockRenderer(StreamRenderer):
    """`index` is the number of the open block; `response_fields` the API's own fields of the reply."""

    api: str
    """The API of the stream; only reasoning from the same API is rendered."""

    def __init__(self, context: Projection, model: str | None) -> None:
        super().__init__(context, model)
        self._order = InOrder()
        self._begun: Text | Thinking | ToolCall | None = None
        self._writing = False
        self._held = GrowingText()
        self._pieces: InputPieces | None = None
        self.index = 0
        self.home = False
        self.around: Mapping[str, Any] = {}
        self.called = False
        self.broken = False
        self.usage: Usage | None = None

    # Implemented by each API's renderer.

    @abstractmethod
    def opened(self, event: Opened) -> bytes: ...

    @abstractmethod
    def begin_text(self, block: Text) -> bytes: ...

    @abstractmethod
    def begin_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def begin_call(self, call: ToolCall) -> bytes: ...

    @abstractmethod
    def delta(self, text: str) -> bytes:
        """A delta of the open block."""

    @abstractmethod
    def end_text(self, block: Text) -> bytes:
        """What follows the text in a text block (citations)."""

    @abstractmethod
    def end_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def stop(self) -> bytes: ...

    @abstractmethod
    def sealed(self, block: Thinking) -> bytes:
        """A complete block of encrypted reasoning."""

    @abstractmethod
    def whole(self, block: Block) -> bytes:
        """A complete block, start to stop."""

    @abstractmethod
    def finished(self, event: Finished) -> bytes: ...

    @abstractmethod
    def error(self, error: ApiError) -> bytes: ...

    @abstractmethod
    def for_client(self, block: Block) -> list[Block]:
        """The block in a form that the client's API has, or nothing and a finding."""

    @abstractmethod
    def says(self, text: str) -> bool:
        """Whether the API accepts this text when it is sent back."""

    # Shared.

    def render(self, events: Iterable[Event]) -> bytes:
        rendered: list[bytes] = []
        for event in self._order.sorted(events):
            if isinstance(event, TextDelta):
                rendered.append(self.delta(event.text) if self._writing else self._first_words(event.text))
            elif isinstance(event, InputDelta):
                rendered.append(self._input(event.text))
            elif isinstance(event, ThinkingDelta):
                rendered.append(self.delta(event.text) if self._writing else self._first_thought(event.text))
            else:
                rendered.append(self._rest(event))
        return b"".join(rendered)

    def _rest(self, event: Event) -> bytes:
        match event:
            case Opened():
                native = event.native
                self.home = native is not None and native.api == self.api
                self.around = native.fragment if native is not None and self.home else {}
                return self.opened(event)
            case Start():
                return self._start(event.block)
            case End(block=Text() as block):
                return self._end_text(block)
            case End(block=Thinking() as block):
                return self._end_thinking(block)
            case End(block=ToolCall() as block):
                return self._end_call(block)
            case Whole():
                return b"".join(map(self.whole, self.for_client(event.block)))
            case UsageTold():
                self.usage = event.usage
                return b""
            case Finished():
                return self.finished(event)
            case Failed():
                return self.error(event.error)
            case _:
                return b""

    def _start(self, block: Text | Thinking | ToolCall) -> bytes:
        self._begun, self._writing, self._held = block, False, GrowingText()
        if not isinstance(block, ToolCall):
            return b""
        self._pieces = InputPieces(block)
        return self.begin_call(block)

    def _first_words(self, text: str) -> bytes:
        self._held.append(text)
        return self._words() if self.says(text) else b""

    def _words(self) -> bytes:
        if not isinstance(self._begun, Text):
            return b""
        self._writing = True
        text = self._held.text()
        start = self.begin_text(self._begun)
        return start + self.delta(text) if text else start

    def _first_thought(self, text: str) -> bytes:
        block = self._begun
        if not isinstance(block, Thinking) or block.origin.provider != self.api:
            return b""
        self._writing = True
        return self.begin_thinking(block) + self.delta(text)

    def _input(self, text: str) -> bytes:
        pieces = self._pieces
        if pieces is not None and not pieces.through:
            text = pieces.more(text)
        return self.delta(text) if text else b""

    def _end_text(self, block: Text) -> bytes:
        start = b""
        if not self._writing:
            # Same-API, also an empty text block is kept.
            if not (self.home and block.native is not None and block.native.api == self.api):
                return b""
            start = self._words()
        return start + self.end_text(block) + self.stop()

    def _end_thinking(self, block: Thinking) -> bytes:
        start = b""
        if not self._writing:
            if not self.home and not self.for_client(block):
                return b""
            if block.sealed is not None:
                return self.sealed(block)
            start = self.begin_thinking(self._begun if isinstance(self._begun, Thinking) else block)
        return start + self.end_thinking(block) + self.stop()

    def _end_call(self, call: ToolCall) -> bytes:
        self.called = True
        self.broken = self.broken or call.broken
        rest = self._pieces.rest(call, self.report) if self._pieces is not None else ""
        return (self.delta(rest) if rest else b"") + self.stop()
