"""A failed write leaves nothing behind, and its caller can continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Text, ToolCall
from segue.canonical.request import Reply
from segue.errors import ConflictError, InputError, LeaseError, StoreError
from segue.store.conversation import StoredConversation
from segue.store.events import Rewound, Switched
from segue.store.sql import SqlStore
from segue.store.sqlite import SqliteStore
from tests.store.leases import TTL, Clock, call_states, check_renders, open_as_second
from tests.store.reply_bodies import reply_body
from tests.store.sample_events import user_event
from tests.store.test_file import run_in_child

# ------------------------------------------------------------------------------------------------------------ conflict


def test_stale_reader_rereads_before_interrupting_calls(stores, kept, clock: Clock) -> None:
    second = open_as_second(stores, kept)
    kept.add_result(kept.pending[0], "one")
    kept.add_reply(reply_body("kimi", calls=[("look", "a")]))
    clock.advance(TTL + 1)
    with pytest.raises(ConflictError):
        second.add_user("x")
    assert second.messages == kept.messages
    assert call_states(second) == ["complete", "pending", "pending"]
    second.add_user("x")
    assert call_states(second) == ["complete", "interrupted", "interrupted"]
    check_renders(second)


@pytest.mark.parametrize(
    "write",
    [
        lambda kept: kept.add_user("x"),
        lambda kept: kept.add_reply(reply_body("openai-chat", calls=[("look", "a")], tokens=900)),
        lambda kept: kept.add_result(kept.pending[0], "one"),
        lambda kept: kept.cancel(kept.pending[0]),
        lambda kept: kept.mark_sent(),
        lambda kept: kept.record_broken(Reply((Text("half"),))),
        lambda kept: kept.update_settings(system="other", tools=[]),
        lambda kept: kept.switch("gemini"),
        lambda kept: kept.rename("a name"),
        lambda kept: kept.compress("truncate-results", 0),
        lambda kept: kept.rewind("turn-1"),
    ],
)
def test_a_conflict_changes_nothing_and_both_go_on(stores, kept, write: Callable[[StoredConversation], Any]) -> None:
    kept.add_result(kept.pending[0], "long " * 1000)
    kept.render("openai-chat")
    last_request = kept.chat.state.last_request
    # Somebody who does not care about leases.
    stores[1].append(kept.id, stores[1].get(kept.id).seq, [user_event("in between"), Switched("kimi")])
    with pytest.raises(ConflictError):
        write(kept)
    reader = open_as_second(stores, kept)
    assert kept.messages == reader.messages
    assert kept.state.seq == reader.state.seq
    assert (kept.state.title, kept.state.target) == (None, "kimi")
    assert kept.chat.state.request == reader.chat.state.request
    assert kept.chat.state.history.ledger == reader.chat.state.history.ledger
    assert kept.chat.state.last_request == last_request
    write(kept)
    kept.add_user("and on")
    check_renders(kept)


def test_generated_results_are_written_with_the_reply(stores, kept) -> None:
    kept.add_user("never mind")
    kept.render("openai-chat")
    stores[1].append(kept.id, kept.state.seq, [Switched("kimi")])
    with pytest.raises(ConflictError):
        kept.add_reply(Reply((Text("fine"),)))
    kept.add_reply(Reply((Text("fine"),)))
    assert call_states(kept) == ["interrupted", "interrupted"]
    kept.add_result("toolu_1", "late")
    assert call_states(kept) == ["interrupted", "interrupted"]
    check_renders(kept)


# -------------------------------------------------------------------------------------------------------------- failure


def test_rejected_input_changes_nothing(kept) -> None:
    before, seq = kept.messages, kept.state.seq
    for write in (
        lambda: kept.add_user(5),
        lambda: kept.add_user([Text("\ud800")]),
        lambda: kept.add_result("nobody", "x"),
        lambda: kept.add_reply({"what": "is this"}),
        lambda: kept.add_reply(Reply((ToolCall("look", {"a": float("nan")}),))),
        lambda: kept.update_settings(system="fine", tools=[1]),
        lambda: kept.update_settings(systen="typo"),
        lambda: kept.compress("magic", 5),
        lambda: kept.rewind("turn-99"),
        lambda: kept.fork("turn-99"),
        kept.undo_compression,
    ):
        with pytest.raises(segue.SegueError):
            write()
        assert kept.messages == before
        assert kept.chat.system is None
        assert kept._store.get(kept.id).seq == kept.state.seq == seq
    assert kept.add_reply(Reply((Text("x"),))).text == "x"
    assert kept.messages[-1].turn_key == "turn-2"
    check_renders(kept)


def test_closed_store_raises_and_another_continues(stores, kept) -> None:
    before = kept.messages
    stores[0].close()
    with pytest.raises(StoreError):
        kept.add_user("x")
    with pytest.raises(StoreError):
        _ = kept.messages
    with pytest.raises(StoreError):
        kept.close()
    again = StoredConversation(stores[1], kept.id, owner="the first")
    assert again.messages == before


def test_leased_conversation_is_deleted_only_by_its_owner(stores, kept, clock: Clock) -> None:
    free = stores[1].create()
    for owner in (None, "the second"):
        with pytest.raises(LeaseError) as caught:
            stores[1].delete(free, kept.id, owner=owner)
        assert (caught.value.owner, caught.value.until) == ("the first", "1970-01-01T00:17:40.000Z")
        assert "1970-01-01T00:17:40.000Z" in str(caught.value)
    assert stores[1].get(free).id == free
    kept.add_user("still here")
    clock.advance(TTL)
    stores[1].delete(free, kept.id)
    mine = stores[0].create()
    stores[0].acquire(mine, "me", TTL)
    stores[0].delete(mine, owner="me")


def test_deleted_conversation_raises(stores, kept) -> None:
    stores[1].delete(kept.id, owner="the first")
    with pytest.raises(StoreError) as caught:
        kept.add_user("x")
    assert caught.value.cause == "missing"
    kept.close()  # nobody's already
    kept.close()


@pytest.mark.parametrize("committed", [False, True])
def test_a_server_that_is_lost_at_the_commit(stores, kept, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    """Whether it was written is unknown: the store's state decides."""
    append = stores[0].append

    def lost(*given: Any, **more: Any) -> int:
        if committed:
            append(*given, **more)
        raise StoreError("the connection broke", cause="lost", retryable=True)

    look = kept.pending[0]
    with monkeypatch.context() as patch:
        patch.setattr(stores[0], "append", lost)
        with pytest.raises(StoreError, match="broke"):
            kept.add_result(look, "one")
    assert call_states(kept) == ["complete" if committed else "pending", "pending"]
    kept.add_result(look, "one")
    assert call_states(kept) == ["complete", "pending"]
    assert kept.messages == open_as_second(stores, kept).messages
    check_renders(kept)


