"""`open_entries`: the store of a bridge's entries by its location, a file or a server."""

from __future__ import annotations

from segue.errors import InputError
from segue.store import resolve_file
from segue.store.entries import EntryLimits, EntryStore, SqliteEntries


def open_entries(where: str, limits: EntryLimits | None = None) -> EntryStore:
    """Open the entries in this file or at this `postgresql://` URL; a missing file or schema is created."""
    if (file := resolve_file(where)) is not None:
        return SqliteEntries(file, limits)
    try:
        from segue.store.postgres_entries import PostgresEntries
    except ImportError as error:
        raise InputError(
            f"PostgreSQL needs the extra `postgres` ({error}): pip install 'segue[postgres]'", path="store"
        ) from None
    return PostgresEntries(where, limits)
