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
    keys = KeyBindings()
    asking = Condition(lambda: terminal.asks)

    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _completed(buffer):
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text.strip()
        if text:
            buffer.append_to_history()
            buffer.reset()
            hands.entered(text)

    def interrupt(event: KeyPressEvent) -> None:
        again, terminal.hint = terminal.hint == _AGAIN, ""
        if again:
            hands.left()
            return
        ended = hands.interrupted()
        if not ended:
            terminal.draft.reset()
        terminal.hint = _AGAIN

    def leave(event: KeyPressEvent) -> None:
        if terminal.asks or not terminal.draft.text:
            hands.left()
        else:
            terminal.draft.delete()

    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def answer(event: KeyPressEvent) -> None:
        terminal.answered()

    def fold(event: KeyPressEvent) -> None:
        terminal.fold()

    def clear(event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    keys.add("enter", filter=~asking)(send)
    keys.add("enter", filter=asking)(answer)
    keys.add("escape", "enter", filter=~asking)(new_line)
    keys.add("c-j", filter=~asking)(new_line)
    keys.add("c-c", eager=True)(interrupt)
    keys.add(Keys.SIGINT)(interrupt)
    keys.add("c-d", eager=True)(leave)
    keys.add("c-t", eager=True)(fold)
    keys.add("c-l")(clear)

    def typed(buffer: Buffer) -> None:
        terminal.hint = ""

    terminal.draft.on_text_insert += typed
    terminal.reply.on_text_insert += typed
    return keys


def _completed(buffer: Buffer) -> bool:
    """Whether Enter took what was chosen in the menu."""
    state = buffer.complete_state
    if state is None or state.current_completion is None:
        return False
    buffer.complete_state = None
    return True
