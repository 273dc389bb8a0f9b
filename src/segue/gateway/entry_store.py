"""`EntryStore`: the store entries of a bridge and the uses of clients in a database, for any number of processes.

The store is bounded by size and age; the least recently used entries are dropped first. It is a cache: after a power
loss the newest entries of an SQLite file may be missing.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from segue.errors import StoreError
from segue.gateway.client_uses import ClientUses
from segue.store.sql import SqlSession
from segue.store.sqlite_file import (
    SqliteSession,
    enable_wal,
    open_lock,
    prepare_file,
    read_application_id,
    read_inode,
    transaction,
    translate_errors,
)

_APPLICATION_ID = 0x53454745
"""The letters SEGE: entries are not kept in the file of a conversation store."""
_VERSION = 2
_PRAGMAS = ("PRAGMA synchronous = NORMAL", "PRAGMA secure_delete = ON", "PRAGMA trusted_schema = OFF")
_TIMEOUT = 2.0
_KEYS_AT_ONCE = 500
_DAY = 86_400
_PRUNE_SHARE = 32
_TOUCH_SHARE = 100


class EntryLimits(Struct, frozen=True):
    """The bounds of a store: bytes of all keys and values, and seconds since an entry was used.

    Each process drops entries after it wrote a 32nd of `size`, so the store may exceed it by as much for each process.
    """

    size: int = 1024 * 2**20
    age: float = 30 * _DAY


class EntryStore(ClientUses):
    """Entries in a database. Thread-safe; all methods block, and raise `StoreError`. `clock` returns seconds."""

    LOCK_CLAUSE = ""

    def __init__(self, limits: EntryLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        # The first write of a process drops entries that expired since the last one.
        self._unpruned = limits.size

    def load(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the entries that exist, and record that they were used."""
        found: dict[str, bytes] = {}
        now = self._clock()
        untouched: list[str] = []
        for some in _batch(sorted(set(keys))):
            with self._session() as session:
                rows = session.run(
                    f"SELECT key, value, used FROM @entries WHERE used >= ? AND key IN ({_marks(some)})",
                    *(now - self._limits.age, *some),
                )
            found |= {key: bytes(value) for key, value, _ in rows}
            # Not at each use, because a write is slower than a read.
            untouched += [key for key, _, used in rows if now - used > self._limits.age / _TOUCH_SHARE]
        for some in _batch(untouched):
            with self._transaction() as session:
                session.run(
                    f"UPDATE @entries SET used = ? WHERE key IN ({self._select_locked(f'key IN ({_marks(some)})')})",
                    *(now, *some),
                )
        return found

    def save(self, entries: Mapping[str, bytes]) -> None:
        now = self._clock()
        # Sorted, so that two processes with the same keys lock them in the same order.
        rows = [(key, value, len(key) + len(value), now) for key, value in sorted(entries.items())]
        with self._transaction() as session:
            session.run_many(
                "INSERT INTO @entries (key, value, size, used) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value, size = excluded.size, used = excluded.used",
                rows,
            )
        self._unpruned += sum(size for _, _, size, _ in rows)
        if self._unpruned * _PRUNE_SHARE >= self._limits.size:
            self._unpruned = 0
            self._prune(now)

    def delete(self, keys: Iterable[str]) -> None:
        for some in _batch(sorted(set(keys))):
            with self._transaction() as session:
                session.run(f"DELETE FROM @entries WHERE key IN ({_marks(some)})", *some)

    def _prune(self, now: float) -> None:
        """Drop expired entries, and the least recently used of those that exceed the size."""
        with self._transaction() as session:
            expired = self._select_locked("used < ?")
            session.run(f"DELETE FROM @entries WHERE key IN ({expired})", now - self._limits.age)
            [(size,)] = session.run("SELECT coalesce(sum(size), 0) FROM @entries")
            if size > self._limits.size:
                ranked = "SELECT key, sum(size) OVER (ORDER BY used DESC, key) AS total FROM @entries"
                excess = self._select_locked(f"key IN (SELECT key FROM ({ranked}) AS ranked WHERE total > ?)")
                kept = self._limits.size - self._limits.size // _PRUNE_SHARE
                session.run(f"DELETE FROM @entries WHERE key IN ({excess})", kept)

    def _select_locked(self, condition: str) -> str:
        return f"SELECT key FROM @entries WHERE {condition}{self.LOCK_CLAUSE}"

    @abstractmethod
    def _session(self) -> AbstractContextManager[SqlSession]:
        """Return a session for reading."""

    @abstractmethod
    def close(self) -> None:
        """Close the store. Closing it twice is not an error."""


