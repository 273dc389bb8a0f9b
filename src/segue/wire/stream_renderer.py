"""What renderers of all APIs have in common: events in and bytes out, in the order that an API tells blocks in."""

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
    """Events of one reply to the bytes of an API's stream. `model` is said where the reply names none."""

    def __init__(self, projection: Projection, model: str | None = None) -> None:
        self.ids = projection.ids
        self.report = projection.report
        self.projection = projection
        self.model = model or ""

    @abstractmethod
    def render(self, events: Iterable[Event]) -> bytes:
        """The bytes that these events add to the stream; the last event adds its end."""


_GROWING = (TextDelta, InputDelta, ThinkingDelta)
_APART = (Opened, UsageTold, Finished, Failed)


class InOrder:
    """Events of a stream in which one block follows another: those of later blocks wait until the first has ended."""

    def __init__(self) -> None:
        self.open: int | None = None
        """The block that is told now."""
        self._waiting: dict[int, list[Event]] = {}

    def sorted(self, events: Iterable[Event]) -> list[Event]:
        told: list[Event] = []
        for event in events:
            if (isinstance(event, _GROWING) and event.index == self.open) or isinstance(event, _APART):
                told.append(event)
            elif self.open is None or self.open == event.index:
                self._pass(event, told)
            else:
                self._waiting.setdefault(event.index, []).append(event)
        return told

    def _pass(self, event: Start | TextDelta | ThinkingDelta | InputDelta | End | Whole, told: list[Event]) -> None:
        told.append(event)
        if isinstance(event, Start):
            self.open = event.index
        elif isinstance(event, End):
            self.open = None
            while self.open is None and self._waiting:
                index = min(self._waiting)
                held = self._waiting.pop(index)
                told += held
                if not isinstance(held[-1], End | Whole):
                    self.open = index
