"""Both kinds of book: one that lasts, and one that does not."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

import segue
from segue.runtime.book import Book, Memory
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Generator[SqliteStore]:
    with SqliteStore(tmp_path / "history.db") as opened:
        yield opened


@pytest.fixture
def stored(store: SqliteStore) -> StoredConversation:
    return StoredConversation.create(store, segue.Conversation(), owner="the first")


@pytest.fixture(params=["memory", "stored"])
def book(request: pytest.FixtureRequest) -> Book:
    return Memory() if request.param == "memory" else request.getfixturevalue("stored")
