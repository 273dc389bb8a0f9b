"""Both books write the same; what is known is kept at once and said in call order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

import segue
from segue.canonical.blocks import Text, ToolCall
from segue.canonical.request import Reply
from segue.errors import InputError, StoreError
from segue.runtime.book import Book, Memory
from segue.store.base import Record
from segue.store.conversation import StoredConversation
from segue.store.events import Known, Published, kind_of
from segue.store.sqlite import SqliteStore
from segue.store.timeline import replayed
from segue.wire.registry import WIRES

from .stand import asked, states, told, valid


def kinds(stored: StoredConversation) -> list[str]:
    return [kind_of(record.event) for record in stored._store.events(stored.id)]


def appends(stored: StoredConversation, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kinds of the events of each append from now on."""
    seen: list[list[str]] = []
    append = stored._store.append

    def spy(conversation, expected, events):
        events = list(events)
        seen.append([kind_of(event) for event in events])
        return append(conversation, expected, events)

    monkeypatch.setattr(stored._store, "append", spy)
    return seen


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_whatever_the_order_in_which_it_is_known_it_is_said_in_call_order(book: Book, order: tuple[int, ...]) -> None:
    calls = asked(book, "a", "b", "c")
    for number in order:
        assert book.may_start(calls[number])
        book.know(calls[number], f"result {number}")
        assert not book.may_start(calls[number])
    assert told(book) == [("call_0", "result 0"), ("call_1", "result 1"), ("call_2", "result 2")]
    assert not book.pending
    book.publish(*calls)
    assert len(told(book)) == 3
    valid(book)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_each_outcome_costs_one_append_and_its_payload_is_written_once(
    stored: StoredConversation, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    calls = asked(stored, "a", "b", "c")
    seen = appends(stored, monkeypatch)
    for number in order:
        stored.know(calls[number], f"result number {number}")
    stored.publish(*calls)
    assert len(seen) == 3
    written = "".join(str(record.event) for record in stored._store.events(stored.id))
    assert [written.count(f"result number {number}") for number in range(3)] == [1, 1, 1]
    if order == (2, 1, 0):
        assert seen == [["known"], ["known"], ["completed", "published"]]
    if order == (0, 1, 2):
        assert seen == [["completed"]] * 3


def test_what_is_known_early_waits_until_it_is_published(book: Book) -> None:
    calls = asked(book, "a", "b", "c")
    book.know(calls[2], "third")
    assert told(book) == []
    assert book.pending == calls
    book.publish(calls[1], calls[2])
    assert told(book) == [("call_2", "third")]
    assert book.pending == calls[:2]


def test_before_the_conversation_goes_on_all_that_is_known_is_said(book: Book) -> None:
    calls = asked(book, "a", "b", "c")
    book.know(calls[2], "third")
    book.know(calls[1], {"n": 2})
    book.add_user("never mind")
    assert states(book) == ["pending", "complete", "complete"]
    book.render("openai-chat")
    book.sent()
    assert states(book) == ["interrupted", "complete", "complete"]
    book.add_reply(Reply((Text("well"),)))
    valid(book)


def test_an_outcome_is_known_once(book: Book) -> None:
    first, second = asked(book, "a", "b")
    book.know(second, "one")
    with pytest.raises(InputError, match="already recorded"):
        book.know(second, "another")
    book.know(first, outcome="cancelled")
    assert states(book) == ["cancelled", "complete"]
    assert told(book) == [("call_0", "[cancelled before it finished]"), ("call_1", "one")]


def test_both_books_write_the_same(store: SqliteStore) -> None:
    books: list[Book] = [Memory(), StoredConversation.create(store)]

    def play(book: Book) -> list[bytes]:
        book.set(system="Be brief.", options={"max_tokens": 9})
        calls = asked(book, ("a", {"x": 1}), "b", "c", "d")
        book.know(calls[3], (Text("see"),))
        book.know(calls[1], {"n": [1, None]}, error=True)
        book.know(calls[0], "first")
        book.know(calls[2], outcome="cancelled")
        book.add_result(calls[2], "late")
        book.broke(Reply((Text("half"),), finish="error"))
        book.switch("kimi", "kimi-k2")
        book.render("kimi")
        book.sent()
        book.add_result(calls[0], "another")
        book.keep()
        assert book.compress("truncate-results", 0).messages
        child = book.child(segue.Conversation(system="below"), "a task")
        assert type(child) is type(book)
        assert child.id != book.id
        asked(child, "a")
        return [book.render(wire).data for wire in WIRES]

    assert play(books[0]) == play(books[1])
    assert books[0].messages == books[1].messages
    assert books[0].chat.history.ledger == books[1].chat.history.ledger
    for book in books:
        with pytest.raises(InputError, match="unknown setting"):
            book.set(mood="good")
        book.close()


def test_only_calls_that_wait_may_start(book: Book) -> None:
    calls = asked(book, "a", "b")
    assert not book.may_start(ToolCall("a", id="hist_tool_x"))
    book.add_result(calls[0], "there")
    assert [book.may_start(call) for call in calls] == [False, True]


# ------------------------------------------------------------------------------------------------ who comes after whom


def later(stored: StoredConversation) -> StoredConversation:
    stored.close()
    return StoredConversation(stored._store, stored.id, owner="the second")


def test_who_comes_next_says_what_was_known_and_ends_the_rest(stored: StoredConversation) -> None:
    calls = asked(stored, "a", "b", "c", "d")
    stored.know(calls[2], "third")
    stored.know(calls[1], "bad", error=True)
    stored.know(calls[3], outcome="cancelled")
    second = later(stored)
    assert second.pending == calls
    assert not any(map(second.may_start, calls)), "somebody may have begun them"
    before = kinds(second)
    second.add_user("go on")
    assert states(second) == ["interrupted", "error", "complete", "cancelled"]
    assert kinds(second)[len(before) :] == ["cancelled", "published", "said"]
    assert [raw_id for raw_id, _ in told(second)] == ["call_0", "call_1", "call_2", "call_3"]
    assert not second.timeline.known
    valid(second)
    assert StoredConversation(second._store, second.id).messages == second.messages


def test_whatever_is_written_first_what_was_known_is_said(stored: StoredConversation) -> None:
    writes: list[Callable[[StoredConversation], object]] = [
        lambda kept: kept.rename("x"),
        lambda kept: kept.sent(),
        lambda kept: kept.add_result(kept.pending[0], "first"),
        lambda kept: kept.know(kept.pending[0], "first"),
        lambda kept: kept.compress("drop-oldest", 100_000),
        lambda kept: kept.publish(*kept.pending),
    ]
    for write in writes:
        calls = asked(stored, "a", "b")
        stored.know(calls[1], "known")
        stored = later(stored)
        write(stored)
        assert stored.chat.history.ledger[calls[1].id].state == "complete"
        assert stored.chat.history.ledger[calls[0].id].state in ("interrupted", "complete")
        assert not stored.timeline.known
    valid(stored)


def test_a_fork_has_what_was_known(stored: StoredConversation) -> None:
    calls = asked(stored, "a", "b")
    stored.know(calls[1], "known")
    for turn in (None, "turn-1"):
        fork = stored.fork(turn)
        fork.add_user("another way")
        assert states(fork) == ["interrupted", "complete"]
        valid(fork)
    stored.know(calls[0], "first")
    whole = stored.fork("turn-1")
    assert states(whole) == ["complete", "complete"]
    assert told(whole) == told(stored)


def test_what_is_known_of_a_call_that_was_taken_back_is_not_said(stored: StoredConversation) -> None:
    asked(stored, "a")
    stored.know(stored.pending[0], "one")
    gone = asked(stored, "b", "c")
    stored.know(gone[1], "for nobody")
    stored.rewind("turn-1")
    stored.publish(*gone)
    stored.add_user("again")
    assert told(stored) == [("call_0", "one")]
    assert told(later(stored)) == [("call_0", "one")]
    valid(stored)


def test_a_failed_write_leaves_nothing_known(stored: StoredConversation, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = asked(stored, "a", "b")
    stored.know(calls[1], "known")

    def full(*_: object) -> int:
        raise StoreError("no room", cause="full")

    with monkeypatch.context() as broken:
        broken.setattr(stored._store, "append", full)
        for call in calls:
            with pytest.raises(StoreError if call is calls[0] else InputError):
                stored.know(call, "lost")
        with pytest.raises(StoreError):
            stored.publish(calls[1])
    assert states(stored) == ["pending", "pending"]
    assert list(stored.timeline.known) == [calls[1].id]
    stored.know(calls[0], "again")
    assert told(stored) == [("call_0", "again"), ("call_1", "known")]


def test_events_that_do_not_go_together_are_said_to_be_damaged(stored: StoredConversation) -> None:
    calls = asked(stored, "a", "b")
    stored.know(calls[1], "known")
    records = list(stored._store.events(stored.id))
    known = records[-1].event
    assert isinstance(known, Known)
    for wrong in (Published(("hist_tool_nobody",)), Known(stored.messages[0]), known):
        with pytest.raises(StoreError, match="contradicts"):
            replayed([*records, Record(len(records) + 1, 0, wrong)])


def test_what_was_known_is_found_and_counted(stored: StoredConversation) -> None:
    calls = asked(stored, "a", "b")
    before = stored._store.get(stored.id).messages
    stored.know(calls[1], "a Zebra was seen")
    assert len(stored._store.search("zebra")) == 1
    stored.know(calls[0], "first")
    assert len(stored._store.search("zebra")) == 1
    assert stored._store.get(stored.id).messages == before + 2
    assert stored._store.get(stored.fork().id).messages == before + 2
