"""What a chat needs of the place where it is held, and what that place needs of the chat."""

from __future__ import annotations

from typing import Protocol

from segue.cli.chatting.looks import Row
from segue.runtime.events import Event
from segue.runtime.tooling import Question

__all__ = ["Hands", "Surface"]


class Hands(Protocol):
    """What somebody does."""

    def entered(self, text: str) -> None:
        """A message or a command."""

    def interrupted(self) -> bool:
        """Ctrl-C: whether there was something to end."""
        ...

    def left(self) -> None:
        """Ctrl-D."""

    async def idle(self) -> None:
        """Until nothing is under way."""


class Surface(Protocol):
    """Where a chat is held."""

    @property
    def full(self) -> bool:
        """Whether results and decisions are shown."""
        ...

    @full.setter
    def full(self, value: bool) -> None: ...
    def width(self) -> int: ...
    def say(self, rows: list[Row]) -> None: ...
    def hear(self, event: Event) -> None: ...
    def thought(self) -> str:
        """What the model thought last."""
        ...

    def refill(self, text: str) -> None:
        """Gives back what was typed and not sent."""

    def redraw(self) -> None: ...
    async def ask(self, question: Question) -> str:
        """The line that somebody typed after the question was seen."""
        ...

    async def run(self, hands: Hands) -> None:
        """Until `stop`."""

    def stop(self) -> None: ...
