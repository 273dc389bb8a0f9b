"""Both conversation logs: stored and in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

import segue
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
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
def conversation_log(request: pytest.FixtureRequest) -> ConversationLog:
    return InMemoryLog() if request.param == "memory" else request.getfixturevalue("stored")


@pytest.fixture
def quick_folder(tmp_path: Path) -> Generator[Path]:
    """A folder in memory where there is one: for tests that write often and do not ask what is on disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="segue-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)
