"""`EntryMemory`: the store entries of a bridge in memory, bounded in size, the least recently used dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock

DEFAULT_SIZE = 64 * 2**20


class EntryMemory:
    """Entries in memory, for one process. `size` is the limit of all keys and values in bytes."""

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
