"""The way to a PostgreSQL server: connections, the schema's version, and what the server's errors mean.

Invariant: no password gets into a message, and a schema that is not a store of this segue's is refused as it is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, LiteralString, TypeAlias, cast

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from segue.errors import InputError, StoreCause, StoreError
from segue.store.migrations import missing_steps

__all__ = ["Connection", "address", "bring_up", "connected", "explaining", "said", "with_defaults"]

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# By the server's own five-letter code; the first that fits. The third says whether waiting may help.
_CAUSES: tuple[tuple[str, StoreCause, bool, str], ...] = (
    ("08", "lost", True, "the connection broke"),
    ("57P", "lost", True, "the server is going down or coming up"),
    ("53300", "lost", True, "the server has no connection left"),
    ("531", "full", False, "there is no room left on the server's disk"),
    ("54", "failed", False, "this is more than the server can hold in one row"),
    ("55P03", "locked", True, "another process keeps writing to it"),
    ("57014", "locked", True, "the server broke off, it took too long"),
    ("40", "locked", True, "another process wrote at the same time"),
    ("25006", "readonly", False, "the server takes no writing"),
    ("42501", "refused", False, "this user may not use it"),
    ("28", "refused", False, "the server does not let this user in"),
    ("3D000", "refused", False, "there is no such database"),
    ("XX001", "corrupt", False, "the server's data are damaged"),
    ("XX002", "corrupt", False, "the server's data are damaged"),
)
_TABLE = re.compile(r"@(?=[a-z])")


def explained(error: Exception, where: str) -> StoreError:
    """The error in our words, with the server's own behind them."""
    code = getattr(error, "sqlstate", None)
    own = (str(error).strip().splitlines() or [type(error).__name__])[0]
    for beginning, cause, retryable, words in _CAUSES:
        if code is not None and code.startswith(beginning):
            return StoreError(f"{where}: {words} ({own})", cause=cause, retryable=retryable)
    # What is said before there is a connection has no code of its own.
    if code is None and re.search(r"authentication|password|no pg_hba|role .* does not exist", str(error)):
        return StoreError(f"{where}: the server does not let this user in ({own})", cause="refused")
    if code is None and re.search(r"database .* does not exist", str(error)):
        return StoreError(f"{where}: there is no such database ({own})", cause="refused")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg_pool.PoolTimeout):
        return StoreError(
            f"{where}: the server can't be reached, or the connection broke ({own}); whether something that was being "
            "written is there is told by reading again",
            cause="lost",
            retryable=True,
        )
    return StoreError(f"{where}: {own}", cause="failed")


@contextmanager
def explaining(where: str) -> Generator[None]:
    try:
        yield
    except (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
        raise explained(error, where) from error


@cache
def said(sql: str, schema: str) -> LiteralString:
    """The store's SQL in PostgreSQL's words."""
    return cast("LiteralString", _TABLE.sub(f"{schema}.", sql).replace("?", "%s"))


def address(url: str) -> str:
    """Where that is, for people to read: without user and password."""
    given = _parts(url)
    host = str(given.get("host") or given.get("hostaddr") or "localhost")
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{host}{port}/{given.get('dbname') or ''}"


def with_defaults(url: str) -> str:
    """The URL with an end to every waiting, unless it names its own."""
    wanted = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 30_000, "application_name": "segue"}
    given = _parts(url)
    return make_conninfo(url, **{name: value for name, value in wanted.items() if name not in given})


def _parts(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.Error:
        raise InputError(
            "this is not the address of a PostgreSQL server: postgresql://host/database", path="store"
        ) from None


def settle(timeout: float) -> Callable[[Connection], None]:
    """What each new connection is told."""

    def told(connection: Connection) -> None:
        connection.execute(
            "SELECT set_config('lock_timeout', %s, false), set_config('client_encoding', 'UTF8', false), "
            # What was acknowledged is on disk, whatever the server's default; stronger ones stay.
            "CASE WHEN current_setting('synchronous_commit') = 'off' "
            "THEN set_config('synchronous_commit', 'on', false) END",
            (f"{round(timeout * 1000)}ms",),
        )

    return told


def connected(url: str, timeout: float) -> psycopg_pool.ConnectionPool[Connection]:
    """A pool that looks at a connection before it hands it out, so that a server that was restarted is no error."""
    return psycopg_pool.ConnectionPool(
        url,
        min_size=1,
        max_size=4,
        timeout=timeout,
        kwargs={"autocommit": True},
        configure=settle(timeout),
        check=psycopg_pool.ConnectionPool.check_connection,
        name="segue",
        open=True,
    )


def bring_up(url: str, schema: str, where: str) -> None:
    """Checks the schema's version and brings it up to date, all or nothing."""
    with explaining(where), psycopg.connect(url, autocommit=True) as connection:
        [encoding] = connection.execute("SHOW server_encoding").fetchone() or [""]
        if encoding != "UTF8":
            raise StoreError(f"{where} is encoded in {encoding}; a store needs a database in UTF8", cause="foreign")
        if missing_steps(_version(connection, schema, where), where):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (zlib.crc32(f"segue:{schema}".encode()),))
                _migrate(connection, schema, where)


def _version(connection: Connection, schema: str, where: str) -> int:
    # Asked of the catalogue's own tables: the names that a connection remembers may be older than the lock.
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s", (schema,)
    ).fetchall()
    if ("schema_version",) in rows:
        row = connection.execute(said("SELECT version FROM @schema_version", schema)).fetchone()
        return int(row[0]) if row else 0
    if rows:
        raise StoreError(
            f"the schema {schema!r} of {where} holds another program's tables; nothing was changed", cause="foreign"
        )
    return 0


def _migrate(connection: Connection, schema: str, where: str) -> None:
    # Asked again under the lock: somebody else may have done it meanwhile.
    version = _version(connection, schema, where)
    steps = missing_steps(version, where)
    if version == 0 and steps:
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
            connection.execute(cast("LiteralString", f"CREATE SCHEMA {schema}"))
        connection.execute(said("CREATE TABLE @schema_version (version integer NOT NULL)", schema))
        connection.execute(said("INSERT INTO @schema_version VALUES (0)", schema))
    for number, step in enumerate(steps, version + 1):
        for statement in step.postgres:
            connection.execute(said(statement, schema))
        connection.execute(said("UPDATE @schema_version SET version = ?", schema), (number,))
