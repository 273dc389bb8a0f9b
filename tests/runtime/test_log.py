"""Both logs write the same; results are recorded at once and added in call order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

import segue
from segue.canonical.blocks import Text, ToolCall
from segue.canonical.request import Reply
from segue.errors import InputError, StoreError
from segue.runtime.conversation_log import ConversationLog, InMemoryLog
from segue.store.base import StoredEvent
from segue.store.conversation import StoredConversation
from segue.store.events import ResultPublished, ResultRecorded, event_kind
from segue.store.replay import replay_events
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.runtime.scheduler_fakes import add_calls, check_renders, recorded_results, states


def kinds(stored: StoredConversation) -> list[str]:
    return [event_kind(record.event) for record in stored._store.events(stored.id)]


def appends(stored: StoredConversation, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kinds of the events of each append from now on."""
    seen: list[list[str]] = []
    append = stored._store.append

    def spy(conversation, expected, events, **more):
        events = list(events)
        seen.append([event_kind(event) for event in events])
        return append(conversation, expected, events, **more)

    monkeypatch.setattr(stored._store, "append", spy)
    return seen


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_results_are_added_in_call_order(conversation_log: ConversationLog, order: tuple[int, ...]) -> None:
    calls = add_calls(conversation_log, "a", "b", "c")
    for number in order:
        assert conversation_log.is_runnable(calls[number])
        conversation_log.record_result(calls[number], f"result {number}")
        assert not conversation_log.is_runnable(calls[number])
    assert recorded_results(conversation_log) == [
        ("call_0", "result 0"),
        ("call_1", "result 1"),
        ("call_2", "result 2"),
    ]
    assert not conversation_log.pending
    conversation_log.flush(*calls)
    assert len(recorded_results(conversation_log)) == 3
    check_renders(conversation_log)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_each_outcome_is_one_append_with_one_payload(
    stored: StoredConversation, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    calls = add_calls(stored, "a", "b", "c")
    seen = appends(stored, monkeypatch)
    for number in order:
        stored.record_result(calls[number], f"result number {number}")
    stored.flush(*calls)
    assert len(seen) == 3
    written = "".join(str(record.event) for record in stored._store.events(stored.id))
    assert [written.count(f"result number {number}") for number in range(3)] == [1, 1, 1]
    if order == (2, 1, 0):
        assert seen == [["recorded"], ["recorded"], ["completed", "published"]]
    if order == (0, 1, 2):
        assert seen == [["completed"]] * 3


def test_early_result_waits_for_flush(conversation_log: ConversationLog) -> None:
    calls = add_calls(conversation_log, "a", "b", "c")
    conversation_log.record_result(calls[2], "third")
    assert recorded_results(conversation_log) == []
    assert conversation_log.pending == calls
    conversation_log.flush(calls[1], calls[2])
    assert recorded_results(conversation_log) == [("call_2", "third")]
    assert conversation_log.pending == calls[:2]


def test_recorded_results_are_flushed_before_new_messages(conversation_log: ConversationLog) -> None:
    calls = add_calls(conversation_log, "a", "b", "c")
    conversation_log.record_result(calls[2], "third")
    conversation_log.record_result(calls[1], {"n": 2})
    conversation_log.add_user("never mind")
    assert states(conversation_log) == ["pending", "complete", "complete"]
    conversation_log.render("openai-chat")
    conversation_log.mark_sent()
    assert states(conversation_log) == ["interrupted", "complete", "complete"]
    conversation_log.add_reply(Reply((Text("well"),)))
    check_renders(conversation_log)


def test_outcome_is_recorded_once(conversation_log: ConversationLog) -> None:
    first, second = add_calls(conversation_log, "a", "b")
    conversation_log.record_result(second, "one")
    with pytest.raises(InputError, match="already recorded"):
        conversation_log.record_result(second, "another")
    conversation_log.record_result(first, outcome="cancelled")
    assert states(conversation_log) == ["cancelled", "complete"]
    assert recorded_results(conversation_log) == [("call_0", "[cancelled before it finished]"), ("call_1", "one")]


def test_both_logs_write_the_same(store: SqliteStore) -> None:
    books: list[ConversationLog] = [InMemoryLog(), StoredConversation.create(store)]

    def play(conversation_log: ConversationLog) -> list[bytes]:
        conversation_log.update_settings(system="Be brief.", options={"max_tokens": 9})
        calls = add_calls(conversation_log, ("a", {"x": 1}), "b", "c", "d")
        conversation_log.record_result(calls[3], (Text("see"),))
        conversation_log.record_result(calls[1], {"n": [1, None]}, error=True)
        conversation_log.record_result(calls[0], "first")
        conversation_log.record_result(calls[2], outcome="cancelled")
        conversation_log.add_result(calls[2], "late")
        conversation_log.record_broken(Reply((Text("half"),), finish="error"))
        conversation_log.switch("kimi", "kimi-k2")
        conversation_log.render("kimi")
        conversation_log.mark_sent()
        conversation_log.add_result(calls[0], "another")
        conversation_log.renew_lease()
        assert conversation_log.compress("truncate-results", 0).messages
        child = conversation_log.create_child(segue.Conversation(system="below"), "a task")
        assert type(child) is type(conversation_log)
        assert child.id != conversation_log.id
        add_calls(child, "a")
        return [conversation_log.render(wire).data for wire in WIRES]

    assert play(books[0]) == play(books[1])
    assert books[0].messages == books[1].messages
    assert books[0].chat.state.history.ledger == books[1].chat.state.history.ledger
    for conversation_log in books:
        with pytest.raises(InputError, match="unknown setting"):
            conversation_log.update_settings(mood="good")
        conversation_log.close()


def test_only_calls_that_wait_may_start(conversation_log: ConversationLog) -> None:
    calls = add_calls(conversation_log, "a", "b")
    assert not conversation_log.is_runnable(ToolCall("a", id="hist_tool_x"))
    conversation_log.add_result(calls[0], "there")
    assert [conversation_log.is_runnable(call) for call in calls] == [False, True]


# ------------------------------------------------------------------------------------------------ who comes after whom


def later(stored: StoredConversation) -> StoredConversation:
    stored.close()
    return StoredConversation(stored._store, stored.id, owner="the second")


def test_next_process_flushes_results_and_interrupts_the_rest(stored: StoredConversation) -> None:
    calls = add_calls(stored, "a", "b", "c", "d")
    stored.record_result(calls[2], "third")
    stored.record_result(calls[1], "bad", error=True)
    stored.record_result(calls[3], outcome="cancelled")
    second = later(stored)
    assert second.pending == calls
    assert not any(map(second.is_runnable, calls)), "somebody may have begun them"
    before = kinds(second)
    second.add_user("go on")
    assert states(second) == ["interrupted", "error", "complete", "cancelled"]
    assert kinds(second)[len(before) :] == ["cancelled", "published", "added"]
    assert [raw_id for raw_id, _ in recorded_results(second)] == ["call_0", "call_1", "call_2", "call_3"]
    assert not second.state.recorded_results
    check_renders(second)
    assert StoredConversation(second._store, second.id).messages == second.messages


def test_any_first_write_flushes_recorded_results(stored: StoredConversation) -> None:
    writes: list[Callable[[StoredConversation], object]] = [
        lambda kept: kept.rename("x"),
        lambda kept: (kept.render("kimi"), kept.mark_sent()),
        lambda kept: kept.add_result(kept.pending[0], "first"),
        lambda kept: kept.record_result(kept.pending[0], "first"),
        lambda kept: kept.compress("drop-oldest", 100_000),
        lambda kept: kept.flush(*kept.pending),
    ]
    for write in writes:
        calls = add_calls(stored, "a", "b")
        stored.record_result(calls[1], "known")
        stored = later(stored)
        write(stored)
        assert stored.chat.state.history.ledger[calls[1].id].state == "complete"
        assert stored.chat.state.history.ledger[calls[0].id].state in ("interrupted", "complete")
        assert not stored.state.recorded_results
    check_renders(stored)


def test_fork_has_recorded_results(stored: StoredConversation) -> None:
    calls = add_calls(stored, "a", "b")
    stored.record_result(calls[1], "known")
    for turn in (None, "turn-1"):
        fork = stored.fork(turn)
        fork.add_user("another way")
        assert states(fork) == ["interrupted", "complete"]
        check_renders(fork)
    stored.record_result(calls[0], "first")
    whole = stored.fork("turn-1")
    assert states(whole) == ["complete", "complete"]
    assert recorded_results(whole) == recorded_results(stored)


def test_result_of_a_rewound_call_is_not_added(stored: StoredConversation) -> None:
    add_calls(stored, "a")
    stored.record_result(stored.pending[0], "one")
    gone = add_calls(stored, "b", "c")
    stored.record_result(gone[1], "for nobody")
    stored.rewind("turn-1")
    stored.flush(*gone)
    stored.add_user("again")
    assert recorded_results(stored) == [("call_0", "one")]
    assert recorded_results(later(stored)) == [("call_0", "one")]
    check_renders(stored)


def test_failed_write_records_nothing(stored: StoredConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = add_calls(stored, "a", "b")
    stored.record_result(calls[1], "known")

    def full(*_: object, **more: object) -> int:
        raise StoreError("no room", cause="full")

    with monkeypatch.context() as broken:
        broken.setattr(stored._store, "append", full)
        for call in calls:
            with pytest.raises(StoreError if call is calls[0] else InputError):
                stored.record_result(call, "lost")
        with pytest.raises(StoreError):
            stored.flush(calls[1])
    assert states(stored) == ["pending", "pending"]
    assert list(stored.state.recorded_results) == [calls[1].id]
    stored.record_result(calls[0], "again")
    assert recorded_results(stored) == [("call_0", "again"), ("call_1", "known")]


def test_inconsistent_events_are_reported_as_damaged(stored: StoredConversation) -> None:
    calls = add_calls(stored, "a", "b")
    stored.record_result(calls[1], "known")
    records = list(stored._store.events(stored.id))
    known = records[-1].event
    assert isinstance(known, ResultRecorded)
    for wrong in (ResultPublished(("hist_tool_nobody",)), ResultRecorded(stored.messages[0]), known):
        with pytest.raises(StoreError, match="contradicts"):
            replay_events([*records, StoredEvent(len(records) + 1, 0, wrong)])


def test_recorded_results_are_searchable_and_counted(stored: StoredConversation) -> None:
    calls = add_calls(stored, "a", "b")
    before = stored._store.get(stored.id).messages
    stored.record_result(calls[1], "a Zebra was seen")
    assert len(stored._store.search("zebra")) == 1
    stored.record_result(calls[0], "first")
    assert len(stored._store.search("zebra")) == 1
    assert stored._store.get(stored.id).messages == before + 2
    assert stored._store.get(stored.fork().id).messages == before + 2
