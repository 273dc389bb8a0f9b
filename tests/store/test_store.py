"""What a store does, in both engines."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest

from segue.errors import ConflictError, InputError, LeaseError, StoreError
from segue.store.base import ConversationSummary, format_time
from segue.store.events import Event, Forked, MessageAdded, Renamed, Sent, Switched
from segue.store.ids import has_ended, new_owner
from segue.store.rows import row_checksum
from segue.store.sql import SqlSession, SqlStore
from tests.budget import sample
from tests.store.conftest import Engine
from tests.store.sample_events import EACH_KIND, result_event, user_event


class Clock:
    """A clock that is set by hand, in seconds."""

    def __init__(self, seconds: float = 1_800_000_000) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return round(self.seconds * 1_000_000)


def events_of(store: SqlStore, conversation: str, after: int = 0, until: int | None = None) -> list[Event]:
    return [record.event for record in store.events(conversation, after, until)]


# --------------------------------------------------------------------------------------------------- append and read


def test_every_kind_of_event_comes_back_in_a_new_store(engine: Engine) -> None:
    with engine.open() as store:
        conversation = store.create()
        assert store.append(conversation, 0, EACH_KIND) == len(EACH_KIND)
    records = list(engine.open().events(conversation))
    assert [record.event for record in records] == list(EACH_KIND)
    assert [record.seq for record in records] == list(range(1, len(EACH_KIND) + 1))


def test_stale_writer_gets_the_actual_sequence(store: SqlStore) -> None:
    conversation = store.create()
    store.append(conversation, 0, [user_event("one"), user_event("two")])
    with pytest.raises(ConflictError) as caught:
        store.append(conversation, 1, [user_event("stale")])
    assert (caught.value.conversation, caught.value.expected, caught.value.actual) == (conversation, 1, 2)
    assert all(word in str(caught.value) for word in (conversation, "1", "2"))
    with pytest.raises(ConflictError):
        store.append(conversation, 3, [user_event("from the future")])
    assert events_of(store, conversation) == [user_event("one"), user_event("two")]
    assert store.append(conversation, 2, [user_event("three")]) == 3


def test_empty_append_only_checks(store: SqlStore) -> None:
    conversation = store.create()
    before = store.get(conversation)
    assert store.append(conversation, 0, []) == 0
    assert store.get(conversation) == before
    with pytest.raises(ConflictError):
        store.append(conversation, 1, [])


def test_an_append_is_whole_or_not_at_all(store: SqlStore) -> None:
    conversation = store.create()
    with pytest.raises(InputError):
        store.append(conversation, 0, [user_event("good"), Renamed("\ud800")])
    assert store.get(conversation).seq == 0

    # The index comes after the events: what was written before it failed has to go again.
    def broken(*_: object) -> None:
        raise RuntimeError("lightning")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_add_to_index", broken)
        with pytest.raises(RuntimeError):
            store.append(conversation, 0, [user_event("good")])
    assert events_of(store, conversation) == []
    assert store.append(conversation, 0, [user_event("better")]) == 1


def test_stretches_and_tails(store: SqlStore) -> None:
    conversation = store.create()
    messages = [user_event(str(number)) for number in range(1, 601)]
    store.append(conversation, 0, messages)
    assert events_of(store, conversation) == messages
    assert events_of(store, conversation, 10, 13) == messages[10:13]
    assert events_of(store, conversation, 598) == messages[598:]
    assert events_of(store, conversation, -5, 2) == messages[:2]
    assert events_of(store, conversation, 600) == events_of(store, conversation, 7, 7) == []
    assert events_of(store, conversation, 0, 10_000) == messages
    assert [record.event for record in store.tail(conversation, 3)] == messages[-3:]
    assert [record.event for record in store.tail(conversation, 10_000)] == messages
    assert list(store.tail(conversation, 0)) == list(store.tail(conversation, -1)) == []


def test_what_is_appended_while_reading_is_not_read(store: SqlStore) -> None:
    conversation = store.create()
    store.append(conversation, 0, [user_event(str(number)) for number in range(300)])
    reading = store.events(conversation)
    next(reading)
    store.append(conversation, 300, [user_event("late")])
    assert len(list(reading)) == 299


def test_a_conversation_that_is_deleted_while_it_is_read_does_not_seem_to_end(store: SqlStore) -> None:
    conversation = store.create()
    store.append(conversation, 0, [user_event(str(number)) for number in range(300)])
    reading = store.events(conversation)
    next(reading)
    store.delete(conversation)
    with pytest.raises(StoreError) as caught:
        list(reading)
    assert caught.value.cause == "missing"


MISSING = (
    lambda store: store.append("nobody", 0, []),
    lambda store: store.events("nobody"),
    lambda store: store.tail("nobody", 1),
    lambda store: store.get("a\x00b"),
    lambda store: store.fork("nobody", 0),
    lambda store: store.delete("nobody"),
    lambda store: store.acquire("nobody", "me", 1),
    lambda store: store.renew("nobody", "me", 1),
    lambda store: store.release("nobody", "me"),
)


def test_a_conversation_that_is_not_there_is_missing(store: SqlStore) -> None:
    for use in MISSING:
        with pytest.raises(StoreError) as caught:
            use(store)
        assert caught.value.cause == "missing"


def test_closed_store_raises(engine: Engine) -> None:
    store = engine.open()
    store.close()
    store.close()
    for use in (store.list, store.create):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_threads_share_a_store(store: SqlStore) -> None:
    conversations = [store.create() for _ in range(4)]
    failures: list[BaseException] = []

    def write(conversation: str) -> None:
        try:
            for seq in range(15):
                store.append(conversation, seq, [user_event(f"{conversation} {seq}")])
                assert store.get(conversation).seq == seq + 1
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=write, args=(conversation,)) for conversation in conversations]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for conversation in conversations:
        assert events_of(store, conversation) == [user_event(f"{conversation} {seq}") for seq in range(15)]


# ------------------------------------------------------------------------------------------------ times, ids and lists


def test_times_are_the_stores_and_never_go_back(engine: Engine) -> None:
    clock = Clock(1_000)
    store = engine.open(clock=clock)
    conversation = store.create()
    store.append(conversation, 0, [user_event("one")])
    clock.seconds = 900
    store.append(conversation, 1, [user_event("two")])
    clock.seconds = 1_100.5
    store.append(conversation, 2, [user_event("three")])
    assert [record.at / 1e6 for record in store.events(conversation)] == [1_000, 1_000, 1_100.5]
    summary = store.get(conversation)
    assert (format_time(summary.created), format_time(summary.updated)) == (
        "1970-01-01T00:16:40.000Z",
        "1970-01-01T00:18:20.500Z",
    )


def test_earlier_events_may_have_times(engine: Engine) -> None:
    now = 2_000_000_000
    store = engine.open(clock=lambda: now)
    conversation = store.create("old", at=1_000)
    assert (store.get(conversation).created, store.get(conversation).updated) == (1_000, 1_000)
    store.append(conversation, 1, [user_event("a"), user_event("b"), user_event("c")], at=[3_000, 2_000, 4_000])
    assert [record.at for record in store.events(conversation)] == [1_000, 3_000, 3_000, 4_000]
    assert store.get(conversation).updated == 4_000
    recent = store.create("new")
    assert [row.id for row in store.list()] == [recent, conversation]
    # Nothing happened after now or before 1970, and nothing before what it follows.
    store.append(conversation, 4, [user_event("d"), user_event("e"), user_event("f")], at=[-5, now + 5, 6_000])
    assert [record.at for record in store.events(conversation, 4)] == [4_000, now, now]
    fork = store.fork(conversation, 2)
    assert [record.at for record in store.events(fork)] == [1_000, 3_000, now]
    assert store.get(store.create(at=now + 5)).created == now
    with pytest.raises(InputError, match="expected 2 times"):
        store.append(conversation, 7, [user_event("g"), user_event("h")], at=[1])
    assert store.get(conversation).seq == 7


def test_no_number_is_too_large(store: SqlStore) -> None:
    conversation = store.create("the title")
    many = 10**30
    assert len(store.list(many)) == len(store.search("title", many)) == len(store.tail(conversation, many)) == 1
    assert list(store.events(conversation, many)) == []
    assert len(list(store.events(conversation, 0, many))) == 1


def test_default_clock_is_the_current_time(store: SqlStore) -> None:
    import time

    before = time.time()
    created = store.get(store.create()).created / 1e6
    # The same machine: the server's clock is ours.
    assert before - 1 < created < time.time() + 1


def test_ids_sort_by_time_and_are_short(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    names: list[str] = []
    for _ in range(20):
        names.append(store.create())
        clock.seconds += 1
    assert names == sorted(names)
    assert all(re.fullmatch("[0-9a-z]{12}", name) for name in names)
    assert all(store.find_id(name[:7]) == name for name in names)


def test_id_prefix_finds_its_conversation(store: SqlStore) -> None:
    for name in ("alpha", "alphabet", "beta_1", "betaX1", "Gamma"):
        assert store.create(id=name) == name
    assert store.find_id("alpha") == "alpha"
    assert store.find_id("alphab") == "alphabet"
    assert store.find_id("beta_") == "beta_1"
    assert store.find_id("ALPHAB") == "alphabet"
    assert store.find_id("G") == "Gamma"
    with pytest.raises(InputError, match="beta_1"):
        store.find_id("beta")
    for nothing in ("gamma", "%", "alpha~", "x\x00"):
        with pytest.raises(InputError, match="no conversation"):
            store.find_id(nothing)


def test_the_end_of_an_id_finds_its_conversation(store: SqlStore) -> None:
    for name in ("first-xyz", "second-xyz", "xy", "third-abc"):
        store.create(id=name)
    assert store.find_id("abc") == "third-abc"
    assert store.find_id("ABC") == "third-abc"
    assert store.find_id("d-xyz") == "second-xyz"
    assert store.find_id("xy") == "xy"
    with pytest.raises(InputError, match="several conversation ids end with '-xyz': first-xyz, second-xyz"):
        store.find_id("-xyz")


def test_a_number_finds_its_conversation(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    for name in ("oldest", "middle", "newest-2", "7"):
        clock.seconds += 1
        store.create(id=name)
    clock.seconds += 1
    store.append("oldest", 0, [user_event("again")])
    numbered = [(store.number_of(summary), summary.id) for summary in store.list()]
    assert numbered == [(1, "oldest"), (2, "7"), (3, "newest-2"), (4, "middle")]
    assert [store.find_id(str(number)) for number, _ in numbered] == [name for _, name in numbered]
    assert store.find_id("7") == "7"
    assert store.find_id("2", by_number=False) == "newest-2"
    for wrong in ("0", "5", "9999"):
        with pytest.raises(InputError, match=f"no conversation number {wrong}; there are 4"):
            store.find_id(wrong)
    with pytest.raises(InputError, match="begins or ends with '12345'"):
        store.find_id("12345")


def test_conversations_belong_to_a_folder(store: SqlStore) -> None:
    here, there = "/projects/zoë", "/elsewhere"
    first, second = store.create(folder=here), store.create(folder=there)
    nowhere = store.create()
    fork = store.fork(first, 0)
    assert {summary.id: summary.folder for summary in store.list()} == {
        first: here,
        second: there,
        nowhere: None,
        fork: here,
    }
    assert {summary.id for summary in store.list(folder=here)} == {first, fork}
    newest, _ = store.list(folder=here)
    assert [summary.id for summary in store.list(folder=here, before=newest)] == [({first, fork} - {newest.id}).pop()]
    updated = store.get(nowhere).updated
    store.set_folder(nowhere, there)
    assert store.get(nowhere).updated == updated
    assert {summary.id for summary in store.list(folder=there)} == {second, nowhere}
    with pytest.raises(StoreError, match="no conversation"):
        store.set_folder("missing", there)


def test_not_everything_can_be_an_id(store: SqlStore) -> None:
    for name in ("", "a b", "-x", "ä", "a\x00", "x" * 65, "a/b"):
        with pytest.raises(InputError):
            store.create(id=name)
    assert list(store.list()) == []


def test_an_id_is_given_once(store: SqlStore) -> None:
    store.create(id="mine")
    with pytest.raises(InputError, match="already"):
        store.create(id="mine")


def test_list_has_conversation_summaries(store: SqlStore) -> None:
    conversation = store.create("first title")
    assert store.get(conversation).seq == 1
    assert events_of(store, conversation) == [Renamed("first title")]
    store.append(
        conversation,
        1,
        [Sent("anthropic", "claude"), user_event("  Hello\n there  "), user_event("again"), result_event("r")],
    )
    store.append(conversation, 5, [Switched("gemini"), Renamed("second\0title")])
    [summary] = store.list()
    assert summary == store.get(conversation)
    assert (summary.title, summary.seq, summary.messages) == ("second\ufffdtitle", 7, 3)
    assert (summary.model, summary.opening) == ("claude", "Hello there")
    store.append(conversation, 7, [Renamed(""), Switched("gemini", "gemini-3")])
    assert (store.get(conversation).title, store.get(conversation).model) == (None, "gemini-3")


def test_the_last_written_comes_first_and_pages_follow(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    names: list[str] = []
    for number in range(10):
        clock.seconds += number % 3 == 0  # Some at the same moment.
        names.append(store.create())
    clock.seconds += 1
    store.append(names[3], 0, [user_event("newest")])
    whole = list(store.list())
    assert whole[0].id == names[3]
    assert [(s.updated, s.id) for s in whole] == sorted(((s.updated, s.id) for s in whole), reverse=True)
    pages: list[ConversationSummary] = []
    while page := store.list(3, before=pages[-1] if pages else None):
        pages += page
    assert pages == whole
    assert list(store.list(0)) == list(store.list(-1)) == []


# ------------------------------------------------------------------------------------------------- forks and deletion


def test_fork_shares_the_prefix_and_diverges(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    origin = store.create("title")
    store.append(
        origin, 1, [user_event("banana"), Sent("anthropic", "claude"), result_event("cherry"), Renamed("late")]
    )
    before = list(store.events(origin))
    clock.seconds += 60
    fork = store.fork(origin, 3)
    assert list(store.events(fork))[:3] == before[:3]
    assert events_of(store, fork, 3) == [Forked(origin, 3)]
    summary = store.get(fork)
    assert (summary.title, summary.messages, summary.seq) == ("title", 1, 4)
    assert (summary.model, summary.opening, summary.created) == ("claude", "banana", clock())
    store.append(fork, 4, [user_event("damson")])
    store.append(origin, 5, [user_event("elder")])
    assert len(events_of(store, fork)) == 5
    assert len(events_of(store, origin)) == 6
    assert {hit.conversation for hit in store.search("banana")} == {origin, fork}
    assert [hit.conversation for hit in store.search("cherry")] == [origin]
    store.delete(origin)
    assert events_of(store, fork, 0, 3) == [record.event for record in before[:3]]
    assert [(hit.conversation, hit.seq) for hit in store.search("banana")] == [(fork, 2)]


def test_forks_of_forks_and_of_nothing(store: SqlStore) -> None:
    origin = store.create()
    store.append(origin, 0, [user_event("one")])
    nothing = store.fork(origin, 0)
    assert events_of(store, nothing) == [Forked(origin, 0)]
    assert store.get(nothing).opening is None
    again = store.fork(store.fork(origin, 1), 2)
    assert [event.seq for event in events_of(store, again) if isinstance(event, Forked)] == [1, 2]
    for seq in (-1, 2):
        with pytest.raises(InputError):
            store.fork(origin, seq)


def test_fork_writes_the_same_number_of_rows_for_any_length(engine: Engine) -> None:
    store = engine.open()

    def count_rows() -> int:
        with store._read_session() as session:
            return sum(session.run(f"SELECT count(*) FROM @{table}")[0][0] for table in ("events", "search"))

    written: list[int] = []
    for length in (1, 300):
        origin = store.create()
        store.append(origin, 0, [user_event(f"message {number}") for number in range(length)])
        before = count_rows()
        fork = store.fork(origin, length)
        written.append(count_rows() - before)
        assert len(events_of(store, fork)) == length + 1
    assert written == [1, 1]


@pytest.mark.parametrize("order", [*sample(itertools.permutations(range(5), 3), 7)])
def test_forks_keep_their_events_when_others_are_deleted(engine: Engine, order: tuple[int, ...]) -> None:
    """A tree of five: forks at several events, forks of forks before and after the point where those branched off."""
    store = engine.open()
    root = store.create()
    store.append(root, 0, [user_event(f"root{number} shared") for number in range(1, 7)])
    early, late = store.fork(root, 2), store.fork(root, 5)
    store.append(late, 6, [user_event("late1"), user_event("late2")])
    inner, outer = store.fork(late, 3), store.fork(late, 7)
    tree = [root, early, late, inner, outer]
    expected = {id: list(store.events(id)) for id in tree}
    for index in order:
        store.delete(tree[index])
        del expected[tree[index]]
        assert {id: list(store.events(id)) for id in expected} == expected
        for id, records in expected.items():
            assert list(store.tail(id, 2)) == records[-2:]
            copy = store.fork(id, len(records) - 1)
            assert list(store.events(copy))[:-1] == records[:-1]
            store.delete(copy)
        found = {(hit.conversation, hit.seq) for hit in store.search("shared", limit=100)}
        assert found == {
            (id, record.seq) for id, records in expected.items() for record in records if "shared" in str(record.event)
        }
    store.delete(*expected)
    with store._read_session() as session:
        assert session.run("SELECT count(*) FROM @events") == [(0,)]
    assert list(store.search("shared")) == []


def test_deleted_conversation_is_gone(store: SqlStore) -> None:
    gone, stays = store.create("apple"), store.create("apple")
    store.append(gone, 1, [user_event("apricot")])
    store.acquire(gone, "me", 60)
    store.delete(gone, gone, owner="me")
    assert [summary.id for summary in store.list()] == [stays]
    assert [hit.conversation for hit in store.search("apple")] == [stays]
    assert list(store.search("apricot")) == []
    assert store.create(id=gone) == gone
    assert events_of(store, gone) == []
    store.acquire(gone, "you", 60)


def test_deleting_several_is_all_or_nothing(store: SqlStore) -> None:
    one, two = store.create(), store.create()
    with pytest.raises(StoreError):
        store.delete(one, "nobody", two)
    assert {summary.id for summary in store.list()} == {one, two}
    store.delete(one, two)
    store.delete()
    assert list(store.list()) == []


# ------------------------------------------------------------------------------------------------------------- leases


def test_a_lease_is_held_renewed_released_and_taken_over(engine: Engine) -> None:
    clock = Clock(1_000)
    store, other = engine.open(clock=clock), engine.open(clock=clock)
    conversation = store.create()
    lease = store.acquire(conversation, "one", 10)
    assert (lease.owner, lease.since, lease.expires) == ("one", 1_000_000_000, 1_010_000_000)
    clock.seconds += 9
    with pytest.raises(LeaseError) as caught:
        other.acquire(conversation, "two", 10)
    assert (caught.value.owner, caught.value.since) == ("one", "1970-01-01T00:16:40.000Z")
    assert caught.value.retryable
    assert all(word in str(caught.value) for word in (conversation, "one", "00:16:50"))
    with pytest.raises(LeaseError):
        other.renew(conversation, "two", 10)
    other.release(conversation, "two")
    assert store.renew(conversation, "one", 10).since == lease.since
    clock.seconds += 9
    assert store.acquire(conversation, "one", 10).since == lease.since
    clock.seconds += 10
    assert other.acquire(conversation, "two", 10).since == clock()
    with pytest.raises(LeaseError, match="two"):
        store.renew(conversation, "one", 10)
    store.release(conversation, "one")
    with pytest.raises(LeaseError):
        store.acquire(conversation, "one", 10)
    other.release(conversation, "two")
    with pytest.raises(LeaseError) as nobody:
        other.renew(conversation, "two", 10)
    assert (nobody.value.owner, nobody.value.retryable) == (None, False)
    store.acquire(conversation, "one", 10)


def test_lease_holder_is_readable_without_acquiring(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    conversation = store.create()
    assert store.lease(conversation) is None
    taken = store.acquire(conversation, "somebody", 60)
    assert store.lease(conversation) == taken
    clock.seconds += 61
    assert store.lease(conversation) is None
    store.acquire(conversation, "another", 60)
    store.release(conversation, "another")
    assert store.lease(conversation) is None
    with pytest.raises(StoreError):
        store.lease("nobody's")


def test_the_lease_of_a_process_that_is_gone_is_free_at_once(store: SqlStore) -> None:
    conversation = store.create()
    mine = new_owner()
    assert not has_ended(mine)
    store.acquire(conversation, mine, 1000)
    with pytest.raises(LeaseError, match="--fork"):
        store.acquire(conversation, "another", 1000)
    store.release(conversation, mine)
    program = "from segue.store.ids import new_owner; print(new_owner())"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        dead = process.stdout.read().strip()
        deadline = time.monotonic() + 100
        while not has_ended(dead) and time.monotonic() < deadline:  # a zombie too has gone
            time.sleep(0.01)
        store.acquire(conversation, dead, 1000)
        assert store.lease(conversation) is None
        assert store.acquire(conversation, "another", 1000).owner == "another"
    assert has_ended(dead)


@pytest.mark.parametrize("at", [0, 2])
def test_process_on_another_host_is_unknown(at: int) -> None:
    parts = new_owner().split(":")
    parts[1] = "999999999"
    assert has_ended(":".join(parts))
    parts[at] = f"x{parts[at]}"
    assert not has_ended(":".join(parts))


def test_reused_pid_is_another_process() -> None:
    host, pid, place, rest = new_owner().rsplit(":", 3)
    if place.endswith("-"):
        pytest.skip("the system does not tell when a process began")
    assert has_ended(f"{host}:{pid}:{place}1:{rest}")
    assert not has_ended("somebody")
    assert not has_ended("host:1:abcdef01")


def test_expired_free_lease_can_be_renewed(engine: Engine) -> None:
    clock = Clock()
    store = engine.open(clock=clock)
    conversation = store.create()
    store.acquire(conversation, "one", 1)
    clock.seconds += 100
    assert store.renew(conversation, "one", 1).expires == clock() + 1_000_000


def test_the_engines_own_clock_lets_a_lease_run_out(store: SqlStore) -> None:
    conversation = store.create()
    store.acquire(conversation, "one", 0.000001)
    while True:
        try:
            store.acquire(conversation, "two", 3600)
        except LeaseError:
            continue
        break
    with pytest.raises(LeaseError):
        store.acquire(conversation, "one", 1)


def test_a_lease_needs_an_owner_and_a_time(store: SqlStore) -> None:
    conversation = store.create()
    for owner, ttl in (("", 1), ("a\0b", 1), ("x", 0), ("x", -1), ("x", float("nan"))):
        with pytest.raises(InputError):
            store.acquire(conversation, owner, ttl)


# --------------------------------------------------------------------------------------------------------------- size


@contextmanager
def watched(store: SqlStore, log: list[tuple[str, tuple[object, ...], int]]) -> Generator[None]:
    """Notes each statement, its values, and how many rows came back."""
    reading = store._read_session

    class Watched:
        def __init__(self, session: SqlSession) -> None:
            self.session = session

        def run(self, sql: str, *values: object) -> list:
            rows = self.session.run(sql, *values)
            log.append((sql, values, len(rows)))
            return rows

        def run_many(self, sql: str, rows: Sequence) -> None:
            self.session.run_many(sql, rows)

    @contextmanager
    def noting() -> Generator[SqlSession]:
        with reading() as session:
            yield Watched(session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_read_session", noting)
        yield


def plan_of(store: SqlStore, engine: Engine, sql: str, values: tuple[object, ...]) -> str:
    word = "EXPLAIN QUERY PLAN" if engine.kind == "sqlite" else "EXPLAIN"
    with store._read_session() as session:
        return "\n".join(str(row) for row in session.run(f"{word} {sql}", *values))


def test_ten_thousand_conversations_list_by_an_index(engine: Engine) -> None:
    store = engine.open()
    with store._write_session() as session:
        session.run_many(
            "INSERT INTO @conversations (id, created, updated, seq, messages) VALUES (?, 0, ?, 0, 0)",
            [(f"c{number:05}", number // 2) for number in range(10_000)],
        )
    log: list[tuple[str, tuple[object, ...], int]] = []
    seen: list[ConversationSummary] = []
    with watched(store, log):
        while page := store.list(2_500, before=seen[-1] if seen else None):
            seen += page
        assert store.find_id("c09999") == "c09999"
    assert [summary.id for summary in seen] == [f"c{number:05}" for number in reversed(range(10_000))]
    assert [rows for _, _, rows in log] == [2_500] * 4 + [0, 1]
    if engine.kind == "postgres":
        with store._write_session() as session:
            session.run("ANALYZE @conversations")
    for sql, values, _ in (log[0], log[1]):
        plan = plan_of(store, engine, sql, (*values[:-1], 50))
        assert "conversations_updated" in plan
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan


def test_of_a_hundred_thousand_messages_only_those_shown_are_read(engine: Engine) -> None:
    store = engine.open()
    conversation = store.create()
    store.append(conversation, 0, [user_event("the first words")])
    with store._write_session() as session:
        # A hundred thousand of the same: the numbers in a row, made by the engine itself.
        numbers = (
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT -i, "
            "conversation, i, at, kind, crc, data FROM n JOIN @events e ON e.seq = 1"
        )
        session.run(f"INSERT INTO @events (id, conversation, seq, at, kind, crc, data) {numbers}")
        session.run("UPDATE @conversations SET seq = 100000, messages = 100000")
        [(at, kind, data)] = session.run("SELECT at, kind, data FROM @events WHERE seq = 1")
        read = [*range(50_001, 50_021), *range(99_991, 100_001)]
        session.run_many(
            "UPDATE @events SET crc = ? WHERE id = ?", [(row_checksum(seq, at, kind, data), -seq) for seq in read]
        )
    if engine.kind == "postgres":
        with store._write_session() as session:
            session.run("ANALYZE @events")
    log: list[tuple[str, tuple[object, ...], int]] = []
    with watched(store, log):
        assert [record.seq for record in store.tail(conversation, 10)] == list(range(99_991, 100_001))
        assert [record.seq for record in store.events(conversation, 50_000, 50_020)] == list(range(50_001, 50_021))
        reading = store.events(conversation)
        assert next(reading).event == user_event("the first words")
    assert sum(rows for _, _, rows in log) < 300
    for sql, values, _ in log:
        if "@events" in sql:
            plan = plan_of(store, engine, sql, values)
            assert not re.search(r"SCAN (?!s\b)", plan), "only the few spans of a fork are scanned"
            assert "Seq Scan on events" not in plan
    fork = store.fork(conversation, 100_000)
    assert store.get(fork).messages == 100_000
    assert isinstance(store.tail(fork, 2)[0].event, MessageAdded)
