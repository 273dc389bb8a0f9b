"""SQLite files: checks before one is opened for writing, sessions and transactions, and translation of errors.

Invariant: a damaged file, or one that is not a segue store, is rejected without changing a byte. So the file is checked
first without locks (`immutable`), then read-only, and only then opened for writing. The file is opened through SQLite
only, because closing any other handle would drop the locks that this process holds on it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

from segue.errors import StoreError, StoreErrorCause
from segue.private_files import make_folder, sync_folder
from segue.store.migrations import pending_migrations
from segue.store.rows import Row

APPLICATION_ID = 0x53454755
"""The letters SEGU, at byte 68 of the file."""
_FULL_CHECK_SIZE = 64 * 1024 * 1024
"""Files up to this size are fully checked when opened (0.1 seconds). In larger ones damage is found on reading."""

_IMMUTABLE = "mode=ro&immutable=1"

# By prefix of SQLite's error name; the first match counts.
_CAUSES: tuple[tuple[str, StoreErrorCause, str], ...] = (
    ("SQLITE_FULL", "full", "the disk is full"),
    ("SQLITE_IOERR_WRITE", "full", "the disk is full, or the file size limit is reached"),
    ("SQLITE_IOERR_SHMSIZE", "full", "the disk is full, or the file size limit is reached"),
    ("SQLITE_CORRUPT", "corrupt", "the file is damaged or truncated"),
    ("SQLITE_IOERR_SHORT_READ", "corrupt", "the file is truncated"),
    ("SQLITE_NOTADB", "foreign", "not a segue store"),
    ("SQLITE_BUSY", "locked", "locked by another process"),
    ("SQLITE_LOCKED", "locked", "locked by another process"),
    ("SQLITE_READONLY", "readonly", "the file is read-only"),
    ("SQLITE_CANTOPEN", "refused", "the file can't be opened"),
    ("SQLITE_PERM", "refused", "the file can't be opened"),
    ("SQLITE_IOERR", "failed", "the disk reported an error"),
    # segue's statements match its own schema and keep its constraints, so these errors mean changed tables.
    ("SQLITE_CONSTRAINT", "corrupt", "the tables contradict each other"),
    ("SQLITE_MISMATCH", "corrupt", "the tables contradict each other"),
    ("SQLITE_ERROR", "corrupt", "the tables do not have the expected schema"),
)


def _to_store_error(error: sqlite3.Error | OSError | UnicodeDecodeError, where: str) -> StoreError:
    """Return the error as a `StoreError`, with SQLite's own message in parentheses."""
    if isinstance(error, OSError):
        return StoreError(f"{where} can't be used: {error.strerror or error}", cause="refused")
    name = getattr(error, "sqlite_errorname", "")
    # `sqlite3` decodes texts and SQLite's own messages, which quote the damaged schema, as UTF-8.
    if isinstance(error, UnicodeDecodeError) or (not name and "decode" in str(error)):
        return StoreError(f"{where}: the file is damaged (a text in it is not valid UTF-8)", cause="corrupt")
    for prefix, cause, text in _CAUSES:
        if name.startswith(prefix):
            return StoreError(f"{where}: {text} ({error})", cause=cause, retryable=cause == "locked")
    return StoreError(f"{where}: {error}", cause="failed")


@contextmanager
def translate_errors(where: str) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise _to_store_error(error, where) from error


def is_readonly(path: Path) -> bool:
    """Return whether the file exists and can't be written, or its folder can't, where SQLite creates the WAL."""
    with translate_errors(str(path)):
        return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def open_readonly(path: Path, timeout: float) -> sqlite3.Connection:
    """Open the file for reading. If it has no WAL or journal, nothing is written to it and none is created."""
    mode = "mode=ro" if any(_sidecar(path, suffix).exists() for suffix in ("-wal", "-journal")) else _IMMUTABLE
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if pending_migrations(version, str(path)):
            raise StoreError(
                f"{path} was written by an older segue (schema version {version}) and is read-only here; "
                "open it once with write access to migrate it",
                cause="readonly",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_file(path: Path) -> bool:
    """Create the file, readable by its owner only, if it does not exist; return whether it is empty."""
    with translate_errors(str(path)):
        make_folder(path.parent)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            status = path.stat()
        else:
            sync_folder(path.parent)
            return True
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise StoreError(f"{path} is {kind}; a store is a file", cause="foreign")
        if status.st_size == 0:
            path.chmod(0o600)
        return status.st_size == 0


def check_file(path: Path, timeout: float) -> None:
    """Raise `StoreError` if the file is not a store, is damaged, or has a newer schema version.

    A store that was just created may have no tables.
    """
    where = str(path)
    with translate_errors(where):
        if not os.access(path, os.R_OK):
            raise StoreError(f"{where} can't be read: permission denied", cause="refused")
        application_id = read_application_id(path)
        if application_id not in (APPLICATION_ID, None):
            owner = f"application id {application_id:#x}" if application_id else "no application id"
            raise StoreError(
                f"{where} is an SQLite file of another program ({owner}); nothing was changed", cause="foreign"
            )
        if _sidecar(path, "-journal").exists():
            return  # Left by a process that was killed while it created the file: SQLite has to roll back first.
        try:
            # Without a WAL the file is not in use, and `immutable` avoids creating one.
            _check_database(path, "mode=ro" if _sidecar(path, "-wal").exists() else _IMMUTABLE, timeout)
        except (sqlite3.DatabaseError, StoreError):
            # A WAL that appeared meanwhile makes the immutable check fail.
            if not _sidecar(path, "-wal").exists():
                raise
            _check_database(path, "mode=ro", timeout)


def _check_database(path: Path, mode: str, timeout: float) -> None:
    with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=timeout)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        pending_migrations(version, str(path))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if version and not {"conversations", "events", "leases", "search"} <= tables:
            raise StoreError(f"{path}: tables are missing, the file is damaged", cause="corrupt")
        if path.stat().st_size <= _FULL_CHECK_SIZE:
            [verdict] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise StoreError(f"{path}: the file is damaged (SQLite's quick_check failed)", cause="corrupt")


def read_application_id(path: Path) -> int | None:
    """Return the application id in the first page; None if it can't be read without the WAL or journal."""
    with closing(sqlite3.connect(f"{path.as_uri()}?{_IMMUTABLE}", uri=True)) as connection:
        try:
            return connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.DatabaseError as error:
            # A process that was killed during a checkpoint leaves a file that is too short; a power loss while the file
            # was created leaves a part of its first page.
            logs = [_sidecar(path, suffix) for suffix in ("-wal", "-journal")]
            is_unfinished = getattr(error, "sqlite_errorname", "") in ("SQLITE_CORRUPT", "SQLITE_NOTADB")
            if is_unfinished and any(file.exists() for file in logs):
                return None
            raise


def _sidecar(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


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
