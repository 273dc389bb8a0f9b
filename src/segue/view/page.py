"""The content of a page about a stored conversation, shared by HTML and Markdown.

The messages are read in segments while the page is rendered; a call and its results are in the same segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from segue.canonical.blocks import Message
from segue.canonical.request import Request
from segue.store.base import ConversationSummary, format_time
from segue.store.segments import SegmentedConversation

_MAX_TITLE = 80


class Page(Struct, frozen=True):
    """A conversation in its current state. `facts` are names and values for the header."""

    title: str
    facts: tuple[tuple[str, str], ...]
    request: Request
    segments: Iterable[Sequence[Message]]


def build_page(summary: ConversationSummary, conversation: SegmentedConversation) -> Page:
    """Build the page from a summary and the conversation in segments."""
    replayed = conversation.state
    title = summary.title or (summary.opening or "")[:_MAX_TITLE] or f"Conversation {summary.id}"
    facts = [
        ("conversation", summary.id),
        ("started", _format_minute(summary.created)),
        ("last updated", _format_minute(summary.updated)),
        ("model", " · ".join(filter(None, [replayed.target, replayed.model])) or "-"),
        ("messages", _format_message_count(conversation.facts.messages, summary.messages)),
    ]
    if replayed.compressions:
        facts.append(("compressed", f"{len(replayed.compressions)} ×"))
    return Page(title, tuple(facts), replayed.chat.state.request, conversation.segments())


def _format_message_count(now: int, stored: int) -> str:
    """Return the current number of messages, and the number stored where that differs."""
    return f"{now:,}" if now == stored else f"{now:,} of {stored:,} stored"


def _format_minute(at: int) -> str:
    """Format a store timestamp (microseconds) as UTC."""
    return format_time(at)[:16].replace("T", " ") + " UTC"
