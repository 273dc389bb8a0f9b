"""Formats the last exchange of a conversation that is continued, as the chat showed it."""

from __future__ import annotations

from segue.canonical.blocks import Message, Text, ToolCall, state_of
from segue.cli.chat_ui.event_view import format_user_message
from segue.cli.chat_ui.formatter import MarkdownFormatter
from segue.cli.chat_ui.number_format import format_count
from segue.cli.chat_ui.styles import Row, truncate
from segue.view.format import format_arguments, index_results
from segue.view.sanitize import sanitize, sanitize_line

__all__ = ["format_recap"]

_MARKS = {"complete": ("✓", "class:ok"), "error": ("✗", "class:bad")}
_OTHER_MARK = ("–", "class:warn")
_MAX_ROWS = 40


def format_recap(messages: tuple[Message, ...], width: int) -> list[Row]:
    """Rows from the last user message on; a long exchange is cut at its start."""
    start = next((at for at in reversed(range(len(messages))) if messages[at].speaker == "human"), None)
    if start is None:
        return []
    rows: list[Row] = []
    index = index_results(messages)
    for message in messages[start:]:
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                rows += [[], *_text_rows(message.speaker, block.text, width), []]
            elif isinstance(block, ToolCall):
                results = index.results_of(block)
                mark, style = _MARKS.get(state_of(results[-1]) if results else "pending", _OTHER_MARK)
                name = sanitize_line(block.name)
                about = truncate(sanitize_line(format_arguments(block)), max(4, width - len(name) - 8))
                rows.append([("", "  "), (style, mark), ("class:tool", f" {name}"), ("class:dim", f"  {about}")])
    hidden = len(rows) - _MAX_ROWS
    if hidden > 0:
        rows = [[("class:dim", f"  … {format_count(hidden, 'earlier row')} not shown")], *rows[hidden:]]
    return [*rows, []]


def _text_rows(speaker: str, text: str, width: int) -> list[Row]:
    if speaker == "human":
        return format_user_message(text, width)
    formatter = MarkdownFormatter(lambda: width)
    return formatter.feed(sanitize(text.strip("\n"))) + formatter.close()
