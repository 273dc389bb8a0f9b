"""A conversation outside of any store: all of its events in one JSON value, and back.

What was numbered 7 is the seventh event of the list, so that events which name others still name the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from segue.canonical.codec import VERSION
from segue.canonical.jsontext import write
from segue.errors import InputError, StoreError
from segue.store.base import HistoryStore, Record, Summary, iso
from segue.store.events import Event, Titled, decode_event, dump_event
from segue.store.timeline import replayed

__all__ = ["KIND", "dump_events", "keep_events", "load_events"]

KIND = "events"


def dump_events(summary: Summary, records: Iterable[Record]) -> bytes:
    """All that is known of a conversation."""
    head = {"segue": VERSION, "kind": KIND, "id": summary.id, "title": summary.title}
    times = {"created": iso(summary.created), "updated": iso(summary.updated)}
    events = b",\n".join(dump_event(record.event) for record in records)
    return write({**head, **times})[:-1] + b',"events":[\n' + events + b"\n]}\n"


def load_events(envelope: dict[str, Any]) -> list[Event]:
    """What `dump_events` wrote, if it can be played."""
    if envelope.get("segue") != VERSION:
        told = envelope.get("segue")
        raise InputError(f"stored version {told!r} is not known here; this is version {VERSION}", path="segue")
    stored = envelope.get("events")
    if not isinstance(stored, list):
        raise InputError("a list of events was expected", path="events")
    events: list[Event] = []
    for number, event in enumerate(cast("list[object]", stored)):
        try:
            events.append(decode_event(write(event)))
        except InputError as error:
            raise error.under(f"events[{number}]") from None
    try:
        replayed(Record(seq, 0, event) for seq, event in enumerate(events, 1))
    except (InputError, StoreError) as error:
        raise InputError(str(error), path="events") from None
    return events


def keep_events(store: HistoryStore, events: Sequence[Event], *, title: str | None = None) -> str:
    """A new conversation with these events; a title is told after them. All of it is kept or nothing."""
    conversation = store.create()
    try:
        store.append(conversation, 0, [*events, *([Titled(title)] if title else [])])
    except BaseException:
        store.delete(conversation)
        raise
    return conversation
