"""Key bindings of the chat, beyond those of a line editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from segue.cli.chat_ui.terminal_ui import TerminalUI
    from segue.cli.chat_ui.ui import InputHandler

__all__ = ["KEY_HELP", "make_bindings"]

# For /help.
KEY_HELP = {
    "Enter": "send",
    "Alt-Enter, Ctrl-J": "insert a new line",
    "Tab": "complete commands, models, conversation ids, paths after @",
    "Up, Down": "previous inputs",
    "Ctrl-T": "show or hide the last reasoning",
    "Ctrl-C": "cancel the turn, or clear the line; twice: exit",
    "Ctrl-D": "exit",
}
_LEAVE_HINT = "press Ctrl-C again to exit"


def make_bindings(terminal: TerminalUI, handler: InputHandler) -> KeyBindings:
    """The key bindings for a terminal and the handler of its input."""
    actions = _KeyActions(terminal, handler)
    keys = KeyBindings()
    asking = Condition(lambda: terminal.is_asking)
    keys.add("enter", filter=~asking)(actions.send)
    keys.add("enter", filter=asking)(actions.submit_answer)
    keys.add("escape", "enter", filter=~asking)(actions.new_line)
    keys.add("c-j", filter=~asking)(actions.new_line)
    keys.add("c-c", eager=True)(actions.interrupt)
    keys.add(Keys.SIGINT)(actions.interrupt)
    keys.add("c-d", eager=True)(actions.leave)
    keys.add("c-t", eager=True)(actions.toggle_reasoning)
    keys.add("c-l")(actions.clear)
    terminal.draft.on_text_insert += actions.clear_hint
    terminal.reply.on_text_insert += actions.clear_hint
    return keys


class _KeyActions:
    """The actions of the keys."""

    def __init__(self, terminal: TerminalUI, handler: InputHandler) -> None:
        self._terminal = terminal
        self._handler = handler

    def send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _accept_completion(buffer):
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif text := buffer.text.strip():
            buffer.append_to_history()
            buffer.reset()
            self._terminal.hint = ""
            self._handler.submit(text)

    def submit_answer(self, event: KeyPressEvent) -> None:
        self._terminal.submit_answer()

    def new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def interrupt(self, event: KeyPressEvent) -> None:
        if self._terminal.hint == _LEAVE_HINT:
            self._handler.leave()
            return
        if not self._handler.interrupt():
            self._terminal.draft.reset()
        self._terminal.hint = _LEAVE_HINT

    def leave(self, event: KeyPressEvent) -> None:
        if self._terminal.is_asking or not self._terminal.draft.text:
            self._handler.leave()
        else:
            self._terminal.draft.delete()

    def toggle_reasoning(self, event: KeyPressEvent) -> None:
        self._terminal.toggle_reasoning()

    def clear(self, event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    def clear_hint(self, buffer: Buffer) -> None:
        self._terminal.hint = ""


def _accept_completion(buffer: Buffer) -> bool:
    """Accept the selected completion; returns whether there was one."""
    state = buffer.complete_state
    if state is None or state.current_completion is None:
        return False
    buffer.complete_state = None
    return True
