"""`SqliteStore`: a store in one SQLite file, with Python's `sqlite3`. The default engine.

The write-ahead log (WAL) allows reads during a write; with `synchronous = FULL` a commit is on disk when it returns.
One connection behind a lock serves all threads of a process.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from segue.errors import StoreError
from segue.store.migrations import pending_migrations
from segue.store.search_text import MAX_PARTS
from segue.store.sql import Query, SqlSession, SqlStore
from segue.store.sqlite_file import (
    APPLICATION_ID,
    SqliteSession,
    check_file,
    enable_wal,
    is_readonly,
    open_lock,
    open_readonly,
    prepare_file,
    read_inode,
    transaction,
    translate_errors,
)

_MIN_SQLITE_VERSION = (3, 35, 0)
_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cell_size_check = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
)


def _machine_clock() -> int:
    return time.time_ns() // 1_000


class SqliteStore(SqlStore):
    """A store in one SQLite file. `clock` returns microseconds since 1970.

    `timeout` is the maximum wait in seconds while another process writes.

    A read-only file can be read; writing to it raises a `StoreError` with the cause `readonly`.
    """

    # Text would be decoded to a `str`, and encoded again for the checksum.
    ROW_COLUMNS = "seq, at, kind, crc, CAST(data AS BLOB)"

    def __init__(self, path: str | Path, *, clock: Callable[[], int] = _machine_clock, timeout: float = 10.0) -> None:
        self.path = Path(path).expanduser().resolve()
        self._clock = clock
        self._timeout = timeout
        self._lock = threading.RLock()
        if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: the store needs 3.35 or newer")
        self._is_readonly = is_readonly(self.path)
        with open_lock:
            fresh = not self._is_readonly and prepare_file(self.path)
            if not fresh:
                check_file(self.path, timeout)
            with translate_errors(self.location):
                connection = open_readonly(self.path, timeout) if self._is_readonly else self._open()
        self._connection: sqlite3.Connection | None = connection
        self._inode = read_inode(self.path)

    @property
    def location(self) -> str:
        return str(self.path)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        if not connection.execute("PRAGMA application_id").fetchone()[0]:
            # Before WAL is enabled, so that the application id is in the first page of the file itself.
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        enable_wal(connection, self._timeout)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        if pending_migrations(connection.execute("PRAGMA user_version").fetchone()[0], self.location):
            with transaction(connection):
                # Read again under the lock: another process may have migrated meanwhile.
                [version] = connection.execute("PRAGMA user_version").fetchone()
                for number, step in enumerate(pending_migrations(version, self.location), version + 1):
                    for statement in step.sqlite:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {number}")

    @contextmanager
    def _read_session(self) -> Generator[SqlSession]:
        with self._lock, translate_errors(self.location):
            if self._connection is None:
                raise StoreError(f"the store {self.location} is closed")
            yield SqliteSession(self._connection)

    @contextmanager
    def _write_session(self) -> Generator[SqlSession]:
        with self._read_session() as session:
            if self._is_readonly:
                raise StoreError(f"{self.location} is read-only: nothing was written", cause="readonly")
            if read_inode(self.path) != self._inode:
                raise StoreError(f"{self.location} was removed or replaced while in use", cause="failed")
            with transaction(cast("SqliteSession", session).raw):
                yield session

    def _now(self, session: SqlSession) -> int:
        return self._clock()

    def _allocate_event_ids(self, session: SqlSession, count: int) -> list[int]:
        [(highest,)] = session.run("SELECT max(id) FROM @events")
        return list(range((highest or 0) + 1, (highest or 0) + 1 + count))

    def _add_to_index(self, session: SqlSession, parts: Sequence[tuple[int, int, str]]) -> None:
        session.run_many(
            "INSERT INTO @search (rowid, words) VALUES (?, ?)",
            [(event * MAX_PARTS + part, text) for event, part, text in parts],
        )

    def _remove_from_index(self, session: SqlSession, numbers: Sequence[int]) -> None:
        placeholders = ", ".join("?" * len(numbers))
        ids = session.run(f"SELECT id FROM @events WHERE conversation IN ({placeholders}) ORDER BY id", *numbers)
        ranges: list[list[int]] = []
        for (id,) in ids:
            # Consecutive ids are deleted as one range: each lookup in FTS5 is slow.
            if ranges and ranges[-1][1] == id:
                ranges[-1][1] = id + 1
            else:
                ranges.append([id, id + 1])
        session.run_many(
            "DELETE FROM @search WHERE rowid >= ? AND rowid < ?",
            [(start * MAX_PARTS, stop * MAX_PARTS) for start, stop in ranges],
        )
        # FTS5 only marks tokens as deleted; `optimize` rewrites the index without them.
        session.run("INSERT INTO @search (search) VALUES ('optimize')")

    def _after_delete(self) -> None:
        """Truncate the WAL, which may still hold deleted data. A reader may delay that to the next deletion."""
        with suppress(StoreError), self._read_session() as session:
            session.run("PRAGMA wal_checkpoint(TRUNCATE)")

    def _search_index(self, session: SqlSession, query: Query, limit: int) -> list[int]:
        match = " AND ".join(f'"{" ".join(phrase)}"*' for phrase in query)
        rows = session.run(
            f"SELECT DISTINCT rowid / {MAX_PARTS} FROM @search WHERE search MATCH ? ORDER BY rowid DESC LIMIT ?",
            *(match, limit),
        )
        return [id for (id,) in rows]

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                connection, self._connection = self._connection, None
                with suppress(sqlite3.Error):
                    connection.close()
