"""A store on either engine, for tests and for the processes they start: those import no more than they need."""

from __future__ import annotations

from collections.abc import Callable

from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore


def open_store(
    kind: str, place: str, schema: str, *, clock: Callable[[], int] | None = None, timeout: float = 10.0
) -> SqlStore:
    if kind == "postgres":
        from segue.store.postgres import PostgresStore

        return PostgresStore(place, schema=schema, clock=clock, timeout=timeout)
    return SqliteStore(place, timeout=timeout) if clock is None else SqliteStore(place, clock=clock, timeout=timeout)
