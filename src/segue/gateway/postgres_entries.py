"""`PostgresEntries`: the store entries of a bridge on a PostgreSQL server, for several machines (extra `postgres`)."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import LiteralString, cast

from segue.errors import StoreError
from segue.gateway.entry_store import EntryLimits, EntryStore
from segue.store.postgres_server import (
    Connection,
    PostgresSession,
    add_url_defaults,
    display_location,
    open_pool,
    translate_errors,
    translate_sql,
)
from segue.store.sql import SqlSession

_SCHEMA = "segue_gateway"
_TIMEOUT = 2.0
_TABLES = (
    """CREATE TABLE IF NOT EXISTS @entries (
        key text COLLATE "C" PRIMARY KEY,
        value bytea NOT NULL,
        size bigint NOT NULL,
        used double precision NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS entries_used ON @entries (used)",
    """CREATE TABLE IF NOT EXISTS @uses (
        id text COLLATE "C" PRIMARY KEY,
        client text COLLATE "C" NOT NULL,
        started double precision NOT NULL,
        lease double precision NOT NULL,
        ended double precision NOT NULL,
        tokens bigint NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS uses_client ON @uses (client, started)",
    "ALTER TABLE @uses ADD COLUMN IF NOT EXISTS held bigint NOT NULL DEFAULT 0",
    "ALTER TABLE @uses ADD COLUMN IF NOT EXISTS budgets text NOT NULL DEFAULT ''",
    """CREATE TABLE IF NOT EXISTS @budgets (
        key text COLLATE "C" PRIMARY KEY,
        ends double precision,
        allowed bigint NOT NULL,
        spent bigint NOT NULL,
        held bigint NOT NULL
    )""",
)


class PostgresEntries(EntryStore):
    """Entries in a schema of their own. `timeout` limits the wait for a connection and for a lock."""

    # A row that another process writes is in use, and is left alone.
    LOCK_CLAUSE = " FOR UPDATE SKIP LOCKED"

    def __init__(
        self,
        url: str,
        limits: EntryLimits | None = None,
        *,
        schema: str = _SCHEMA,
        clock: Callable[[], float] = time.time,
        timeout: float = _TIMEOUT,
    ) -> None:
        super().__init__(limits or EntryLimits(), clock)
        self._location = display_location(url)
        self._schema = schema
        url = add_url_defaults(url)
        self._create_tables(url)
        self._pool = open_pool(url, timeout)

    def _create_tables(self, url: str) -> None:
        with translate_errors(self._location), Connection.connect(url, autocommit=True) as connection:
            if self._has_tables(connection):
                return
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (zlib.crc32(self._schema.encode()),))
                if self._has_tables(connection):
                    return
                connection.execute(cast("LiteralString", f"CREATE SCHEMA IF NOT EXISTS {self._schema}"))
                for statement in _TABLES:
                    connection.execute(translate_sql(statement, self._schema))

    def _has_tables(self, connection: Connection) -> bool:
        rows = connection.execute(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname IN ('entries', 'uses', 'budgets')",
            (self._schema,),
        ).fetchall()
        return len(rows) == 3

    @contextmanager
    def _session(self) -> Generator[SqlSession]:
        self._check_open()
        with translate_errors(self._location), self._pool.connection() as connection:
            yield PostgresSession(connection, self._schema, binary=True)

    @contextmanager
    def _transaction(self) -> Generator[SqlSession]:
        self._check_open()
        with translate_errors(self._location), self._pool.connection() as connection, connection.transaction():
            yield PostgresSession(connection, self._schema, binary=True)

    def _read_time(self, session: SqlSession) -> float:
        # The clocks of several machines differ.
        [(now,)] = session.run("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)")
        return now

    def _lock_client(self, session: SqlSession, client: str) -> None:
        session.run("SELECT pg_advisory_xact_lock(CAST(? AS bigint))", zlib.crc32(f"{self._schema}/{client}".encode()))

    def _check_open(self) -> None:
        if self._pool.closed:
            raise StoreError(f"the store {self._location} is closed")

    def close(self) -> None:
        self._pool.close()
