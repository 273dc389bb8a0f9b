"""The store entries of a bridge: the protocols of their stores, and `EntryMemory`, which keeps them in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Protocol

DEFAULT_SIZE = 64 * 2**20


class Entries(Protocol):
    """A store of entries for threads. An entry that is not there any more is no error."""

    def load(self, keys: Iterable[str]) -> Mapping[str, bytes]: ...
    def save(self, entries: Mapping[str, bytes]) -> None: ...
    def delete(self, keys: Iterable[str]) -> None: ...


class AsyncEntries(Protocol):
    """A store of entries for an event loop, which it never blocks."""

    async def load(self, keys: Iterable[str]) -> Mapping[str, bytes]: ...
    async def save(self, entries: Mapping[str, bytes]) -> None: ...
    async def delete(self, keys: Iterable[str]) -> None: ...


class EntryMemory:
    """Entries in memory, for one process; the least recently used are dropped first.

    `size` is the limit of all keys and values in bytes.
    """

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._limit = size
        self._used = 0
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def load(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the entries that exist."""
        found: dict[str, bytes] = {}
        with self._lock:
            for key in keys:
                value = self._entries.get(key)
                if value is not None:
                    self._entries.move_to_end(key)
                    found[key] = value
        return found

    def save(self, entries: Mapping[str, bytes]) -> None:
        with self._lock:
            for key, value in entries.items():
                self._remove(key)
                self._entries[key] = value
                self._used += len(key) + len(value)
            while self._used > self._limit and self._entries:
                self._remove(next(iter(self._entries)))

    def delete(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._remove(key)

    def _remove(self, key: str) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._used -= len(key) + len(value)


class AsyncEntryMemory:
    """The same for an event loop."""

    def __init__(self, size: int = DEFAULT_SIZE) -> None:
        self._memory = EntryMemory(size)

    async def load(self, keys: Iterable[str]) -> dict[str, bytes]:
        return self._memory.load(keys)

    async def save(self, entries: Mapping[str, bytes]) -> None:
        self._memory.save(entries)

    async def delete(self, keys: Iterable[str]) -> None:
        self._memory.delete(keys)
