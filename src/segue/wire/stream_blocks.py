"""Events to a stream in which numbered blocks follow one another, each with a beginning, deltas and an end.

What a client can't be told is left out as it is of a reply that goes out at once. A block of text begins when it says
something, and reasoning when it is known what it is.
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
    """`index` is the number of the block that is being told; `around` what the API itself said around the reply."""

    api: str
    """The API whose stream this is, which is also who made the reasoning that may be told."""

    def __init__(self, projection: Projection, model: str | None) -> None:
        super().__init__(projection, model)
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

    # What an API's own renderer does.

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
        """More of the block that was begun last."""

    @abstractmethod
    def end_text(self, block: Text) -> bytes:
        """What is told of a text behind its words."""

    @abstractmethod
    def end_thinking(self, block: Thinking) -> bytes: ...

    @abstractmethod
    def stop(self) -> bytes: ...

    @abstractmethod
    def sealed(self, block: Thinking) -> bytes:
        """Reasoning that is sealed, from its beginning to its end."""

    @abstractmethod
    def whole(self, block: Block) -> bytes:
        """A block that a client can be told, from its beginning to its end."""

    @abstractmethod
    def finished(self, event: Finished) -> bytes: ...

    @abstractmethod
    def error(self, error: ApiError) -> bytes: ...

    @abstractmethod
    def for_client(self, block: Block) -> list[Block]:
        """The block as a client can be told it, or nothing and a line in the report."""

    @abstractmethod
    def says(self, text: str) -> bool:
        """Whether a text is one that the API takes back."""

    # What all of them share.

    def render(self, events: Iterable[Event]) -> bytes:
        told: list[bytes] = []
        for event in self._order.sorted(events):
            if isinstance(event, TextDelta):
                told.append(self.delta(event.text) if self._writing else self._first_words(event.text))
            elif isinstance(event, InputDelta):
                told.append(self._input(event.text))
            elif isinstance(event, ThinkingDelta):
                told.append(self.delta(event.text) if self._writing else self._first_thought(event.text))
            else:
                told.append(self._rest(event))
        return b"".join(told)

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
        words = self._held.text()
        begun = self.begin_text(self._begun)
        return begun + self.delta(words) if words else begun

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
        begun = b""
        if not self._writing:
            # What the API itself said goes out even where it says nothing.
            if not (self.home and block.native is not None and block.native.api == self.api):
                return b""
            begun = self._words()
        return begun + self.end_text(block) + self.stop()

    def _end_thinking(self, block: Thinking) -> bytes:
        begun = b""
        if not self._writing:
            if not self.home and not self.for_client(block):
                return b""
            if block.sealed is not None:
                return self.sealed(block)
            begun = self.begin_thinking(self._begun if isinstance(self._begun, Thinking) else block)
        return begun + self.end_thinking(block) + self.stop()

    def _end_call(self, call: ToolCall) -> bytes:
        self.called = True
        self.broken = self.broken or call.broken
        rest = self._pieces.rest(call, self.report) if self._pieces is not None else ""
        return (self.delta(rest) if rest else b"") + self.stop()
