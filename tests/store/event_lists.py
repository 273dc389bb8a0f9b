"""A store in memory, for properties that run many operations and do not test the engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from segue.store.base import StoredEvent
from segue.store.events import Event, Forked, decode_event, dump_event


class EventLists:
    """A store of one process: events in their stored form, without leases."""

    def __init__(self) -> None:
        self._lists: dict[str, list[bytes]] = {}

    def create(self, title: str | None = None, **_: Any) -> str:
        name = str(len(self._lists))
        self._lists[name] = []
        return name

    def append(self, conversation: str, expected: int, events: Sequence[Event], **_: Any) -> int:
        assert expected == len(self._lists[conversation])
        self._lists[conversation] += map(dump_event, events)
        return len(self._lists[conversation])

    def events(self, conversation: str) -> Iterator[StoredEvent]:
        return (StoredEvent(i, 0, decode_event(data)) for i, data in enumerate(self._lists[conversation], 1))

    def fork(self, conversation: str, seq: int) -> str:
        name = self.create()
        self._lists[name] = [*self._lists[conversation][:seq], dump_event(Forked(conversation, seq))]
        return name

    def acquire(self, *_: Any) -> None:
        """Every writer has the lease."""

    renew = release = acquire
