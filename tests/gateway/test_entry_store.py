"""Entries of a bridge in a database: bounds, several processes, files of other programs."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from segue.errors import StoreError
from segue.gateway.client_uses import LEASE, WINDOW, UseCounts
from segue.gateway.entry_store import EntryLimits, EntryStore, SqliteEntries
from segue.gateway.postgres_entries import PostgresEntries
from segue.gateway.shared_entries import open_entries
from segue.store.sqlite import SqliteStore

Open = Callable[..., EntryStore]
_names = itertools.count()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Generator[Open]:
    """A function that opens one more store at the same place."""
    stores: list[EntryStore] = []
    url = request.getfixturevalue("server") if request.param == "postgres" else ""
    schema = f"e{os.getpid()}_{next(_names)}"

    def open_one(**limits: float) -> EntryStore:
        bounds = EntryLimits(**limits)
        store = (
            PostgresEntries(url, bounds, schema=schema, clock=clock)
            if url
            else SqliteEntries(tmp_path / "entries.db", bounds, clock=clock)
        )
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()
    if url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")  # pyright: ignore[reportCallIssue]


def test_entries_are_shared(opened: Open) -> None:
    one, two = opened(), opened()
    one.save({"a": b"\x00\xff", "b": b""})
    two.save({"b": b"2"})
    assert two.load(["a", "b", "c"]) == {"a": b"\x00\xff", "b": b"2"}
    assert one.load(["b"]) == {"b": b"2"}
    two.delete(["a", "nothing"])
    assert one.load(["a"]) == {}
    assert one.load([]) == {}


def test_many_keys(opened: Open) -> None:
    store = opened()
    entries = {f"key {number}": b"%d" % number for number in range(1201)}
    store.save(entries)
    assert store.load([*entries, "other"]) == entries
    store.delete(entries)
    assert store.load(entries) == {}


def test_least_recently_used_entries_are_dropped(opened: Open, clock: Clock) -> None:
    store = opened(size=10_000, age=10_000)
    for number in range(30):
        clock.now += 200
        store.save({f"{number:02}": bytes(998)})
        assert "00" in store.load(["00"])
    left = store.load([f"{number:02}" for number in range(30)])
    assert 8 <= len(left) <= 10
    assert sorted(left)[1:] == [f"{number:02}" for number in range(30)][-len(left) + 1 :]


def test_expired_entries_are_dropped(opened: Open, clock: Clock) -> None:
    store = opened(age=100)
    store.save({"used": b"1", "unused": b"2"})
    clock.now += 60
    assert store.load(["used"])
    clock.now += 60
    assert store.load(["used", "unused"]) == {"used": b"1"}
    opened(age=100).save({"new": b"3"})
    assert sorted(opened(age=10_000).load(["used", "unused", "new"])) == ["new", "used"]


def test_writers_at_once(opened: Open) -> None:
    failed: list[BaseException] = []

    def work(store: EntryStore, number: int) -> None:
        try:
            for turn in range(20):
                keys = [f"{(number + step) % 5}" for step in range(5)]
                store.save(dict.fromkeys(keys, b"x" * 500))
                store.save({f"own {number} {turn}": b"y" * 100})
                store.load(keys)
        except BaseException as error:  # noqa: BLE001  asserted below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(opened(size=5_000), number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_file_is_of_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "entries.db"
    store = open_entries(str(path))
    store.save({"a": b"1"})
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.load(["a"])


def test_other_files_are_rejected_unchanged(tmp_path: Path) -> None:
    conversations = tmp_path / "history.db"
    SqliteStore(conversations).close()
    text = tmp_path / "text"
    text.write_text("not a database" * 100)
    for path in (conversations, text):
        before = path.read_bytes()
        with pytest.raises(StoreError) as raised:
            open_entries(str(path))
        assert raised.value.cause == "foreign"
        assert path.read_bytes() == before
    entries = tmp_path / "entries.db"
    open_entries(str(entries)).close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(entries)


def test_removed_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "entries.db"
    store = open_entries(str(path))
    store.save({"a": b"1"})
    for file in list(tmp_path.iterdir()):
        file.unlink()
    with pytest.raises(StoreError, match="removed or replaced"):
        store.load(["a"])
    with pytest.raises(StoreError, match="removed or replaced"):
        store.save({"b": b"1"})
    store.close()
    assert not path.exists()


# ------------------------------------------------------------------------------------------------------------- uses


def test_uses_count_for_all_processes(opened: Open) -> None:
    first, second = opened(), opened()
    seen: list[UseCounts] = []

    def record(_at: int, counts: UseCounts) -> None:
        seen.append(counts)

    assert first.begin_use(["ada"], "1", record) is None
    assert second.begin_use(["ada"], "2", record) is None
    assert second.begin_use(["bob"], "3", record) is None
    first.end_use(["ada"], "2", tokens=70)
    second.renew_uses(["1/ada", "2/ada"])
    assert second.begin_use(["ada"], "4", record) is None
    counted = [(counts.open, counts.requests, counts.tokens) for counts in seen]
    assert counted == [(0, 0, 0), (1, 1, 0), (0, 0, 0), (1, 2, 70)]


def test_denied_use_is_not_counted(opened: Open) -> None:
    store = opened()
    assert store.begin_use(["ada"], "1", lambda _at, _counts: None) is None
    assert store.begin_use(["ada"], "2", lambda _at, counts: counts.requests) == 1
    assert store.begin_use(["ada"], "3", lambda _at, counts: counts.requests) == 1


def test_uses_and_leases_end(tmp_path: Path, clock: Clock) -> None:
    store = SqliteEntries(tmp_path / "entries.db", clock=clock)
    assert store.begin_use(["ada"], "1", lambda _at, _counts: None) is None
    assert store.begin_use(["ada"], "2", lambda _at, _counts: None) is None
    clock.now += LEASE / 2
    store.renew_uses(["1/ada"])
    store.end_use(["ada"], "2", 5)
    clock.now += LEASE / 2 + 1
    # The lease of a process that was killed is not renewed.
    counts = store.begin_use(["ada"], "3", lambda _at, counts: counts)
    assert counts is not None
    assert (counts.open, counts.requests, counts.tokens) == (1, 2, 5)
    assert counts.oldest_request == LEASE + 1
    assert counts.oldest_tokens == LEASE / 2 + 1
    clock.now += WINDOW
    counts = store.begin_use(["ada"], "3", lambda _at, counts: counts)
    assert counts == UseCounts()
    store.close()


def test_concurrent_uses_are_exact(opened: Open) -> None:
    """However many threads and processes there are, no more than the limit is admitted."""
    stores = [opened() for _ in range(3)]
    admitted: list[str] = []

    def work(store: EntryStore, number: int) -> None:
        for index in range(5):
            use = f"{number}-{index}"
            if store.begin_use(["ada"], use, lambda _at, counts: True if counts.open >= 4 else None) is None:
                admitted.append(use)

    threads = [threading.Thread(target=work, args=(store, number)) for number, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 4


def test_store_of_an_earlier_version_gets_the_table_of_uses(tmp_path: Path) -> None:
    path = tmp_path / "entries.db"
    store = SqliteEntries(path)
    store.save({"key": b"value"})
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE uses")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    store = SqliteEntries(path)
    assert store.load(["key"]) == {"key": b"value"}
    assert store.begin_use(["ada"], "1", lambda _at, _counts: None) is None
    store.close()
