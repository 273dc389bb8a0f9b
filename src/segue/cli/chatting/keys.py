"""Key bindings of the chat, beyond those of a line editor."""

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

# For /help.
KEYS = {
    "Enter": "send",
    "Alt-Enter, Ctrl-J": "insert a new line",
    "Tab": "complete commands, models, conversation ids, paths after @",
    "Up, Down": "previous inputs",
    "Ctrl-T": "show or hide the last reasoning",
    "Ctrl-C": "cancel the turn, or clear the line; twice: exit",
    "Ctrl-D": "exit",
}
_AGAIN = "press Ctrl-C again to exit"


def bindings(terminal: Terminal, hands: Hands) -> KeyBindings:
    """The key bindings for a terminal and the handler of its input."""
    actions = _Keys(terminal, hands)
    keys = KeyBindings()
    asking = Condition(lambda: terminal.asks)
    keys.add("enter", filter=~asking)(actions.send)
    keys.add("enter", filter=asking)(actions.answer)
    keys.add("escape", "enter", filter=~asking)(actions.new_line)
    keys.add("c-j", filter=~asking)(actions.new_line)
    keys.add("c-c", eager=True)(actions.interrupt)
    keys.add(Keys.SIGINT)(actions.interrupt)
    keys.add("c-d", eager=True)(actions.leave)
    keys.add("c-t", eager=True)(actions.fold)
    keys.add("c-l")(actions.clear)
    terminal.draft.on_text_insert += actions.typed
    terminal.reply.on_text_insert += actions.typed
    return keys


class _Keys:
    """The actions of the keys."""

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
    """Accept the selected completion; returns whether there was one."""
    state = buffer.complete_state
    if state is None or state.current_completion is None:
        return False
    buffer.complete_state = None
    return True
