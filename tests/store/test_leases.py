"""Writers that lose their lease: clocks that are set, processes that are suspended, owners elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.errors import ConflictError, LeaseError
from segue.store import ids
from segue.store.conversation import StoredConversation
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from tests.budget import examples
from tests.store.conftest import Engine
from tests.store.leases import TTL, Clock, call_states, check_renders, open_as_second

OWNERS = ("one", "two", "three")
HOUR = 3600
BEGIN = 10**12
"""Late enough for clocks that are set back."""


def actions(depth: int) -> st.SearchStrategy[list]:
    """Lists of actions; a write may be suspended before it reaches the store, while others act."""
    kinds = st.sampled_from(("write", "acquire", "renew", "close", "reload", "set clock"))
    seconds = st.sampled_from((-HOUR, -TTL, -1, 1, TTL - 1, TTL, 5 * HOUR))
    meanwhile = actions(depth - 1) if depth else st.just([])
    return st.lists(st.tuples(kinds, st.integers(0, 2), seconds, meanwhile), max_size=8 if depth else 4)


class Writers:
    """Three processes on three machines with clocks of their own, at one conversation."""

    def __init__(self, open_store: Callable[[Clock], SqlStore]) -> None:
        self.clocks = [Clock() for _ in OWNERS]
        self.stores = [open_store(clock) for clock in self.clocks]
        self.begin()

    def begin(self) -> None:
        """Begin another conversation, with clocks that agree."""
        for clock in self.clocks:
            clock.now = BEGIN
        self.id = self.stores[0].create()
        self.written: list[str] = []
        self.writers = [
            StoredConversation(store, self.id, owner=owner, ttl=TTL)
            for store, owner in zip(self.stores, OWNERS, strict=True)
        ]

    def run(self, steps: list) -> None:
        for kind, number, seconds, meanwhile in steps:
            writer = self.writers[number]
            if kind == "set clock":
                self.clocks[number].advance(seconds)
                continue
            try:
                if kind == "write":
                    self.write(number, meanwhile)
                elif kind == "acquire":
                    self.stores[number].acquire(self.id, OWNERS[number], TTL)
                else:
                    {"renew": writer.renew_lease, "close": writer.close, "reload": writer.reload}[kind]()
            except (LeaseError, ConflictError):
                pass

    def write(self, number: int, meanwhile: list) -> None:
        """Write a message; before it reaches the store, the process is suspended."""
        store, text = self.stores[number], f"{OWNERS[number]} {len(self.written)}"
        append = store.append

        def resume(*given, **more) -> int:
            store.append = append
            self.run(meanwhile)
            seq = append(*given, **more)
            lease = self.read_lease()
            assert lease == [(OWNERS[number],)], "written without the lease"
            self.written.append(text)
            return seq

        store.append = resume
        try:
            self.writers[number].add_user(text)
        finally:
            store.append = append

    def read_lease(self) -> list[tuple[str]]:
        """The owner in the database, expired or not."""
        with self.stores[0]._read_session() as session:
            return session.run(
                "SELECT owner FROM @leases l JOIN @conversations c ON c.number = l.conversation WHERE c.id = ?", self.id
            )

    def check(self) -> None:
        records = list(self.stores[0].events(self.id))
        assert [record.event.message.blocks[0].text for record in records] == self.written  # pyright: ignore[reportAttributeAccessIssue]
        assert [record.at for record in records] == sorted(record.at for record in records)


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Writers]:
    path = tmp_path_factory.mktemp("leases") / "history.db"
    writers = Writers(lambda clock: SqliteStore(path, clock=clock))
    yield writers
    for store in writers.stores:
        store.close()


@examples(1)
@given(actions(2))
@example([("write", 0, 0, [("set clock", 1, TTL, []), ("acquire", 1, 0, [])])])
@example([("write", 0, 0, [("set clock", 1, TTL, []), ("write", 1, 0, [])]), ("write", 0, 0, [])])
@example([("write", 0, 0, []), ("set clock", 0, -HOUR, []), ("write", 1, 0, []), ("write", 0, 0, [])])
def test_a_write_has_the_lease_whatever_the_clocks_say(writers: Writers, steps: list) -> None:
    writers.begin()
    writers.run(steps)
    writers.check()


def test_suspended_writer_is_refused_after_the_lease_was_acquired(engine: Engine) -> None:
    writers = Writers(lambda clock: engine.open(clock=clock))
    writers.run([("write", 0, 0, [("set clock", 1, TTL, []), ("acquire", 1, 0, [])])])
    assert writers.written == []
    writers.run([("write", 1, 0, []), ("write", 0, 0, [])])
    assert writers.written == ["two 0"]
    writers.check()


def test_lost_lease_is_reported_once_and_can_be_acquired_again(stores, kept, clock: Clock) -> None:
    append = stores[0].append

    def suspended(*given, **more) -> int:
        clock.advance(TTL)
        stores[1].acquire(kept.id, "the second", TTL)
        return append(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores[0], "append", suspended)
        with pytest.raises(LeaseError) as caught:
            kept.add_result(kept.pending[0], "late")
    assert caught.value.owner == "the second"
    stores[1].release(kept.id, "the second")
    # As for every process that resumes: the calls may have been run by the one that held the lease meanwhile.
    kept.add_user("again")
    assert call_states(kept) == ["interrupted", "interrupted"]
    assert open_as_second(stores, kept).messages == kept.messages
    check_renders(kept)


def test_process_on_another_machine_of_the_same_name_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems without `/proc`, the hardware address tells machines apart."""
    monkeypatch.setattr(ids, "Path", lambda path: Path("/nowhere") / str(path).lstrip("/"))
    monkeypatch.setattr(ids, "_pid_scope", ids._pid_scope.__wrapped__)
    monkeypatch.setattr("os.getpid", lambda: 2**30)  # no process has it
    ended = ids.new_owner()
    assert ids.has_ended(ended)
    monkeypatch.setattr(ids, "getnode", lambda: 0x123456789ABC)
    assert not ids.has_ended(ended)


def test_the_clock_of_the_server_decides(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose clock is hours ahead does not acquire a lease that is held."""
    with closing(Engine("postgres", server)) as engine:
        first, second = engine.open(), engine.open()
        conversation = first.create()
        lease = first.acquire(conversation, "one", TTL)
        monkeypatch.setattr("time.time_ns", lambda: (lease.expires + HOUR * 1_000_000) * 1000)
        monkeypatch.setattr("time.time", lambda: lease.expires / 1_000_000 + HOUR)
        with pytest.raises(LeaseError):
            second.acquire(conversation, "two", TTL)
        assert second.lease(conversation) == lease