def test_interruptions_that_could_not_be_written_are_written_by_the_next_write(
    stores, kept, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)

    def full(*_: Any, **more: Any) -> int:
        raise StoreError("no room", cause="full")

    with monkeypatch.context() as patch:
        patch.setattr(stores[1], "append", full)
        with pytest.raises(StoreError, match="no room"):
            second.add_user("x")
    assert call_states(second) == ["pending", "pending"]
    second.add_user("x")
    assert call_states(second) == ["interrupted", "interrupted"]


def test_failed_import_leaves_no_conversation(stores: tuple[SqlStore, SqlStore]) -> None:
    chat = segue.Conversation()
    # Only text is repaired: a block is stored as it is, and this one can't be encoded.
    chat.add_user([Text("a lone surrogate: \ud800")])
    with pytest.raises(InputError):
        StoredConversation.create(stores[0], chat)
    assert not stores[0].list()


FULL = """
import resource, sys
import segue
from segue.errors import StoreError
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from tests.store.reply_bodies import reply_body
with SqliteStore(sys.argv[1]) as store:
    kept = StoredConversation.create(store, segue.Conversation(tools=[{"name": "look", "input_schema": {}}]))
    kept.add_user("go")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
    done = []
    try:
        while True:
            for call in kept.add_reply(reply_body("kimi", calls=[("look", "a"), ("look", "b")])).calls:
                done = list(kept.messages)
                kept.add_result(call, "word " * 2000)
                done = list(kept.messages)
            done = list(kept.messages)
    except StoreError as error:
        print(error.cause)
    print(list(kept.messages) == done or (len(done), len(kept.messages)))
    print(kept.messages == StoredConversation(store, kept.id).messages)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for call in kept.pending:
        kept.add_result(call, "there is room again")
    kept.add_user("and on")
    print(all(segue.check(kept.render(wire).data, wire) for wire in ("anthropic", "gemini", "openai-chat")))
    print(kept.id)
"""


@pytest.mark.parametrize("room", [250_000, 400_001])
def test_a_full_disk_leaves_the_conversation_as_it_was(tmp_path, room: int) -> None:
    *output, name = run_in_child(FULL, tmp_path / "history.db", room)
    assert output == ["full", "True", "True", "True"]
    with SqliteStore(tmp_path / "history.db") as store:
        kept = StoredConversation(store, name)
        assert set(call_states(kept)) == {"complete"}
        check_renders(kept)


def test_inconsistent_events_are_named(stores, kept) -> None:
    stores[0].append(kept.id, kept.state.seq, [Rewound("turn-77")])
    with pytest.raises(StoreError, match=r"event \d+ \('rewound'\).*turn-77") as caught:
        StoredConversation(stores[1], kept.id)
    assert caught.value.cause == "corrupt"
