"""Cases of a database server: lost connections, shared databases, passwords."""

from __future__ import annotations

import time
from collections.abc import Generator

import psycopg
import psycopg_pool
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from segue.errors import InputError, StoreError
from segue.store.postgres import PostgresStore
from segue.store.postgres_server import display_location
from tests.store.sample_events import user_event


@pytest.fixture(scope="module")
def own_database(server: str) -> Generator[str]:
    """A database that no other test uses: its connections are cut."""
    admin(server, "CREATE DATABASE own")
    yield make_conninfo(server, dbname="own")
    admin(server, "DROP DATABASE own WITH (FORCE)")


@pytest.fixture
def database(own_database: str) -> Generator[str]:
    yield own_database
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS segue CASCADE")


@pytest.fixture
def store(database: str) -> Generator[PostgresStore]:
    with PostgresStore(database, timeout=60) as store:
        yield store


def append_when_possible(store: PostgresStore, conversation: str) -> int:
    """Appends as soon as the server takes a connection again; on a busy machine the first may come too late."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return store.append(conversation, 0, [user_event("x")])
        except StoreError as error:
            if not error.retryable or time.monotonic() > deadline:
                raise


def admin(server: str, sql: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql)  # pyright: ignore[reportCallIssue]


def wait_for_end(server: str, pid: int) -> None:
    """Wait until the server has ended this connection."""
    deadline = time.monotonic() + 60
    with psycopg.connect(server, autocommit=True) as connection:
        while connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def cut(server: str, database: str) -> None:
    name = conninfo_to_dict(database)["dbname"]
    admin(server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


def test_idle_connection_loss_is_no_error(store, server, database) -> None:
    conversation = store.create()
    cut(server, database)
    assert store.append(conversation, 0, [user_event("x")]) == 1
    assert store.get(conversation).seq == 1


def test_a_connection_that_breaks_in_the_middle_is_worth_retrying(store, server, database) -> None:
    conversation = store.create()
    now = store._now

    def cut_off(session) -> int:
        cut(server, database)
        return now(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_now", cut_off)
        with pytest.raises(StoreError) as caught:
            store.append(conversation, 0, [user_event("x")])
    assert (caught.value.cause, caught.value.retryable) == ("lost", True)
    assert store.get(conversation).seq == 0
    assert store.append(conversation, 0, [user_event("x")]) == 1


def test_a_transaction_that_stood_still_is_worth_retrying(store, server) -> None:
    """As that of a process that was suspended in the middle of a write."""
    conversation = store.create()
    now = store._now

    def stand_still(session) -> int:
        # A second: if the server ends before this result was read, the client does not get the reason.
        [(pid,)] = session.run(
            "SELECT pg_backend_pid() FROM set_config('idle_in_transaction_session_timeout', '1000', false)"
        )
        wait_for_end(server, pid)
        return now(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_now", stand_still)
        with pytest.raises(StoreError, match="the server ended the transaction") as caught:
            store.append(conversation, 0, [user_event("x")])
    assert (caught.value.cause, caught.value.retryable) == ("lost", True)
    assert store.get(conversation).seq == 0
    assert store.append(conversation, 0, [user_event("x")]) == 1


def test_unavailable_server_is_retryable(store, server, database) -> None:
    conversation = store.create()
    name = conninfo_to_dict(database)["dbname"]
    with PostgresStore(database, timeout=1) as hasty:
        admin(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        cut(server, database)
        with pytest.raises(StoreError) as caught:
            hasty.append(conversation, 0, [user_event("x")])
        assert (caught.value.cause, caught.value.retryable) == ("lost", True)
        admin(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert append_when_possible(hasty, conversation) == 1


def test_only_the_error_of_a_write_mentions_a_commit(store, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    def fail() -> None:
        raise psycopg_pool.PoolTimeout("no connection")

    conversation = store.create()
    monkeypatch.setattr(store._pool, "connection", fail)
    for access, is_write in (
        (lambda: store.append(conversation, 0, [user_event("x")]), True),
        (lambda: store.delete(conversation), True),
        (lambda: store.get(conversation), False),
        (store.list, False),
        (lambda: list(store.events(conversation)), False),
        (lambda: PostgresStore(f"postgresql:///history?host={tmp_path}"), False),
    ):
        with pytest.raises(StoreError, match="can't be reached") as caught:
            access()
        assert (caught.value.cause, caught.value.retryable) == ("lost", True)
        assert ("committed" in str(caught.value)) is is_write


def test_locked_row_is_retryable(store, database) -> None:
    conversation = store.create()
    lock_row = store._lock_row

    def lock_soon(session, conversation):
        # Only the wait for the lock is short: a busy machine needs longer to connect.
        session.run("SET LOCAL lock_timeout = 1")
        return lock_row(session, conversation)

    with PostgresStore(database, timeout=60) as other, other._write_session() as session:
        assert session.run("SHOW lock_timeout") == [("1min",)]
        other._lock_row(session, conversation)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "_lock_row", lock_soon)
            with pytest.raises(StoreError) as caught:
                store.append(conversation, 0, [user_event("x")])
    assert (caught.value.cause, caught.value.retryable) == ("locked", True)
    assert store.append(conversation, 0, [user_event("x")]) == 1


def test_commits_are_synchronous_whatever_the_server_default(server, database) -> None:
    name = conninfo_to_dict(database)["dbname"]
    for given, wanted in (("off", "on"), ("remote_apply", "remote_apply")):
        admin(server, f"ALTER DATABASE {name} SET synchronous_commit = {given}")
        with PostgresStore(database) as store, store._read_session() as session:
            assert session.run("SHOW synchronous_commit") == [(wanted,)]
    admin(server, f"ALTER DATABASE {name} RESET synchronous_commit")


def test_another_programs_tables_are_left_alone(server, database) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA segue CREATE TABLE theirs (a int)")
        with pytest.raises(StoreError) as caught:
            PostgresStore(database)
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'segue'").fetchall()
    assert caught.value.cause == "foreign"
    assert tables == [("theirs",)]


def test_existing_empty_schema_is_used(database) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA segue")
    with PostgresStore(database) as store:
        assert store.find_id(store.create())


def test_another_encoding_is_refused(server) -> None:
    admin(server, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="UTF8"):
        PostgresStore(make_conninfo(server, dbname="latin"))
    admin(server, "DROP DATABASE latin WITH (FORCE)")


def test_missing_privilege_is_reported(server, database) -> None:
    admin(server, "DROP ROLE IF EXISTS guest")
    admin(server, "CREATE ROLE guest LOGIN")
    wrong = (
        (make_conninfo(database, dbname="nowhere"), "the database does not exist"),
        (make_conninfo(database, user="stranger"), "authentication failed"),
        (make_conninfo(database, user="guest"), "permission denied"),
    )
    for url, words in wrong:
        with pytest.raises(StoreError, match=words) as caught:
            PostgresStore(url)
        assert (caught.value.cause, caught.value.retryable) == ("refused", False)


def test_two_that_make_the_same_store_at_once(database) -> None:
    import threading

    stores: list[PostgresStore] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(database))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conversation = stores[0].create()
    assert [store.get(conversation).seq for store in stores] == [0] * 6
    for store in stores:
        store.close()


def test_password_is_never_printed(server, database) -> None:
    with PostgresStore(make_conninfo(database, password="hush")) as store:
        assert "hush" not in store.location
        with pytest.raises(StoreError) as caught:
            store.get("nobody")
    assert "hush" not in str(caught.value)
    assert display_location("postgresql://me:hush@db.example:5433/history") == "postgresql://db.example:5433/history"
    with pytest.raises(InputError) as wrong:
        PostgresStore("postgresql://me:hush@[")
    assert "hush" not in str(wrong.value)


def test_a_schema_has_a_plain_name(server) -> None:
    for name in ("", "a b", 'x"; DROP', "Upper", "é"):
        with pytest.raises(InputError):
            PostgresStore(server, schema=name)
