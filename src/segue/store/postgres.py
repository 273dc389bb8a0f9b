"""`PostgresStore`: a store on a PostgreSQL server, for use from several machines (extra `postgres`).

All tables are in one schema of the database, `segue`. Connections come from a pool; times of leases and events come
from the server's clock, so that all machines agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from segue.errors import InputError, StoreError
from segue.store.postgres_server import (
    PostgresSession,
    add_url_defaults,
    display_location,
    migrate_schema,
    open_pool,
    translate_errors,
)
from segue.store.sql import Query, SqlSession, SqlStore

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")


class PostgresStore(SqlStore):
    """A store on a PostgreSQL server. `clock` returns microseconds since 1970 and replaces the server's clock.

    `timeout` is the maximum wait in seconds for a connection, and for a lock. A connection that stays silent for three
    times as long while a reply is due counts as lost.
    """

    LOCK_CLAUSE = " FOR UPDATE"

    def __init__(
        self, url: str, *, schema: str = "segue", clock: Callable[[], int] | None = None, timeout: float = 10.0
    ) -> None:
        if not _SCHEMA.match(schema):
            raise InputError(f"{schema!r} is not a valid schema name", path="schema")
        self._location = display_location(url)
        self._schema = schema
        self._clock = clock
        url = add_url_defaults(url)
        migrate_schema(url, schema, self._location)
        self._pool = open_pool(url, timeout)

    @property
    def location(self) -> str:
        return self._location

    @contextmanager
    def _read_session(self) -> Generator[SqlSession]:
        if self._pool.closed:
            raise StoreError(f"the store {self.location} is closed")
        with translate_errors(self.location), self._pool.connection() as connection:
            yield PostgresSession(connection, self._schema)

    @contextmanager
    def _write_session(self) -> Generator[SqlSession]:
        if self._pool.closed:
            raise StoreError(f"the store {self.location} is closed")
        with (
            translate_errors(self.location, is_write=True),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            yield PostgresSession(connection, self._schema)

    def _now(self, session: SqlSession) -> int:
        if self._clock is not None:
            return self._clock()
        [(now,)] = session.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return now

    def _allocate_event_ids(self, session: SqlSession, count: int) -> list[int]:
        rows = session.run("SELECT nextval(?) FROM generate_series(1, ?)", f"{self._schema}.event_ids", count)
        return sorted(id for (id,) in rows)

    def _add_to_index(self, session: SqlSession, parts: Sequence[tuple[int, int, str]]) -> None:
        session.run_many(
            "INSERT INTO @search (event, part, words) VALUES (?, ?, ?::tsvector)",
            [(event, part, _format_tsvector(text)) for event, part, text in parts],
        )

    def _lock_deletions(self, session: SqlSession) -> None:
        session.run("SELECT pg_advisory_xact_lock(hashtext(?))", f"segue:{self._schema}:delete")

    def _remove_from_index(self, session: SqlSession, numbers: Sequence[int]) -> None:
        session.run(
            "DELETE FROM @search s USING @events e WHERE s.event = e.id AND e.conversation = ANY(?)", list(numbers)
        )

    def _search_index(self, session: SqlSession, query: Query, limit: int) -> list[int]:
        # Tokens consist of letters and digits only, so nothing needs to be escaped.
        phrases = (" <-> ".join([*(f"'{word}'" for word in phrase[:-1]), f"'{phrase[-1]}':*"]) for phrase in query)
        rows = session.run(
            "SELECT DISTINCT event FROM @search WHERE words @@ ?::tsquery ORDER BY event DESC LIMIT ?",
            *(" & ".join(f"({phrase})" for phrase in phrases), limit),
        )
        return [id for (id,) in rows]

    def close(self) -> None:
        self._pool.close()


def _format_tsvector(text: str) -> str:
    """Format the tokens and their positions as a `tsvector` literal, so that PostgreSQL does not parse the text."""
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(text.split(" "), 1):
        positions.setdefault(word, []).append(position)
    return " ".join(f"'{word}':{','.join(map(str, at))}" for word, at in positions.items())
