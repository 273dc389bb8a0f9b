"""Events to the conversation that they tell of: the same ids, turn keys and rendered bytes, in any process."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from segue.canonical.history import History
from segue.canonical.request import Request
from segue.conversation import Conversation
from segue.errors import InputError
from segue.store.base import Record
from segue.store.events import (
    Broke,
    Cancelled,
    Completed,
    Compressed,
    Opened,
    Rewound,
    Said,
    Sent,
    Switched,
    Titled,
    Undone,
)

__all__ = ["Timeline", "replayed"]

_LIVE = re.compile(r"turn-(\d+)")


class Timeline(Struct):
    """A conversation as its events tell it. `turns` has the number of the last event of each turn."""

    chat: Conversation
    seq: int = 0
    title: str | None = None
    target: str | None = None
    model: str | None = None
    compressions: list[int] = []
    """The numbers of the compressions that count, the latest last."""
    turns: dict[str, int] = {}
    broken: int = 0
    """How many replies broke off."""


def replayed(records: Iterable[Record]) -> Timeline:
    """Plays all events of a conversation, in their order."""
    told = list(records)
    undone = {record.event.seq for record in told if isinstance(record.event, Undone)}
    history = History()
    made = Timeline(Conversation.resumed(Request(()), history))
    for record in told:
        made.seq = record.seq
        if record.seq not in undone:
            _play(record, made, history)
    return made


def _play(record: Record, made: Timeline, history: History) -> None:
    match record.event:
        case Opened() as event:
            made.chat = Conversation.resumed(event.request, history)
        case Said(message) | Completed(message) | Cancelled(message):
            history.add(message)
            if message.turn_key is not None:
                made.turns[message.turn_key] = record.seq
                live = _LIVE.fullmatch(message.turn_key)
                history.turns = max(history.turns, int(live[1]) if live else 0)
        case Sent() as event:
            history.mark_sent()
            made.target, made.model = event.target or made.target, event.model or made.model
        case Switched() as event:
            made.target, made.model = event.target, event.model
        case Compressed() as event:
            history.reduce(event.applied(history.messages))
            made.compressions.append(record.seq)
        case Rewound() as event:
            history.rewind(event.turn)
        case Titled() as event:
            made.title = event.text or None
        case Broke():
            made.broken += 1
        case _:
            # What another version wrote, and what only says where the rest came from.
            return


def latest_compression(timeline: Timeline) -> int:
    if not timeline.compressions:
        raise InputError("there is no compression to undo")
    return timeline.compressions[-1]
