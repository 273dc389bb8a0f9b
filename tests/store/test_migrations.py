"""Schema versions: old stores are readable and migrated, newer ones are rejected."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from segue.errors import ConflictError, LeaseError, StoreError
from segue.store import migrations
from segue.store.migrations import Migration, latest_version
from segue.store.postgres import PostgresStore
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from tests.store.conftest import ENGINES, Engine
from tests.store.former_names import rename_event
from tests.store.freeze import FROZEN, fill_store, read_all
from tests.store.sample_events import user_event

VERSIONS = sorted(int(file.stem) for file in FROZEN.glob("*.json"))
NEXT = Migration(
    "a note on each conversation",
    sqlite=("ALTER TABLE conversations ADD COLUMN note TEXT", "UPDATE conversations SET note = 'none'"),
    postgres=("ALTER TABLE @conversations ADD COLUMN note text", "UPDATE @conversations SET note = 'none'"),
)
BROKEN = Migration("breaks half-way", (*NEXT.sqlite, "CREATE nonsense"), (*NEXT.postgres, "CREATE nonsense"))
_schemas = itertools.count()

Thaw = Callable[[int], Callable[[], SqlStore]]


@pytest.fixture(params=ENGINES)
def thaw(request: pytest.FixtureRequest, tmp_path: Path) -> Thaw:
    """A frozen store, put where it can be opened."""

    def sqlite(version: int) -> Callable[[], SqlStore]:
        path = tmp_path / f"{version}.db"
        shutil.copy(FROZEN / f"{version}.db", path)
        return lambda: SqliteStore(path)

    def postgres(version: int) -> Callable[[], SqlStore]:
        server = request.getfixturevalue("server")
        schema = f"frozen_{next(_schemas)}"
        dump = (FROZEN / f"{version}.sql").read_text("utf-8")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(re.sub(r"\bsegue\b", schema, dump).encode())
        return lambda: PostgresStore(server, schema=schema)

    return sqlite if request.param == "sqlite" else postgres


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_that_was_ever_stored_is_read(thaw: Thaw, version: int) -> None:
    opened = thaw(version)
    with opened() as store:
        frozen = json.loads((FROZEN / f"{version}.json").read_text("utf-8"))
        for records in frozen["events"].values():
            records[:] = [[seq, at, rename_event(event)] for seq, at, event in records]
        assert read_all(store) == frozen
        with pytest.raises(LeaseError, match="somebody"):
            store.acquire("second", "me", 1)
        with pytest.raises(ConflictError):
            store.append("first", 0, [user_event("stale")])
        store.set_folder("first", "/elsewhere")
        assert [summary.id for summary in store.list(folder="/elsewhere")] == ["first"]
        seq = store.get("first").seq
        store.append("first", seq, [user_event("written later")])
        fork = store.fork("first", seq + 1)
    with opened() as store:
        assert store.get("first").seq == seq + 1
        assert {hit.conversation for hit in store.search("later")} == {"first", fork}
        store.delete("first", "second", fork, owner="somebody")
        assert list(store.search("read_file")) == []


def _tables(store: SqlStore, kind: str) -> list[tuple]:
    """All that makes up the schema."""
    with store._read_session() as session:
        if kind == "sqlite":
            return session.run("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'search_%' ORDER BY name")
        assert isinstance(store, PostgresStore)
        schema = store._schema
        columns = session.run(
            "SELECT table_name, column_name, data_type, is_nullable, collation_name, is_identity "
            "FROM information_schema.columns WHERE table_schema = ? ORDER BY table_name, ordinal_position",
            schema,
        )
        indexes = session.run("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = ? ORDER BY 1", schema)
        rules = session.run(
            "SELECT conname, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_namespace n "
            "ON n.oid = c.connamespace WHERE n.nspname = ? ORDER BY 1",
            schema,
        )
        return columns + [(name, definition.replace(f"{schema}.", "")) for name, definition in indexes + rules]


def test_a_changed_schema_has_a_new_number_and_a_frozen_file(thaw: Thaw, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["thaw"]
    assert latest_version() in VERSIONS, "freeze the new version: python -m tests.store.freeze"
    with thaw(latest_version())() as frozen:
        wanted = _tables(frozen, kind)
    engine = Engine(kind, request.getfixturevalue("server") if kind == "postgres" else _folder(request) + "/new.db")
    with engine.open() as store:
        assert _tables(store, kind) == wanted, "the schema is another, but its number is not"
    engine.close()


def _folder(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("tmp_path"))


def _version(engine: Engine) -> tuple[int, bool]:
    """The version that is written down, and whether the next one's column is there."""
    if engine.kind == "sqlite":
        with sqlite3.connect(engine.place) as connection:
            [version] = connection.execute("PRAGMA user_version").fetchone()
            columns = [row[1] for row in connection.execute("PRAGMA table_info(conversations)")]
        connection.close()
        return version, "note" in columns
    with psycopg.connect(engine.place) as connection:
        asked = "SELECT count(*) FROM information_schema.columns WHERE table_schema = %s AND column_name = 'note'"
        [[notes]] = connection.execute(asked, (engine.schema,)).fetchall()
        [[version]] = connection.execute(f"SELECT version FROM {engine.schema}.schema_version").fetchall()  # pyright: ignore[reportCallIssue]
    return version, bool(notes)


def test_an_older_store_is_brought_up(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.open() as store:
        fill_store(store)
        before = read_all(store)
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, NEXT])
    with engine.open() as store, engine.open() as other:
        assert read_all(store) == read_all(other) == before
    assert _version(engine) == (latest_version(), True)


def test_a_step_that_fails_changes_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.open() as store:
        fill_store(store)
        before = read_all(store)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, NEXT, BROKEN])
        with pytest.raises(StoreError):
            engine.open()
    assert _version(engine) == (latest_version(), False)
    with engine.open() as store:
        assert read_all(store) == before


def test_a_newer_store_is_refused_and_stays_as_it_is(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, NEXT])
        with engine.open() as store:
            store.create("from the future")
    file = Path(engine.place)
    before = file.read_bytes() if engine.kind == "sqlite" else b""
    with pytest.raises(StoreError) as caught:
        engine.open()
    assert caught.value.cause == "newer"
    assert all(word in str(caught.value) for word in ("newer segue", str(latest_version()), str(latest_version() + 1)))
    assert _version(engine) == (latest_version() + 1, True)
    assert not before or file.read_bytes() == before
