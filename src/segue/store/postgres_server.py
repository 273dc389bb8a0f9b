"""PostgreSQL connections, schema migration, and translation of the server's errors.

Invariant: no password appears in a message, and a schema that is not a segue store is rejected unchanged.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, LiteralString, TypeVar, cast

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from segue.errors import InputError, StoreError, StoreErrorCause
from segue.store.migrations import pending_migrations
from segue.store.rows import Row

T = TypeVar("T")

_SILENCE = 3
"""How many times `timeout` a connection may stay silent before it is given up, here and on the server."""

# By prefix of the SQLSTATE code; the first match counts. The third column is `retryable`.
_CAUSES: tuple[tuple[str, StoreErrorCause, bool, str], ...] = (
    ("08", "lost", True, "the connection broke"),
    ("57P", "lost", True, "the server is shutting down or starting"),
    ("53300", "lost", True, "the server has too many connections"),
    ("531", "full", False, "the server's disk is full"),
    ("54", "failed", False, "a value exceeds the server's limits"),
    ("55P03", "locked", True, "locked by another process"),
    ("57014", "locked", True, "the server cancelled the statement: timeout"),
    ("40", "locked", True, "another process wrote at the same time"),
    ("25P03", "lost", True, "the server ended the transaction: no statement for too long"),
    ("25P04", "lost", True, "the server ended the transaction: it took too long"),
    ("25006", "readonly", False, "the server is read-only"),
    ("42501", "refused", False, "permission denied"),
    ("28", "refused", False, "authentication failed"),
    ("3D000", "refused", False, "the database does not exist"),
    ("XX001", "corrupt", False, "the server's data are damaged"),
    ("XX002", "corrupt", False, "the server's data are damaged"),
)
_TABLE = re.compile(r"@(?=[a-z])")


class Connection(psycopg.Connection[Row]):
    """A connection that fails if the server sends nothing for `silence` seconds while a reply is due.

    TCP does not notice a server that stands still behind a proxy, nor a reply that was lost after it was acknowledged.
    """

    silence = 30.0

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **more: Any) -> T:
        return super().wait(self._limit_silence(gen), *args, **more)

    def _limit_silence(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        deadline = time.monotonic() + self.silence
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    deadline = time.monotonic() + self.silence
                elif time.monotonic() > deadline:
                    # Closed first, because a rollback would wait for the same server.
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no reply for {self.silence:g} seconds")
                state = gen.send(ready)
        except StopIteration as end:
            return end.value


def _to_store_error(error: Exception, where: str, *, is_write: bool) -> StoreError:
    """Return the error as a `StoreError`, with the server's own message in parentheses."""
    code = getattr(error, "sqlstate", None)
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    for prefix, cause, retryable, text in _CAUSES:
        if code is not None and code.startswith(prefix):
            return StoreError(f"{where}: {text} ({message})", cause=cause, retryable=retryable)
    # Errors before the connection is established have no code.
    if code is None and re.search(r"authentication|password|no pg_hba|role .* does not exist", str(error)):
        return StoreError(f"{where}: authentication failed ({message})", cause="refused")
    if code is None and re.search(r"database .* does not exist", str(error)):
        return StoreError(f"{where}: the database does not exist ({message})", cause="refused")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg_pool.PoolTimeout):
        hint = "; read again to see whether the last write was committed" if is_write else ""
        text = f"{where}: the server can't be reached, or the connection broke ({message}){hint}"
        return StoreError(text, cause="lost", retryable=True)
    return StoreError(f"{where}: {message}", cause="failed")


