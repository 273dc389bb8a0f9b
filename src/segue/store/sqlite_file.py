"""The file of an SQLite store, before SQLite is let near it, and what SQLite's errors mean.

Invariant: a file that is not a store of this segue's, or a damaged one, is refused as it is; not a byte of it changes.
So it is looked at first without locks and without writing (`immutable`), then read-only, and only then opened. It is
never opened by anything but SQLite: closing a file drops the locks that the same process holds on it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from segue.errors import StoreCause, StoreError
from segue.store.migrations import missing_steps

__all__ = ["APPLICATION_ID", "examine", "explaining", "looked_at", "make_room", "may_only_be_read"]

APPLICATION_ID = 0x53454755
"""The letters SEGU, at byte 68 of the file."""
_CHECKED_WHOLE = 64 * 1024 * 1024
"""Up to this size a file is checked whole when it is opened: a tenth of a second. Beyond, damage is found when met."""

_ALONE = "mode=ro&immutable=1"

# By the beginning of SQLite's name for the error; the first that fits.
_CAUSES: tuple[tuple[str, StoreCause, str], ...] = (
    ("SQLITE_FULL", "full", "there is no room left on the disk"),
    ("SQLITE_IOERR_WRITE", "full", "there is no room left on the disk, or the file may not grow any further"),
    ("SQLITE_IOERR_SHMSIZE", "full", "there is no room left on the disk, or the file may not grow any further"),
    ("SQLITE_CORRUPT", "corrupt", "the file is damaged or cut off"),
    ("SQLITE_IOERR_SHORT_READ", "corrupt", "the file is cut off"),
    ("SQLITE_NOTADB", "foreign", "this is not a store of conversations"),
    ("SQLITE_BUSY", "locked", "another process keeps writing to it"),
    ("SQLITE_LOCKED", "locked", "another process keeps writing to it"),
    ("SQLITE_READONLY", "readonly", "it may only be read"),
    ("SQLITE_CANTOPEN", "refused", "it can't be opened"),
    ("SQLITE_PERM", "refused", "it can't be opened"),
    ("SQLITE_IOERR", "failed", "the disk reported an error"),
    # Our statements are right for our tables.
    ("SQLITE_ERROR", "corrupt", "the tables are not as they were made"),
)


def explained(error: sqlite3.Error | OSError, where: str) -> StoreError:
    """The error in our words, with SQLite's own behind them."""
    if isinstance(error, OSError):
        return StoreError(f"{where} can't be used: {error.strerror or error}", cause="refused")
    name = getattr(error, "sqlite_errorname", "")
    if not name and "decode" in str(error):
        return StoreError(f"{where}: the file is damaged ({error})", cause="corrupt")
    for beginning, cause, words in _CAUSES:
        if name.startswith(beginning):
            return StoreError(f"{where}: {words} ({error})", cause=cause, retryable=cause == "locked")
    return StoreError(f"{where}: {error}", cause="failed")


@contextmanager
def explaining(where: str) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explained(error, where) from error


def may_only_be_read(path: Path) -> bool:
    """Whether there is a file that takes no writing: itself, or its folder, where SQLite puts its log."""
    with explaining(str(path)):
        return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def looked_at(path: Path, timeout: float) -> sqlite3.Connection:
    """The file opened to be read. Without a log beside it nobody writes to it, and none has to be made."""
    how = "mode=ro" if any(_beside(path, end).exists() for end in ("-wal", "-journal")) else _ALONE
    connection = sqlite3.connect(
        f"{path.as_uri()}?{how}", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if missing_steps(version, str(path)):
            raise StoreError(
                f"{path} is of an older segue (version {version} of the schema) and may only be read here; "
                "open it once where it may be written",
                cause="readonly",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def make_room(path: Path) -> bool:
    """Sees to a plain file at this place, readable by its owner alone; says whether there is nothing in it yet."""
    with explaining(str(path)):
        _make_folder(path.parent)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            found = path.stat()
        else:
            _sync_folder(path.parent)
            return True
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a plain file"
            raise StoreError(f"{path} is {what}; a store of conversations is a file", cause="foreign")
        if found.st_size == 0:
            path.chmod(0o600)
        return found.st_size == 0


def _make_folder(folder: Path) -> None:
    """Like `mkdir -p`, with every new folder for its owner alone."""
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a folder")
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _sync_folder(folder: Path) -> None:
    """A new name is on disk once its folder is."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def examine(path: Path, timeout: float) -> None:
    """Refuses a file that is not a store, is damaged, or of a newer version. A young store may have no tables yet."""
    where = str(path)
    with explaining(where):
        if not os.access(path, os.R_OK):
            raise StoreError(f"{where} may not be read by this user", cause="refused")
        found = _application_id(path)
        if found not in (APPLICATION_ID, None):
            whose = f"application id {found:#x}" if found else "no application id"
            raise StoreError(
                f"{where} is another program's SQLite file ({whose}); nothing was changed", cause="foreign"
            )
        if _beside(path, "-journal").exists():
            return  # Left by a process that was killed while it made the file: SQLite has to take that back first.
        try:
            # Where nobody has the file open there is no log, and none has to be made in order to look.
            _check(path, "mode=ro" if _beside(path, "-wal").exists() else _ALONE, timeout)
        except (sqlite3.DatabaseError, StoreError):
            if not _beside(path, "-wal").exists():
                raise
            _check(path, "mode=ro", timeout)


def _check(path: Path, how: str, timeout: float) -> None:
    with closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=timeout)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        missing_steps(version, str(path))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if version and not {"conversations", "events", "leases", "search"} <= tables:
            raise StoreError(f"{path}: tables are missing, the file is damaged", cause="corrupt")
        if path.stat().st_size <= _CHECKED_WHOLE:
            [verdict] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise StoreError(f"{path}: the file is damaged (SQLite's own check says so)", cause="corrupt")


def _application_id(path: Path) -> int | None:
    """What the first page says; None where it can't be told without the log beside the file."""
    with closing(sqlite3.connect(f"{path.as_uri()}?{_ALONE}", uri=True)) as connection:
        try:
            return connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.DatabaseError as error:
            # A process that was killed while it moved pages from the log into the file leaves a file that is too short.
            beside = [_beside(path, end) for end in ("-wal", "-journal")]
            if error.sqlite_errorname == "SQLITE_CORRUPT" and any(file.exists() for file in beside):
                return None
            raise


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
