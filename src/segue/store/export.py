"""Export and import of a conversation: all of its events in one JSON value.

The list of events is complete and in order, so that events that refer to another event by number stay valid. `at` is
the time of an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

from segue.canonical.codec import VERSION
from segue.canonical.json import encode_json
from segue.errors import InputError, StoreError
from segue.store.base import ConversationStore, ConversationSummary, StoredEvent, format_time, parse_time
from segue.store.events import Event, Renamed, decode_event, dump_event
from segue.store.replay import replay_events

KIND = "events"


def dump_events(summary: ConversationSummary, records: Iterable[StoredEvent]) -> Iterator[bytes]:
    """Encode a conversation's summary and events as JSON, in chunks."""
    head = {"segue": VERSION, "kind": KIND, "id": summary.id, "title": summary.title}
    times = {"created": format_time(summary.created, exact=True), "updated": format_time(summary.updated, exact=True)}
    yield encode_json({**head, **times})[:-1] + b',"events":[\n'
    separator = b""
    for record in records:
        yield separator + _dump_record(record)
        separator = b",\n"
    yield b"\n]}\n"


def _dump_record(record: StoredEvent) -> bytes:
    return encode_json({"at": format_time(record.at, exact=True)})[:-1] + b"," + dump_event(record.event)[1:]


class DecodedExport(Struct, frozen=True):
    """A decoded export: its events, their times (None where not given), and the creation time."""

    events: list[Event]
    times: list[int | None]
    created: int | None = None


def load_events(envelope: dict[str, Any]) -> DecodedExport:
    """Decode an export, also one without times. `InputError` if the events can't be replayed."""
    if envelope.get("segue") != VERSION:
        version = envelope.get("segue")
        raise InputError(f"unknown export version {version!r}; this segue reads version {VERSION}", path="segue")
    stored = envelope.get("events")
    if not isinstance(stored, list):
        raise InputError("expected a list of events", path="events")
    events: list[Event] = []
    times: list[int | None] = []
    for number, event in enumerate(cast("list[object]", stored)):
        time: object = None
        if isinstance(event, dict):
            event = dict(cast("dict[str, Any]", event))
            time = event.pop("at", None)
        times.append(parse_time(time))
        if time is not None and times[-1] is None:
            raise InputError(f"expected a time in ISO 8601, not {time!r}", path=f"events[{number}].at")
        try:
            events.append(decode_event(encode_json(event)))
        except InputError as error:
            raise error.with_prefix(f"events[{number}]") from None
    try:
        replay_events(StoredEvent(seq, 0, event) for seq, event in enumerate(events, 1))
    except (InputError, StoreError) as error:
        raise InputError(str(error), path="events") from None
    created = parse_time(envelope.get("created"))
    if events and not any(times):
        times[0], times[-1] = created, parse_time(envelope.get("updated"))
    return DecodedExport(events, times, created)


def save_events(
    store: ConversationStore,
    events: Sequence[Event],
    at: Sequence[int | None] = (),
    *,
    title: str | None = None,
    created: int | None = None,
) -> str:
    """Create a conversation with these events and times, and return its id; a title is appended as an event.

    If writing fails, nothing is stored.
    """
    renamed = [Renamed(title)] if title else []
    times = fill_times(at, len(events) + len(renamed))
    return store.create(at=created, events=[*events, *renamed], times=times)


def fill_times(at: Sequence[int | None], count: int) -> list[int] | None:
    """Return `count` times; a missing time is that of the event before it. None if no time is given at all."""
    current = next((time for time in at if time is not None), None)
    if current is None:
        return None
    times: list[int] = []
    for time in (*at, *[None] * (count - len(at))):
        current = time if time is not None else current
        times.append(current)
    return times
