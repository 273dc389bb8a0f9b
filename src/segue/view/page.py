"""The content of a page about a stored conversation, shared by HTML and Markdown.

The messages are read in segments while the page is rendered; a call and its results are in the same segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from segue.canonical.blocks import Message
from segue.canonical.request import Request
from segue.store.base import ConversationStore, ConversationSummary, format_time
from segue.store.segments import read_segments
from segue.view.replies import Cost, ReplyNotes

_MAX_TITLE = 80


class Page(Struct, frozen=True):
    """A conversation in its current state. `facts` are names and values for the header."""

    title: str
    facts: tuple[tuple[str, str], ...]
    request: Request
    segments: Iterable[Sequence[Message]]
    notes: ReplyNotes = field(default_factory=ReplyNotes)


def build_page(store: ConversationStore, summary: ConversationSummary, cost: Cost | None = None) -> Page:
    """Build the page of a stored conversation. With `cost`, the price of each reply is shown."""
    notes = ReplyNotes(cost)
    conversation = read_segments(store, summary.id, observe=notes.observe)
    replayed = conversation.state
    title = summary.title or (summary.opening or "")[:_MAX_TITLE] or f"Conversation {summary.id}"
    facts = [
        ("conversation", summary.id),
        ("started", _format_minute(summary.created)),
        ("last updated", _format_minute(summary.updated)),
        ("model", " → ".join(notes.models) or " · ".join(filter(None, [replayed.target, replayed.model])) or "-"),
        ("messages", _format_message_count(conversation.facts.messages, summary.messages)),
    ]
    if total := str(notes.total()):
        facts.append(("usage", total))
    if replayed.compressions:
        facts.append(("compressed", f"{len(replayed.compressions)} ×"))
    return Page(title, tuple(facts), replayed.chat.state.request, conversation.segments(), notes)


def _format_message_count(now: int, stored: int) -> str:
    """Return the current number of messages, and the number stored where that differs."""
    return f"{now:,}" if now == stored else f"{now:,} of {stored:,} stored"


def _format_minute(at: int) -> str:
    """Format a store timestamp (microseconds) as UTC."""
    return format_time(at)[:16].replace("T", " ") + " UTC"