@contextmanager
def translate_errors(where: str, *, is_write: bool = False) -> Generator[None]:
    """Raise errors of the driver as `StoreError`s; the error of a write mentions that it may be committed."""
    try:
        yield
    except (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
        raise _to_store_error(error, where, is_write=is_write) from error


@cache
def translate_sql(sql: str, schema: str) -> LiteralString:
    """Translate `@` before table names and `?` placeholders to PostgreSQL's syntax."""
    return cast("LiteralString", _TABLE.sub(f"{schema}.", sql).replace("?", "%s"))


class PostgresSession:
    """`SqlSession` on a pooled connection. `binary` returns `bytea` values without their hex form."""

    def __init__(self, connection: Connection, schema: str, *, binary: bool = False) -> None:
        self._cursor: psycopg.Cursor[Row] = connection.cursor(binary=binary)
        self._schema = schema

    def run(self, sql: str, *values: object) -> list[Row]:
        self._cursor.execute(translate_sql(sql, self._schema), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        self._cursor.executemany(translate_sql(sql, self._schema), rows)


def display_location(url: str) -> str:
    """Return the URL for display: without user name and password."""
    settings = _parse_url(url)
    host = str(settings.get("host") or settings.get("hostaddr") or "localhost")
    port = f":{settings['port']}" if settings.get("port") else ""
    return f"postgresql://{host}{port}/{settings.get('dbname') or ''}"


def add_url_defaults(url: str) -> str:
    """Add timeouts and the application name to the URL, where it does not set them."""
    defaults = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 30_000, "application_name": "segue"}
    settings = _parse_url(url)
    return make_conninfo(url, **{name: value for name, value in defaults.items() if name not in settings})


def _parse_url(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.Error:
        raise InputError("not a valid PostgreSQL URL; expected postgresql://host/database", path="store") from None


def _make_configure(timeout: float) -> Callable[[Connection], None]:
    """Return the function that configures each new connection."""

    def configure(connection: Connection) -> None:
        connection.silence = _SILENCE * timeout
        connection.execute(
            "SELECT set_config('lock_timeout', %s, false), set_config('client_encoding', 'UTF8', false), "
            # The transaction of a client that is cut off keeps its locks until the server ends it.
            "set_config('idle_in_transaction_session_timeout', %s, false), "
            # A commit must be on disk, whatever the server's default; stricter settings stay.
            "CASE WHEN current_setting('synchronous_commit') = 'off' "
            "THEN set_config('synchronous_commit', 'on', false) END",
            (f"{round(timeout * 1000)}ms", f"{round(_SILENCE * timeout * 1000)}ms"),
        )

    return configure


def open_pool(url: str, timeout: float) -> psycopg_pool.ConnectionPool[Connection]:
    """Return a pool that checks each connection before use, so that a server restart causes no error.

    After a failed use, the next one connects anew: by itself, the pool would wait twice as long after each failure.
    """
    return psycopg_pool.ConnectionPool(
        url,
        connection_class=Connection,
        min_size=1,
        max_size=4,
        timeout=timeout,
        reconnect_timeout=timeout,
        kwargs={"autocommit": True},
        configure=_make_configure(timeout),
        check=psycopg_pool.ConnectionPool.check_connection,
        name="segue",
        open=True,
    )


def migrate_schema(url: str, schema: str, where: str) -> None:
    """Apply pending migrations in one transaction. `StoreError` if the schema is not a segue store."""
    with translate_errors(where), Connection.connect(url, autocommit=True) as connection:
        [encoding] = connection.execute("SHOW server_encoding").fetchone() or [""]
        if encoding != "UTF8":
            raise StoreError(f"the encoding of {where} is {encoding}; a store needs UTF8", cause="foreign")
        if pending_migrations(_read_version(connection, schema, where), where):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (zlib.crc32(f"segue:{schema}".encode()),))
                _apply_migrations(connection, schema, where)


def _read_version(connection: Connection, schema: str, where: str) -> int:
    # Read from the system catalogue: a name lookup may use a snapshot from before the lock.
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s", (schema,)
    ).fetchall()
    if ("schema_version",) in rows:
        row = connection.execute(translate_sql("SELECT version FROM @schema_version", schema)).fetchone()
        return int(row[0]) if row else 0
    if rows:
        raise StoreError(
            f"the schema {schema!r} of {where} has tables of another program; nothing was changed", cause="foreign"
        )
    return 0


def _apply_migrations(connection: Connection, schema: str, where: str) -> None:
    # Read again under the lock: another process may have migrated meanwhile.
    version = _read_version(connection, schema, where)
    steps = pending_migrations(version, where)
    if version == 0 and steps:
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
            connection.execute(cast("LiteralString", f"CREATE SCHEMA {schema}"))
        connection.execute(translate_sql("CREATE TABLE @schema_version (version integer NOT NULL)", schema))
        connection.execute(translate_sql("INSERT INTO @schema_version VALUES (0)", schema))
    for number, step in enumerate(steps, version + 1):
        for statement in step.postgres:
            connection.execute(translate_sql(statement, schema))
        connection.execute(translate_sql("UPDATE @schema_version SET version = ?", schema), (number,))
