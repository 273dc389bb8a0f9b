"""A store in memory, for properties that run many operations and do not test the engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from segue.store.base import StoredEvent
from segue.store.events import Event, Forked, decode_event, dump_event


class EventLists:
    """A store of one process: events in their stored form, without leases."""

    def __init__(self) -> None:
        self._lists: dict[str, list[bytes]] = {}

    def create(self, _title: str | None = None, *, events: Iterable[Event] = (), **_: Any) -> str:
        name = str(len(self._lists))
        self._lists[name] = [dump_event(event) for event in events]
        return name

    def append(self, conversation: str, expected: int, events: Iterable[Event], **_: Any) -> int:
        assert expected == len(self._lists[conversation])
        self._lists[conversation] += map(dump_event, events)
        return len(self._lists[conversation])

    def events(self, conversation: str, *, until: int | None = None) -> Iterator[StoredEvent]:
        stored = enumerate(self._lists[conversation][:until], 1)
        return (StoredEvent(number, 0, decode_event(data)) for number, data in stored)

    def fork(self, conversation: str, seq: int, events: Iterable[Event] = ()) -> str:
        name = self.create(events=[Forked(conversation, seq), *events])
        self._lists[name][:0] = self._lists[conversation][:seq]
        return name

    def acquire(self, *_: Any) -> None:
        """Every writer has the lease."""

    renew = release = acquire
