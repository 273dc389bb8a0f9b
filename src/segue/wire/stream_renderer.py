"""The stream renderer of all APIs (events in, bytes out), and the ordering of interleaved blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from segue.wire.base import Projection
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

__all__ = ["InOrder", "StreamRenderer"]


class StreamRenderer(ABC):
    """Renders the events of one reply as a stream of bytes. `model` is used where the reply names none."""

    def __init__(self, context: Projection, model: str | None = None) -> None:
        self.ids = context.ids
        self.report = context.report
        self.projection = context
        self.model = model or ""

    @abstractmethod
    def render(self, events: Iterable[Event]) -> bytes:
        """The bytes that these events add to the stream; the last event adds its end."""


_GROWING = (TextDelta, InputDelta, ThinkingDelta)
_APART = (Opened, UsageTold, Finished, Failed)


class InOrder:
    """Orders events for an API whose blocks follow one another: events of later blocks wait until the open one ends."""

    def __init__(self) -> None:
        self.open: int | None = None
        """Index of the open block."""
        self._waiting: dict[int, list[Event]] = {}

    def sorted(self, events: Iterable[Event]) -> list[Event]:
        ordered: list[Event] = []
        for event in events:
            if (isinstance(event, _GROWING) and event.index == self.open) or isinstance(event, _APART):
                ordered.append(event)
            elif self.open is None or self.open == event.index:
                self._pass(event, ordered)
            else:
                self._waiting.setdefault(event.index, []).append(event)
        return ordered

    def _pass(self, event: Start | TextDelta | ThinkingDelta | InputDelta | End | Whole, ordered: list[Event]) -> None:
        ordered.append(event)
        if isinstance(event, Start):
            self.open = event.index
        elif isinstance(event, End):
            self.open = None
            while self.open is None and self._waiting:
                index = min(self._waiting)
                queued = self._waiting.pop(index)
                ordered += queued
                if not isinstance(queued[-1], End | Whole):
                    self.open = index
