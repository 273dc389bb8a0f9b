"""What a page shows of a stored conversation."""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import Message
from segue.canonical.request import Request
from segue.store.base import Summary, iso
from segue.store.timeline import Timeline

__all__ = ["Page", "page_of"]

_LONGEST = 80


class Page(Struct, frozen=True):
    """A conversation as it is told now. `facts` are names and values for its head."""

    title: str
    facts: tuple[tuple[str, str], ...]
    request: Request
    messages: tuple[Message, ...]


def page_of(summary: Summary, timeline: Timeline) -> Page:
    """The page of a conversation that was read whole."""
    messages = timeline.chat.messages
    title = summary.title or (summary.opening or "")[:_LONGEST] or f"Conversation {summary.id}"
    facts = [
        ("conversation", summary.id),
        ("begun", day(summary.created)),
        ("last written", day(summary.updated)),
        ("model", " · ".join(filter(None, [timeline.target, timeline.model])) or "-"),
        ("messages", _count(len(messages), summary.messages)),
    ]
    if timeline.compressions:
        facts.append(("compressed", f"{len(timeline.compressions)} ×"))
    return Page(title, tuple(facts), timeline.chat.request, messages)


def _count(now: int, written: int) -> str:
    """How many there are, and how many were ever written where that is another number."""
    return f"{now:,}" if now == written else f"{now:,} of {written:,} that were written"


def day(at: int) -> str:
    """A store's time for a reader."""
    return iso(at)[:16].replace("T", " ") + " UTC"
