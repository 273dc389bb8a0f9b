"""The last exchange of a conversation that is continued, as it looked in the chat."""

from __future__ import annotations

from segue.canonical.blocks import Message, Text, ToolCall, state_of
from segue.cli.chatting.figures import counted
from segue.cli.chatting.looks import Row, cut
from segue.cli.chatting.prose import Prose
from segue.cli.chatting.view import user_rows
from segue.view.clean import harmless, harmless_line
from segue.view.words import answers_of, argument_text

__all__ = ["recap"]

_MARKS = {"complete": ("✓", "class:ok"), "error": ("✗", "class:bad")}
_OTHER = ("–", "class:warn")
_ROWS = 40


def recap(messages: tuple[Message, ...], width: int) -> list[Row]:
    """Rows from the last user message on; a long exchange is cut at its start."""
    start = next((at for at in reversed(range(len(messages))) if messages[at].speaker == "human"), None)
    if start is None:
        return []
    rows: list[Row] = []
    index = answers_of(messages)
    for message in messages[start:]:
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                rows += [[], *_words(message.speaker, block.text, width), []]
            elif isinstance(block, ToolCall):
                results = index.of(block)
                mark, style = _MARKS.get(state_of(results[-1]) if results else "pending", _OTHER)
                name = harmless_line(block.name)
                about = cut(harmless_line(argument_text(block)), max(4, width - len(name) - 8))
                rows.append([("", "  "), (style, mark), ("class:tool", f" {name}"), ("class:dim", f"  {about}")])
    hidden = len(rows) - _ROWS
    if hidden > 0:
        rows = [[("class:dim", f"  … {counted(hidden, 'earlier row')} not shown")], *rows[hidden:]]
    return [*rows, []]


def _words(speaker: str, text: str, width: int) -> list[Row]:
    if speaker == "human":
        return user_rows(text, width)
    formatter = Prose(lambda: width)
    return formatter.feed(harmless(text.strip("\n"))) + formatter.close()
