"""The protocols between a chat and its user interface."""

from __future__ import annotations

from typing import Protocol

from segue.cli.chat_ui.styles import Row
from segue.runtime.events import Event
from segue.runtime.tool_types import ApprovalRequest


class InputHandler(Protocol):
    """Handles the user's input; implemented by `Chat`."""

    def submit(self, text: str) -> None:
        """Handle a message or a command."""

    def paste(self, text: str) -> bool:
        """Attach a pasted file, given as its path; return whether it was one. Empty text is a picture to be read."""
        ...

    def interrupt(self) -> bool:
        """Handle Ctrl-C and return whether there was something to cancel."""
        ...

    def leave(self) -> None:
        """Exit the chat, as with Ctrl-D."""

    def cycle_mode(self) -> None:
        """Switch to the next permission mode."""

    async def wait_idle(self) -> None:
        """Wait until nothing is running."""


class ChatUI(Protocol):
    """A user interface for a chat."""

    @property
    def shows_details(self) -> bool:
        """Whether tool results and findings are shown."""
        ...

    @shows_details.setter
    def shows_details(self, value: bool) -> None: ...
    def width(self) -> int: ...
    def print_rows(self, rows: list[Row]) -> None: ...
    def on_event(self, event: Event) -> None: ...
    def last_reasoning(self) -> str:
        """Return the model's last reasoning."""
        ...

    def restore_input(self, text: str) -> None:
        """Put unsent text back into the input line."""

    def redraw(self) -> None: ...
    async def ask_approval(self, question: ApprovalRequest, *, again: bool = False) -> str | None:
        """Show an approval question and return the line typed after it was visible; None if it was withdrawn.

        With `again` the question is on the screen already.
        """
        ...

    def withdraw_question(self) -> None:
        """End the open approval question, if there is one, without an answer."""

    async def run(self, handler: InputHandler) -> None:
        """Run until `stop`."""

    def stop(self) -> None: ...
