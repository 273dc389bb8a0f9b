"""The content of a page about a stored conversation, shared by HTML and Markdown."""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import Message
from segue.canonical.request import Request
from segue.store.base import Summary, iso
from segue.store.timeline import Timeline

__all__ = ["Page", "page_of"]

_LONGEST = 80


class Page(Struct, frozen=True):
    """A conversation in its current state. `facts` are names and values for the header."""

    title: str
    facts: tuple[tuple[str, str], ...]
    request: Request
    messages: tuple[Message, ...]


def page_of(summary: Summary, timeline: Timeline) -> Page:
    """Build the page from a summary and the replayed conversation."""
    messages = timeline.chat.messages
    title = summary.title or (summary.opening or "")[:_LONGEST] or f"Conversation {summary.id}"
    facts = [
        ("conversation", summary.id),
        ("started", day(summary.created)),
        ("last updated", day(summary.updated)),
        ("model", " · ".join(filter(None, [timeline.target, timeline.model])) or "-"),
        ("messages", _count(len(messages), summary.messages)),
    ]
    if timeline.compressions:
        facts.append(("compressed", f"{len(timeline.compressions)} ×"))
    return Page(title, tuple(facts), timeline.chat.request, messages)


def _count(now: int, stored: int) -> str:
    """The current number of messages, and the number stored where that differs."""
    return f"{now:,}" if now == stored else f"{now:,} of {stored:,} stored"


def day(at: int) -> str:
    """Format a store timestamp (microseconds) as UTC."""
    return iso(at)[:16].replace("T", " ") + " UTC"
