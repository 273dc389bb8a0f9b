"""SQLite on a disk that loses power or fails at any point: nothing acknowledged is lost, nothing is torn or doubled."""

from __future__ import annotations

import random
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.errors import LeaseError, StoreError
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlSession
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.budget import SOAK
from tests.store.disk import (
    CANTOPEN,
    FULL,
    IOERR_DELETE,
    IOERR_FSYNC,
    IOERR_READ,
    IOERR_SHMMAP,
    IOERR_TRUNCATE,
    IOERR_WRITE,
    Disk,
    Fault,
    Image,
    PowerLoss,
    find_library,
    write_image,
)
from tests.store.leases import TTL, Clock
from tests.store.stored_turn import State, StoredTurn, read_state, run_steps

pytestmark = pytest.mark.skipif(find_library() is None, reason="Python does not export the functions of its SQLite")

CHECKPOINTS = (1000, 8)
"""Pages of the WAL before a checkpoint: SQLite's default, and so few that a turn has several."""
DATABASE = 1
"""The number of the database file: it is opened first, before the journal and the WAL."""


class RecordedStore(SqliteStore):
    """A store on a `Disk` that marks the begin and the end of each transaction, with the rows after it."""

    def __init__(self, disk: Disk, clock: Clock, checkpoint: int) -> None:
        self.disk = disk
        super().__init__(disk.path, clock=clock)
        with self._read_session() as session:
            session.run(f"PRAGMA wal_autocheckpoint = {checkpoint}")

    @contextmanager
    def _write_session(self) -> Generator[SqlSession]:
        self.disk.mark("begin")
        with super()._write_session() as session:
            yield session
        self.disk.mark(read_state(self))


@pytest.fixture(scope="module", params=CHECKPOINTS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """The record of a whole turn, from the creation of the store until it is closed."""
    disk = Disk(tmp_path_factory.mktemp("recorded") / "history.db")
    with disk.mounted(), RecordedStore(disk, Clock(), request.param) as store:
        run_steps(StoredTurn(store))
    return disk


class Reopened:
    """Checks of the files that a power loss leaves; files that were checked before are not checked again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._images: set[Any] = set()
        self._states: list[State] = []

    def check(self, image: Image, allowed: list[State], point: int) -> None:
        key = (point, *sorted(image.items()))
        if key in self._images:
            return
        self._images.add(key)
        self.count += 1
        write_image(image, self.folder)
        clock = Clock()
        with SqliteStore(self.folder / "history.db", clock=clock) as store:
            found = read_state(store)
            assert found in allowed
            with store._read_session() as session:
                assert session.run("PRAGMA integrity_check") == [("ok",)]
                session.run("INSERT INTO @search (search) VALUES ('integrity-check')")
            if SOAK or found not in self._states:
                self._states.append(found)
                for summary in store.list():
                    self.go_on(store, summary.id, clock)

    def go_on(self, store: SqliteStore, conversation: str, clock: Clock) -> None:
        """The conversation loads and renders, and after the lease has expired another process writes to it."""
        other = StoredConversation(store, conversation, owner="another", ttl=TTL)
        if store.lease(conversation) is not None:
            with pytest.raises(LeaseError):
                other.add_user("too early")
        clock.advance(TTL)
        other.add_user("go on")
        assert [record.seq for record in store.events(conversation)] == list(range(1, other.state.seq + 1))
        for wire in WIRES if SOAK else ("anthropic",):
            assert segue.check(other.render(wire).data, wire)


def test_power_loss_keeps_all_that_was_acknowledged(recorded: Disk, quick_folder: Path) -> None:
    reopened, loss = Reopened(quick_folder), PowerLoss()
    chance = random.Random(7)
    states: list[State] = [[], *(op.mark for op in recorded.ops if op.kind == "mark" and op.mark != "begin")]
    committed, is_writing = 0, False
    for op in recorded.ops:
        loss.apply(op)
        if op.kind == "mark":
            is_writing = op.mark == "begin"
            committed += not is_writing
        images = [loss.nothing_more()]
        # While the file is created, what is written to it directly can be torn.
        is_created = op.file == DATABASE and not committed
        if SOAK or is_created or chance.random() < 0.03:
            images.append(loss.everything())
            for _ in range(10 if SOAK or is_created else 1):
                images += [loss.torn(chance), loss.reordered(chance)]
        for image in images:
            reopened.check(image, states[committed : committed + 1 + is_writing], 2 * committed + is_writing)
    assert reopened.count > 2 * committed > 30


# -------------------------------------------------------------------------------------------------------------- faults

CODES = {
    "open": [CANTOPEN],
    "read": [IOERR_READ],
    "write": [IOERR_WRITE, FULL],
    "truncate": [IOERR_TRUNCATE],
    "sync": [IOERR_FSYNC],
    "delete": [IOERR_DELETE],
    "map": [IOERR_SHMMAP],
}
SAMPLE = 2


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Disk, list[State]]:
    """A disk without faults, and the states of a turn on it."""
    disk = Disk(tmp_path_factory.mktemp("healthy") / "history.db")
    with disk.mounted(), RecordedStore(disk, Clock(), CHECKPOINTS[-1]) as store:
        return disk, run_steps(StoredTurn(store))


def run_on_failing_disk(folder: Path, fault: Fault, states: list[State]) -> None:
    disk = Disk(folder / "history.db")
    disk.fault = fault

    def recover() -> None:
        disk.fault = None

    with disk.mounted():
        try:
            store = RecordedStore(disk, Clock(), CHECKPOINTS[-1])
        except StoreError:
            recover()
            store = RecordedStore(disk, Clock(), CHECKPOINTS[-1])
        with store:
            run_steps(StoredTurn(store), states, recover)
    assert disk.has_failed
    with SqliteStore(disk.path) as store:
        assert read_state(store) == states[-1]


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in CODES.items() for code in codes])
@pytest.mark.parametrize("stays", [False, True])
def test_failing_disk_is_an_error_and_the_caller_goes_on(
    healthy: tuple[Disk, list[State]], quick_folder: Path, kind: Any, code: int, stays: bool
) -> None:
    disk, states = healthy
    points = range(disk.counts[kind] + 1)
    chosen = points if SOAK else random.Random(f"{kind} {code} {stays}").sample(points, min(SAMPLE, len(points)))
    for at in chosen:
        folder = quick_folder / str(at)
        folder.mkdir()
        run_on_failing_disk(folder, Fault(kind, at, code, stays), states)
        shutil.rmtree(folder)
