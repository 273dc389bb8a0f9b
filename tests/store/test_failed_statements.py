"""A write that fails at any of its statements: nothing is written, no lease is left, and the next write works."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest

import segue
from segue.canonical.blocks import Text
from segue.canonical.request import Reply
from segue.errors import LeaseError, StoreError
from segue.store.conversation import StoredConversation
from segue.store.export import save_events
from segue.store.sql import SqlSession, SqlStore
from tests.store.conftest import Engine
from tests.store.leases import TOOLS, check_renders
from tests.store.reply_bodies import reply_body
from tests.store.sample_events import user_event


class Failure(NamedTuple):
    """What a statement raises, and the cause of the `StoreError` that the caller gets; None: the same exception."""

    error: BaseException
    cause: str | None


def sqlite_error(name: str, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("injected")
    error.sqlite_errorname = name
    return error


CANCELLED = {"interrupted": Failure(KeyboardInterrupt(), None), "cancelled": Failure(asyncio.CancelledError(), None)}
# The same names for both engines.
FAILURES: dict[str, dict[str, Failure]] = {
    "sqlite": {
        "full": Failure(sqlite_error("SQLITE_FULL"), "full"),
        "read-only": Failure(sqlite_error("SQLITE_READONLY_DBMOVED"), "readonly"),
        "locked": Failure(sqlite_error("SQLITE_BUSY_SNAPSHOT"), "locked"),
        "constraint": Failure(sqlite_error("SQLITE_CONSTRAINT_UNIQUE", sqlite3.IntegrityError), "corrupt"),
        "broken": Failure(sqlite_error("SQLITE_IOERR_FSYNC"), "failed"),
        **CANCELLED,
    },
    "postgres": {
        "full": Failure(psycopg.errors.DiskFull("injected"), "full"),
        "read-only": Failure(psycopg.errors.ReadOnlySqlTransaction("injected"), "readonly"),
        "locked": Failure(psycopg.errors.LockNotAvailable("injected"), "locked"),
        "constraint": Failure(psycopg.errors.UniqueViolation("injected"), "failed"),
        "broken": Failure(psycopg.OperationalError("injected"), "lost"),
        **CANCELLED,
    },
}


class FailingSession:
    """A session that counts its statements before it runs them."""

    def __init__(self, session: SqlSession, count: Callable[[], None]) -> None:
        self._session = session
        self._count = count

    def run(self, sql: str, *values: object) -> list[Any]:
        self._count()
        return self._session.run(sql, *values)

    def run_many(self, sql: str, rows: Sequence[Any]) -> None:
        self._count()
        self._session.run_many(sql, rows)


@contextmanager
def failing_at(store: SqlStore, number: int, error: BaseException, *, lasting: bool) -> Generator[None]:
    """Make the statement with this number fail, a commit counted as one; with `lasting` all later ones fail too."""
    counter = itertools.count(1)
    write_session = store._write_session

    def count() -> None:
        current = next(counter)
        if current == number or (lasting and current > number):
            raise error

    @contextmanager
    def counted_session() -> Generator[SqlSession]:
        with write_session() as session:
            yield FailingSession(session, count)
            count()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_write_session", counted_session)
        yield


def fail_at_each_statement(
    store: SqlStore, failure: Failure, write: Callable[[], object], *, lasting: bool
) -> Iterator[int]:
    """Repeat a write with its first, second, … statement failing until it succeeds; yield after each failure."""
    for number in itertools.count(1):
        with failing_at(store, number, failure.error, lasting=lasting):
            caught = _catch(write)
        if caught is None:
            assert number > 3
            return
        assert getattr(caught, "cause", None) == failure.cause
        yield number


def _catch(write: Callable[[], object]) -> BaseException | None:
    try:
        write()
    except (StoreError, KeyboardInterrupt, asyncio.CancelledError) as error:
        return error
    return None


def open_calls(store: SqlStore) -> str:
    """A conversation with two pending calls, which no process holds."""
    with StoredConversation.create(store, segue.Conversation(tools=TOOLS)) as kept:
        kept.add_user("go")
        kept.render("anthropic")
        kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1"), ("run", "toolu_2")]))
        return kept.id


def stored_state(store: SqlStore, id: str) -> tuple[Any, ...]:
    return store.get(id), list(store.events(id)), store.lease(id)


WRITES: Mapping[str, Callable[[StoredConversation], object]] = {
    "add_user": lambda kept: kept.add_user("never mind"),
    "add_result": lambda kept: kept.add_result(kept.pending[0], "one"),
    "add_reply": lambda kept: kept.add_reply(Reply((Text("fine"),))),
    "rename": lambda kept: kept.rename("another"),
}
# All failures of the largest write, and one failure of the others.
FIRST_WRITES = [*[("add_user", name, False) for name in FAILURES["sqlite"]], *[(name, "full", True) for name in WRITES]]


@pytest.mark.parametrize(("write", "failure", "lasting"), FIRST_WRITES)
def test_failed_first_write_leaves_no_lease(engine: Engine, write: str, failure: str, lasting: bool) -> None:
    store, other = engine.open(), engine.open()
    id = open_calls(store)
    before = stored_state(other, id)
    assert before[-1] is None
    writer = StoredConversation(store, id)
    for _ in fail_at_each_statement(
        store, FAILURES[engine.kind][failure], lambda: WRITES[write](writer), lasting=lasting
    ):
        assert stored_state(other, id) == before
        other.acquire(id, "another process", 60)
        other.release(id, "another process")
    with pytest.raises(LeaseError):
        other.acquire(id, "another process", 60)
    assert writer.messages == StoredConversation(other, id).messages
    writer.close()
    other.acquire(id, "another process", 60)


@contextmanager
def interrupted_after_commit(store: SqlStore) -> Generator[None]:
    """Make the first write fail as by a signal that arrives after its commit."""
    write_session, signals = store._write_session, [KeyboardInterrupt()]

    @contextmanager
    def interrupted_session() -> Generator[SqlSession]:
        with write_session() as session:
            yield session
        if signals:
            raise signals.pop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_write_session", interrupted_session)
        yield


@pytest.mark.parametrize("write", [*WRITES, "compress"])
def test_first_write_that_is_interrupted_after_its_commit_leaves_no_lease(engine: Engine, write: str) -> None:
    store, other = engine.open(), engine.open()
    writer = StoredConversation(store, open_calls(store))
    writes = {**WRITES, "compress": lambda kept: kept.compress("drop-oldest", 1)}
    with interrupted_after_commit(store), pytest.raises(KeyboardInterrupt):
        writes[write](writer)
    assert other.lease(writer.id) is None


@pytest.mark.parametrize("write", WRITES)
def test_failed_later_write_keeps_the_lease_until_close(engine: Engine, write: str) -> None:
    store, other = engine.open(), engine.open()
    writer = StoredConversation(store, open_calls(store))
    writer.add_user("hold on")
    writer.add_reply(reply_body("anthropic", calls=[("look", "toolu_3"), ("run", "toolu_4")]))
    before, messages = stored_state(other, writer.id), writer.messages
    for _ in fail_at_each_statement(store, FAILURES[engine.kind]["full"], lambda: WRITES[write](writer), lasting=False):
        assert stored_state(other, writer.id) == before
        assert writer.messages == messages
    check_renders(writer)
    writer.close()
    other.acquire(writer.id, "another process", 60)


CREATIONS: Mapping[str, Callable[[SqlStore, str], object]] = {
    "create": lambda store, id: store.create("a title", "own-id"),
    "a conversation": lambda store, id: StoredConversation.create(
        store, StoredConversation(store, id).chat, title="x", target=("kimi", None)
    ),
    "a subagent's": lambda store, id: StoredConversation(store, id).create_child(segue.Conversation(), "x"),
    "import": lambda store, id: save_events(store, [user_event("x"), user_event("y")], title="x"),
    "fork": lambda store, id: StoredConversation(store, id).fork("turn-1"),
}


@pytest.mark.parametrize("creation", CREATIONS)
@pytest.mark.parametrize("failure", ["full", "interrupted"])
def test_failed_creation_leaves_nothing(engine: Engine, creation: str, failure: str) -> None:
    store, other = engine.open(), engine.open()
    id = open_calls(store)
    with StoredConversation(store, id) as kept:
        # A result that is written after the turn: the fork of the turn contains it too.
        calls = kept.pending
        kept.add_result(calls[0], "one")
        kept.add_reply(Reply((Text("fine"),)))
        kept.add_result(calls[1], "late")
    before = stored_state(other, id)
    for _ in fail_at_each_statement(
        store, FAILURES[engine.kind][failure], lambda: CREATIONS[creation](store, id), lasting=True
    ):
        assert [row.id for row in other.list()] == [id]
        assert stored_state(other, id) == before
        with other._read_session() as session:
            assert session.run("SELECT count(*) FROM @leases") == [(0,)]
            assert session.run("SELECT count(*) FROM @events") == [(before[0].seq,)]
    assert len(other.list()) == 2
