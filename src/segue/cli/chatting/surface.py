"""The protocols between a chat and its user interface."""

from __future__ import annotations

from typing import Protocol

from segue.cli.chatting.looks import Row
from segue.runtime.events import Event
from segue.runtime.tooling import Question

__all__ = ["Hands", "Surface"]


class Hands(Protocol):
    """Handles the user's input; implemented by `Chat`."""

    def entered(self, text: str) -> None:
        """Handle a message or a command."""

    def interrupted(self) -> bool:
        """Ctrl-C; returns whether there was something to cancel."""
        ...

    def left(self) -> None:
        """Exit the chat, as with Ctrl-D."""

    async def idle(self) -> None:
        """Wait until nothing is running."""


class Surface(Protocol):
    """A user interface for a chat."""

    @property
    def full(self) -> bool:
        """Whether tool results and findings are shown."""
        ...

    @full.setter
    def full(self, value: bool) -> None: ...
    def width(self) -> int: ...
    def say(self, rows: list[Row]) -> None: ...
    def hear(self, event: Event) -> None: ...
    def thought(self) -> str:
        """The model's last reasoning."""
        ...

    def refill(self, text: str) -> None:
        """Put unsent text back into the input line."""

    def redraw(self) -> None: ...
    async def ask(self, question: Question) -> str:
        """Show an approval question and return the line typed after it was visible."""
        ...

    async def run(self, hands: Hands) -> None:
        """Run until `stop`."""

    def stop(self) -> None: ...
