"""Connections to an SQLite file: sessions, transactions, and the write-ahead log, for all stores in such a file."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from segue.store.rows import Row

_RETRY_DELAY = 0.02
open_lock = threading.Lock()
"""Closing a file drops all locks of the process on it: two stores must not open the same new file at the same time."""


class SqliteSession:
    """`SqlSession` on an SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.raw = connection

    def run(self, sql: str, *values: object) -> list[Row]:
        return self.raw.execute(sql.replace("@", ""), cast("Sequence[str]", values)).fetchall()

    def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        self.raw.executemany(sql.replace("@", ""), rows)


def enable_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Enable WAL, with retries: SQLite does not wait for other processes that open the same new file."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_DELAY)
        else:
            return


def read_inode(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file even if another one gets its name; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
