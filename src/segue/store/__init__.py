"""Stored conversations: where they are, and the store that is there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from segue.errors import InputError
from segue.store.base import HistoryStore

__all__ = ["default", "default_place", "file_of", "open_store", "shown"]

_SERVERS = ("postgresql://", "postgres://")
# One letter is a drive.
_ADDRESS = re.compile(r":|[A-Za-z][A-Za-z0-9+.-]+:")
# What of an address says where it leads; the rest may open a door.
_LEADS = frozenset({"host", "hostaddr", "port", "dbname", "service"})


def open_store(where: str | Path) -> HistoryStore:
    """The store in this file or at this `postgresql://` address; a file that is not there yet is made.

    One that may not be written is read all the same, and says so to whoever writes.
    """
    if (file := file_of(where)) is not None:
        from segue.store.sqlite import SqliteStore

        return SqliteStore(file)
    try:
        from segue.store.postgres import PostgresStore
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the extra `postgres` ({error}): pip install 'segue[postgres]'", path="store"
        ) from None
    return PostgresStore(str(where))


def file_of(where: str | Path) -> Path | None:
    """The file that is meant, whole and without links; None for a server. Other addresses are no store."""
    if str(where).startswith(_SERVERS):
        return None
    if not str(where) or (isinstance(where, str) and _ADDRESS.match(where)):
        what = f"{where!r} is neither" if str(where) else "nothing is named"
        hint = f"; a file of that name is ./{where}" if str(where) else ""
        raise InputError(f"a file or a postgresql:// address was expected, {what}{hint}", path="store")
    try:
        return Path(where).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{str(where)!r} can't be a file: {error}", path="store") from None


def shown(where: str | Path) -> str:
    """Where that is, for people to read: without user and password."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    if (file := file_of(where)) is not None:
        return str(file)
    parts = urlsplit(str(where))
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name in _LEADS]
    query = f"?{urlencode(kept, safe='/:,')}" if kept else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{query}"


def default(configured: str | None = None) -> HistoryStore:
    """The user's store: where `SEGUE_STORE` says, else the configuration, else `history.db` in the data folder."""
    return open_store(default_place(configured))


def default_place(configured: str | None = None) -> str:
    """Where the user's store is, without opening it."""
    import platformdirs

    named = os.environ.get("SEGUE_STORE") or configured
    return named or str(Path(platformdirs.user_data_dir("segue", appauthor=False)) / "history.db")
