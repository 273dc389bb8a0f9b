"""The keys of the chat, beside those of any line editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from segue.cli.chatting.surface import Hands
    from segue.cli.chatting.terminal import Terminal

__all__ = ["KEYS", "bindings"]

# As /help tells them.
KEYS = {
    "Enter": "send",
    "Alt-Enter, Ctrl-J": "a new line",
    "Tab": "complete commands, models, conversations, paths after @",
    "Up, Down": "what was typed before",
    "Ctrl-T": "show or fold the last thought",
    "Ctrl-C": "end the turn, or empty the line; again: leave",
    "Ctrl-D": "leave",
}
_AGAIN = "Ctrl-C again leaves"


def bindings(terminal: Terminal, hands: Hands) -> KeyBindings:
    """The keys of a terminal that is in somebody's hands."""
    does = _Keys(terminal, hands)
    keys = KeyBindings()
    asking = Condition(lambda: terminal.asks)
    keys.add("enter", filter=~asking)(does.send)
    keys.add("enter", filter=asking)(does.answer)
    keys.add("escape", "enter", filter=~asking)(does.new_line)
    keys.add("c-j", filter=~asking)(does.new_line)
    keys.add("c-c", eager=True)(does.interrupt)
    keys.add(Keys.SIGINT)(does.interrupt)
    keys.add("c-d", eager=True)(does.leave)
    keys.add("c-t", eager=True)(does.fold)
    keys.add("c-l")(does.clear)
    terminal.draft.on_text_insert += does.typed
    terminal.reply.on_text_insert += does.typed
    return keys


class _Keys:
    """What each key does."""

    def __init__(self, terminal: Terminal, hands: Hands) -> None:
        self._terminal = terminal
        self._hands = hands

    def send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _completed(buffer):
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif text := buffer.text.strip():
            buffer.append_to_history()
            buffer.reset()
            self._terminal.hint = ""
            self._hands.entered(text)

    def answer(self, event: KeyPressEvent) -> None:
        self._terminal.answered()

    def new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def interrupt(self, event: KeyPressEvent) -> None:
        if self._terminal.hint == _AGAIN:
            self._hands.left()
            return
        if not self._hands.interrupted():
            self._terminal.draft.reset()
        self._terminal.hint = _AGAIN

    def leave(self, event: KeyPressEvent) -> None:
        if self._terminal.asks or not self._terminal.draft.text:
            self._hands.left()
        else:
            self._terminal.draft.delete()

    def fold(self, event: KeyPressEvent) -> None:
        self._terminal.fold()

    def clear(self, event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    def typed(self, buffer: Buffer) -> None:
        self._terminal.hint = ""


def _completed(buffer: Buffer) -> bool:
    """Whether Enter took what was chosen in the menu."""
    state = buffer.complete_state
    if state is None or state.current_completion is None:
        return False
    buffer.complete_state = None
    return True
