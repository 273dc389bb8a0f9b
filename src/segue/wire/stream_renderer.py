"""The base class of all stream renderers (events in, bytes out), and the ordering of interleaved blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from segue.wire.base import RenderContext
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

__all__ = ["BlockOrder", "StreamRenderer"]


class StreamRenderer(ABC):
    """Renders the events of one reply as a stream of bytes. `model` is used where the reply names none."""

    def __init__(self, context: RenderContext, model: str | None = None) -> None:
        self.ids = context.ids
        self.report = context.report
        self.context = context
        self.model = model or ""

    @abstractmethod
    def render(self, events: Iterable[Event]) -> bytes:
        """The bytes of these events; those of the last event include the end of the stream."""


_DELTAS = (TextDelta, InputDelta, ThinkingDelta)
_REPLY_EVENTS = (ReplyStart, UsageUpdate, Finished, Failed)


class BlockOrder:
    """Orders events for an API whose blocks follow one another: events of later blocks wait until the open one ends."""

    def __init__(self) -> None:
        self.current: int | None = None
        """Index of the open block."""
        self._waiting: dict[int, list[Event]] = {}

    def reorder(self, events: Iterable[Event]) -> list[Event]:
        ordered: list[Event] = []
        for event in events:
            if (isinstance(event, _DELTAS) and event.index == self.current) or isinstance(event, _REPLY_EVENTS):
                ordered.append(event)
            elif self.current is None or self.current == event.index:
                self._emit(event, ordered)
            else:
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
                index = min(self._waiting)
                queued = self._waiting.pop(index)
                ordered += queued
                if not isinstance(queued[-1], BlockEnd | WholeBlock):
                    self.current = index
