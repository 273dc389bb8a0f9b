"""Files that are damaged, or are not a segue store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from segue.store.conversation import StoredConversation
from segue.store.migrations import latest_version
from segue.store.sqlite import SqliteStore
from tests.store.sample_events import user_event

PAGE = 4096


def create_store(path: Path) -> str:
    """A store with one conversation, in more than ten pages."""
    with SqliteStore(path) as store:
        return store.create("a title", events=[user_event(f"message {n} " + "word " * 40) for n in range(40)])


def use_store(path: Path, id: str) -> None:
    """Open the store, and read and write all that a command reads and writes."""
    with SqliteStore(path) as store:
        for row in store.list():
            list(store.events(row.id))
            store.tail(row.id, 3)
            store.lease(row.id)
        store.search("word")
        with StoredConversation(store, store.find_id(id)) as kept:
            kept.add_user("more")
        store.fork(id, 2)
        store.delete(id)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _other_application(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE conversations (id)")
    connection.commit()
    connection.close()


def _newer(path: Path) -> None:
    create_store(path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {latest_version() + 1}")
    connection.close()


def _damaged_schema(path: Path) -> None:
    create_store(path)
    overwrite(path, path.read_bytes().index(b"CREATE TABLE"), b"\xff" * 60)


def _damaged(at: int, data: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        create_store(path)
        overwrite(path, at, data)

    return make


def _cut(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        create_store(path)
        os.truncate(path, size)

    return make


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "a picture": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40),
    "a text": lambda path: path.write_text("dear diary\n" * 50, "utf-8"),
    "one byte": lambda path: path.write_bytes(b"S"),
    "a folder": lambda path: path.mkdir(),
    "another application's": _other_application,
    "a newer version's": _newer,
    "a schema that is not UTF-8": _damaged_schema,
    "a page of zeros": _damaged(PAGE, bytes(PAGE)),
    "no first page": _damaged(0, bytes(PAGE)),
    "cut in the first page": _cut(1000),
    "cut after the first page": _cut(PAGE),
    "cut in the third page": _cut(2 * PAGE + 77),
}
