"""Stored conversations: where they are, and the store that is there."""

from __future__ import annotations

import os
from pathlib import Path

from segue.errors import InputError
from segue.store.base import HistoryStore

__all__ = ["default", "default_place", "open_store"]

_SERVERS = ("postgresql://", "postgres://")


def open_store(where: str | Path) -> HistoryStore:
    """The store in this file or at this `postgresql://` address; a file that is not there yet is made."""
    if not str(where):
        raise InputError("a file or a postgresql:// address was expected", path="store")
    if not str(where).startswith(_SERVERS):
        from segue.store.sqlite import SqliteStore

        return SqliteStore(where)
    try:
        from segue.store.postgres import PostgresStore
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the extra `postgres` ({error}): pip install 'segue[postgres]'", path="store"
        ) from None
    return PostgresStore(str(where))


def default(configured: str | None = None) -> HistoryStore:
    """The user's store: where `SEGUE_STORE` says, else the configuration, else `history.db` in the data folder."""
    return open_store(default_place(configured))


def default_place(configured: str | None = None) -> str:
    """Where the user's store is, without opening it."""
    import platformdirs

    named = os.environ.get("SEGUE_STORE") or configured
    return named or str(Path(platformdirs.user_data_dir("segue", appauthor=False)) / "history.db")
