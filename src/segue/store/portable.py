"""A conversation outside of any store: all of its events in one JSON value, and back.

What was numbered 7 is the seventh event of the list, so that events which name others still name the same ones. Each
has the time that the store had it written `at`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import Struct

from segue.canonical.codec import VERSION
from segue.canonical.jsontext import write
from segue.errors import InputError, StoreError
from segue.store.base import HistoryStore, Record, Summary, iso, parse_iso
from segue.store.events import Event, Titled, decode_event, dump_event
from segue.store.timeline import replayed

__all__ = ["KIND", "Carried", "dump_events", "filled", "keep_events", "load_events"]

KIND = "events"


def dump_events(summary: Summary, records: Iterable[Record]) -> bytes:
    """All that is known of a conversation."""
    head = {"segue": VERSION, "kind": KIND, "id": summary.id, "title": summary.title}
    times = {"created": iso(summary.created, exact=True), "updated": iso(summary.updated, exact=True)}
    events = b",\n".join(_dumped(record) for record in records)
    return write({**head, **times})[:-1] + b',"events":[\n' + events + b"\n]}\n"


def _dumped(record: Record) -> bytes:
    return write({"at": iso(record.at, exact=True)})[:-1] + b"," + dump_event(record.event)[1:]


class Carried(Struct, frozen=True):
    """What is outside of any store: the events, when each happened, and when the conversation began.

    None is a time that is not told.
    """

    events: list[Event]
    at: list[int | None]
    created: int | None = None


def load_events(envelope: dict[str, Any]) -> Carried:
    """What `dump_events` wrote, here or before times were told, if it can be played."""
    if envelope.get("segue") != VERSION:
        told = envelope.get("segue")
        raise InputError(f"stored version {told!r} is not known here; this is version {VERSION}", path="segue")
    stored = envelope.get("events")
    if not isinstance(stored, list):
        raise InputError("a list of events was expected", path="events")
    events: list[Event] = []
    times: list[int | None] = []
    for number, event in enumerate(cast("list[object]", stored)):
        told: object = None
        if isinstance(event, dict):
            event = dict(cast("dict[str, Any]", event))
            told = event.pop("at", None)
        times.append(parse_iso(told))
        if told is not None and times[-1] is None:
            raise InputError(f"a time in ISO 8601 was expected, not {told!r}", path=f"events[{number}].at")
        try:
            events.append(decode_event(write(event)))
        except InputError as error:
            raise error.under(f"events[{number}]") from None
    try:
        replayed(Record(seq, 0, event) for seq, event in enumerate(events, 1))
    except (InputError, StoreError) as error:
        raise InputError(str(error), path="events") from None
    created = parse_iso(envelope.get("created"))
    if events and not any(times):
        times[0], times[-1] = created, parse_iso(envelope.get("updated"))
    return Carried(events, times, created)


def keep_events(
    store: HistoryStore,
    events: Sequence[Event],
    at: Sequence[int | None] = (),
    *,
    title: str | None = None,
    created: int | None = None,
) -> str:
    """A new conversation with these events, each at its time where that is told; a title is told after them.

    All of it is kept or nothing.
    """
    conversation = store.create(at=created)
    told = [Titled(title)] if title else []
    try:
        times = filled(at, len(events) + len(told))
        store.append(conversation, 0, [*events, *told], **({} if times is None else {"at": times}))
    except BaseException:
        store.delete(conversation)
        raise
    return conversation


def filled(at: Sequence[int | None], count: int) -> list[int] | None:
    """So many times; what is not told happened with what was told before it. None where nothing is told at all."""
    known = next((time for time in at if time is not None), None)
    if known is None:
        return None
    times: list[int] = []
    for time in (*at, *[None] * (count - len(at))):
        known = time if time is not None else known
        times.append(known)
    return times