class SqliteEntries(EntryStore):
    """Entries in an SQLite file of their own, which only its owner can read.

    `timeout` is the maximum wait in seconds while another process writes.
    """

    def __init__(
        self,
        path: Path,
        limits: EntryLimits | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timeout: float = _TIMEOUT,
    ) -> None:
        super().__init__(limits or EntryLimits(), clock)
        self._path = path
        self._timeout = timeout
        self._lock = threading.Lock()
        with open_lock, translate_errors(str(path)):
            if not prepare_file(path) and read_application_id(path) not in (_APPLICATION_ID, None):
                raise StoreError(
                    f"{path} is not a store of gateway entries; nothing was changed: use a file of its own",
                    cause="foreign",
                )
            self._connection: sqlite3.Connection | None = self._open()
        self._inode = read_inode(path)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        try:
            if not connection.execute("PRAGMA application_id").fetchone()[0]:
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            enable_wal(connection, self._timeout)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            [version] = connection.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise StoreError(f"{self._path} was written by a newer segue; update segue to use it", cause="newer")
            if version < _VERSION:
                with transaction(connection):
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS entries "
                        "(key TEXT PRIMARY KEY, value BLOB NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL)"
                    )
                    connection.execute("CREATE INDEX IF NOT EXISTS entries_used ON entries (used, key, size)")
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS uses (id TEXT PRIMARY KEY, client TEXT NOT NULL, "
                        "started REAL NOT NULL, lease REAL NOT NULL, ended REAL NOT NULL, tokens INTEGER NOT NULL)"
                    )
                    connection.execute("CREATE INDEX IF NOT EXISTS uses_client ON uses (client, started)")
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
            # Older versions can use the file beside this one, so its version stays.
            if "budgets" not in _list_columns(connection):
                with transaction(connection):
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS budgets (key TEXT PRIMARY KEY, ends REAL, "
                        "allowed INTEGER NOT NULL, spent INTEGER NOT NULL, held INTEGER NOT NULL)"
                    )
                    known = _list_columns(connection)
                    for column in ("held INTEGER NOT NULL DEFAULT 0", "budgets TEXT NOT NULL DEFAULT ''"):
                        if column.split()[0] not in known:
                            connection.execute(f"ALTER TABLE uses ADD COLUMN {column}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _session(self) -> Generator[SqlSession]:
        with self._lock, translate_errors(str(self._path)):
            yield SqliteSession(self._usable())

    @contextmanager
    def _transaction(self) -> Generator[SqlSession]:
        with self._lock, translate_errors(str(self._path)), transaction(self._usable()):
            yield SqliteSession(self._usable())

    def _read_time(self, session: SqlSession) -> float:
        return self._clock()

    def _lock_client(self, session: SqlSession, client: str) -> None:
        """Do nothing: a transaction locks the file."""

    def _usable(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"the store {self._path} is closed")
        if read_inode(self._path) != self._inode:
            raise StoreError(f"{self._path} was removed or replaced while in use")
        return self._connection

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()


def _list_columns(connection: sqlite3.Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(uses)")}


def _batch(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return [keys[first : first + _KEYS_AT_ONCE] for first in range(0, len(keys), _KEYS_AT_ONCE)]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
