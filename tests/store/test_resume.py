"""Leases, calls left open by another process, and restored state."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Origin, Text, ToolCall, responses_of
from segue.canonical.request import Reply, Usage
from segue.errors import ConflictError, LeaseError
from segue.store.conversation import StoredConversation
from segue.store.events import CallCancelled, CallCompleted, MessageAdded
from segue.store.sqlite import SqliteStore
from segue.wire.registry import WIRES
from tests.bodies import chat as chat_body
from tests.store.leases import TOOLS, TTL, Clock, call_states, check_renders, event_kinds, open_as_second
from tests.store.reply_bodies import reply_body
from tests.work import count_work

# ---------------------------------------------------------------------------------------------------------- the lease


def test_creator_holds_the_lease_and_keeps_its_calls(stores) -> None:
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("go")
    chat.add_reply(reply_body("kimi", calls=[("look", "a"), ("run", "b")]))
    kept = StoredConversation.create(stores[0], chat, owner="the first")
    kept.add_result("a", "one")
    assert call_states(kept) == ["complete", "pending"]
    with pytest.raises(LeaseError, match="the first"):
        open_as_second(stores, kept).add_user("me too")


def test_second_owner_reads_and_gets_the_lease_holder(stores, kept) -> None:
    reader = open_as_second(stores, kept)
    before = event_kinds(kept)
    assert reader.messages == kept.messages
    assert [call.id for call in reader.pending] == [call.id for call in kept.pending]
    assert reader.render("gemini").data == kept.render("gemini").data
    for write in (
        lambda: reader.add_user("x"),
        reader.mark_sent,
        lambda: reader.rename("mine"),
        lambda: reader.cancel(reader.pending[0]),
        lambda: reader.compress("drop-oldest", 0),
        lambda: reader.rewind("turn-1"),
    ):
        with pytest.raises(LeaseError, match="the first") as caught:
            write()
        assert caught.value.retryable
    assert event_kinds(kept) == before
    assert reader.messages == kept.messages
    assert call_states(reader) == ["pending", "pending"]
    kept.add_result(kept.pending[0], "one")
    assert call_states(reader) == ["pending", "pending"]
    reader.reload()
    assert call_states(reader) == call_states(kept) == ["complete", "pending"]


def test_heartbeat_renews_the_lease(stores, kept, clock: Clock) -> None:
    second = open_as_second(stores, kept)
    for _ in range(3):
        clock.advance(TTL - 1)
        kept.renew_lease()
        with pytest.raises(LeaseError):
            second.add_user("x")
    clock.advance(TTL - 1)
    kept.add_result(kept.pending[0], "writing keeps it too")
    clock.advance(TTL - 1)
    with pytest.raises(LeaseError):
        second.add_user("x")


def test_reading_ends_no_call_and_the_first_write_does(stores, kept, clock: Clock) -> None:
    clock.advance(TTL + 1)
    before = event_kinds(kept)
    second = open_as_second(stores, kept)
    for wire in WIRES:
        second.render(wire)
    assert event_kinds(kept) == before
    assert call_states(second) == ["pending", "pending"]
    second.add_user("go on")
    assert call_states(second) == ["interrupted", "interrupted"]
    synthetic = [entry.completion.synthetic for entry in second.chat.state.history.ledger.values() if entry.completion]
    assert synthetic == ["interrupted: the process that ran it is gone"] * 2
    assert event_kinds(second)[len(before) :] == ["CallCancelled", "CallCancelled", "MessageAdded"]
    check_renders(second)


def test_recorded_outcome_is_never_interrupted(stores, kept, clock: Clock) -> None:
    look, run = kept.pending
    kept.add_result(look, "one")
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)
    # The very first thing that is written is the other outcome.
    second.add_result(run, "two")
    assert call_states(second) == ["complete", "complete"]
    assert not any(isinstance(record.event, CallCancelled) for record in stores[0].events(kept.id))


@pytest.mark.parametrize("by", ["call", "id", "raw id"])
def test_only_the_call_that_is_named_is_not_interrupted(stores, kept, clock: Clock, by: str) -> None:
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)
    look = second.pending[0]
    second.add_result({"call": look, "id": look.id, "raw id": look.raw_id}[by], "one")
    assert call_states(second) == ["complete", "interrupted"]
    # A late result replaces one that was not sent.
    second.add_result("toolu_2", "two")
    assert call_states(second) == ["complete", "complete"]
    check_renders(second)


def test_an_older_call_of_the_same_raw_id_is_interrupted_too(stores, kept, clock: Clock) -> None:
    kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1")]))
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)
    waiting = [call.id for call in second.pending]
    second.add_result("toolu_1", "the newest")
    ledger = second.chat.state.history.ledger
    assert {ledger[call_id].state for call_id in waiting[:-1]} == {"interrupted"}
    assert ledger[waiting[-1]].state == "complete"


def test_expired_owner_gets_an_error_and_can_resume(stores, kept, clock: Clock) -> None:
    look = kept.pending[0]
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)
    second.render("openai-chat")
    second.add_user("go on")
    second.mark_sent()
    with pytest.raises(LeaseError, match="the second"):
        kept.add_result(look, "too late")
    assert kept.messages == second.messages
    with pytest.raises(LeaseError, match="the second"):
        kept.renew_lease() if kept._has_lease else kept.add_user("x")
    second.close()
    kept.add_result(look, "too late")
    kept.add_reply(Reply((Text("so it is"),)))
    assert call_states(kept) == ["interrupted", "interrupted"]
    assert [r.content for r in kept.chat.state.history.ledger[look.id].evidence] == [(Text("too late"),)]
    with pytest.raises(LeaseError, match="the first"):
        second.add_user("x")
    assert second.messages == kept.messages
    check_renders(kept)


def test_expired_owner_gets_an_error_after_release_too(stores, kept, clock: Clock) -> None:
    clock.advance(TTL + 1)
    second = open_as_second(stores, kept)
    with second:
        second.add_user("go on")
    with pytest.raises(LeaseError, match="no longer leased"):
        kept.add_user("mine")
    assert kept.messages == second.messages
    kept.add_user("mine")
    assert [m.speaker for m in kept.messages] == ["human", "ai", "tool", "tool", "human", "human"]


def test_expired_lease_is_renewed_if_not_taken(stores, kept, clock: Clock) -> None:
    clock.advance(TTL * 100)
    kept.add_result(kept.pending[0], "slow")
    assert call_states(kept) == ["complete", "pending"]


def test_released_conversation_can_be_leased_again(stores, kept) -> None:
    kept.close()
    kept.close()
    second = open_as_second(stores, kept)
    second.add_user("now me")
    second.close()
    with pytest.raises(ConflictError):
        kept.add_user("now me again")
    kept.add_user("now me again")
    assert [m.blocks[0].text for m in kept.messages[-2:]] == ["now me", "now me again"]


# ------------------------------------------------------------------------------------------------- what is remembered


def test_token_calibration_is_restored(stores, kept) -> None:
    kept.add_user("words " * 100)
    kept.render("openai-chat")
    kept.add_reply(Reply((Text("x"),), usage=Usage(input=900), model="gpt-4.1"))
    learned = kept.chat.state.token_estimator
    assert learned.learned
    assert open_as_second(stores, kept).chat.state.token_estimator == learned
    assert StoredConversation.create(stores[0], kept.chat).chat.state.token_estimator == learned
    assert segue.Conversation.load(kept.chat.dump()).state.token_estimator == learned


def test_result_for_a_rewound_call_matches_no_other(stores, kept) -> None:
    """The same raw id in two turns: the later one is taken back, and its result comes then."""
    kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1")]))
    gone = kept.pending[-1]
    kept.rewind("turn-1")
    assert [call.id for call in kept.pending] == [c.id for c in kept.chat.state.history.newest_calls]
    before = kept.messages
    kept.add_result(gone, "for the one that went")
    assert kept.messages == before
    assert call_states(kept) == ["pending", "pending", "complete"]
    kept.add_result("toolu_1", "for the one that stayed")
    assert call_states(kept) == ["complete", "pending", "complete"]
    for again in (open_as_second(stores, kept), StoredConversation.create(stores[0], kept.chat)):
        assert again.chat.state.history.ledger == kept.chat.state.history.ledger
        assert again.messages == kept.messages
        assert [call.id for call in again.pending] == [call.id for call in kept.pending]
    loaded = segue.Conversation.load(kept.chat.dump())
    loaded.add_result(gone, "and again")
    assert loaded.messages == kept.messages
    check_renders(kept)


def test_rewound_id_gets_no_results_by_name(stores, kept) -> None:
    item = {"type": "function_call_output", "call_id": "toolu_1", "output": "found"}
    kept.add_result("toolu_1", "one")
    kept.add_reply(reply_body("anthropic", calls=[("look", "toolu_1")]))
    kept.add_user("no")
    kept.rewind("turn-1")
    again = open_as_second(stores, kept)
    [block] = segue.parse_item(item, "openai")
    kept.add_blocks(block)
    # The one that stayed has its result: this is another.
    assert call_states(kept) == ["complete", "pending", "pending"]
    assert len(kept.chat.state.history.ledger[kept.chat.state.history.newest_calls[0].id].evidence) == 1
    again.reload()
    assert again.chat.state.history.ledger == kept.chat.state.history.ledger


@pytest.mark.parametrize("way", ["dump", "create", "events"])
def test_dropped_call_is_restored(stores, kept, way: str) -> None:
    """Its id stays its own, and a result of it never goes to a later call of the same raw id."""
    reply = kept.add_reply(reply_body("kimi", calls=[("look", "hist_tool_own"), ("look", "c")]))
    for call in kept.pending:
        kept.add_result(call, "word " * 300)
    dropped = reply.calls[1]
    kept.add_user("next")
    kept.add_reply(reply_body("kimi", text="so"))
    kept.add_user("next")
    kept.compress("drop-oldest", 0)
    assert not kept.chat.state.history.newest_calls
    chat: Any = {
        "dump": lambda: segue.Conversation.load(kept.chat.dump()),
        "create": lambda: StoredConversation.create(stores[0], kept.chat),
        "events": lambda: open_as_second(stores, kept),
    }[way]()
    kept.close()
    own, same = chat.add_reply(reply_body("kimi", calls=[("look", "hist_tool_own"), ("look", "c")])).calls
    assert own.id != "hist_tool_own"
    chat.add_result(dropped, "late")
    chat.add_result("c", "now")
    ledger = (chat if way == "dump" else chat.chat).state.history.ledger
    assert [block.content for block in ledger[dropped.id].evidence] == [(Text("late"),)]
    assert ledger["hist_tool_own"].state == ledger[same.id].state == "complete"
    assert (ledger[own.id].state, ledger[same.id].completion.content) == ("pending", (Text("now"),))


@pytest.mark.parametrize("strategy", ["truncate-results", "drop-oldest", "middle-out", "dense"])
def test_compressions_are_restored_for_readers(stores, kept, strategy: str) -> None:
    for _ in range(4):
        kept.add_reply(reply_body("anthropic", calls=[("look", "a"), ("look", "b")], tokens=3000))
        for call in kept.pending:
            kept.add_result(call, "word " * 300)
        kept.add_user("next")
    kept.compress("truncate-results", 3000)
    kept.undo_compression()
    made = kept.compress(strategy, 1500, summarise=lambda _: "in short")
    kept.add_reply(reply_body("kimi", text="so"))
    assert made.changes
    for wire in ("gemini", "anthropic"):
        findings = open_as_second(stores, kept).render(wire).report.findings_of("compressed")
        assert [finding.message for finding in findings] == [str(change) for change in made.changes]
        assert findings == kept.render(wire).report.findings_of("compressed")


@pytest.mark.parametrize("how", ["rewind", "compress"])
def test_a_result_that_came_before_its_call_and_went_again(stores, kept, how: str) -> None:
    kept.add_reply(reply_body("kimi", text="fine"))
    kept.add_user("hm")
    item = {"type": "function_call_output", "call_id": "hist_tool_early", "output": "too soon"}
    kept.add_blocks(*segue.parse_item(item, "openai"))
    if how == "rewind":
        kept.rewind("turn-2")
    else:
        kept.add_reply(reply_body("kimi", text="fine"))
        kept.add_user("next")
        kept.add_reply(reply_body("kimi", text="fine"))
        kept.add_user("next")
        kept.compress("drop-oldest", 0)
    assert "too soon" not in str(kept.messages)
    [call] = kept.add_reply(reply_body("kimi", calls=[("look", "hist_tool_early")])).calls
    state = kept.chat.state.history.ledger[call.id].state
    # What was taken back never came; what was only left out is known.
    assert (call.id, state) == ("hist_tool_early", "pending" if how == "rewind" else "complete")
    assert (b"too soon" in kept.render("openai-chat").data) is (how == "compress")
    loaded = segue.Conversation.load(kept.chat.dump())
    assert loaded.render("openai-chat").data == kept.render("openai-chat").data
    check_renders(kept)


def test_rewind_keeps_late_results_and_incremental_rendering(stores, kept) -> None:
    look, run = kept.pending
    kept.add_result(look, "one")
    kept.add_user("hurry")
    kept.add_reply(reply_body("kimi", calls=[("look", "x")]))
    kept.add_result(run, "late")
    kept.add_user("and then")
    kept.rewind("turn-1")
    assert [message.speaker for message in kept.messages] == ["human", "ai", "tool", "tool"]
    assert call_states(kept)[:2] == ["complete", "complete"]
    assert not kept.chat.state.history.has_gaps
    for number in range(5):
        for call in kept.add_reply(reply_body("kimi", calls=[("look", str(number))])).calls:
            kept.add_result(call, "found")
        kept.render("kimi")
    assert any(
        cached.prefix.extend(kept.chat.state.history.slice(cached.prefix.length))
        for cached in kept.chat._prefixes.values()
    )
    assert [m.turn_key for m in kept.messages if m.speaker == "ai"] == ["turn-1", *(f"turn-{n}" for n in range(3, 8))]
    check_renders(kept)


def test_fork_at_a_turn_includes_late_results_and_undos(stores, kept) -> None:
    look, run = kept.pending
    kept.add_user("hurry")
    third = kept.add_reply(reply_body("kimi", calls=[("look", "a"), ("look", "b"), ("run", "c")])).calls
    kept.add_result(third[0], "long " * 2000)
    assert kept.compress("truncate-results", 100).changes
    kept.add_result(third[1], "soon")
    kept.add_user("next")
    kept.add_reply(reply_body("gemini", text="good"))
    for call in (third[2], look, run):
        kept.add_result(call, "late")
    kept.undo_compression()
    fork = kept.fork("turn-2")
    speakers = [message.speaker for message in fork.messages]
    assert speakers == ["human", "ai", "human", "ai", *["tool"] * 5]
    assert set(call_states(fork)) == {"complete"}
    assert "long long" in str(fork.messages[4])
    assert not fork.state.compressions
    fork.add_user("another way")
    assert kept.messages[-1].speaker == "tool"
    for one in (kept, fork):
        check_renders(one)
    assert StoredConversation(stores[1], kept.fork().id).messages == kept.messages


def test_fork_at_a_turn_includes_late_results_of_broken_calls(kept) -> None:
    [broken] = kept.add_reply(Reply((ToolCall("look", None, arguments_text='{"n": ', broken=True),))).calls
    turn = kept.messages[-1].turn_key
    kept.add_reply(reply_body("mistral", text="go on"))
    kept.add_result(broken, "late")
    fork = kept.fork(turn)
    assert fork.chat.state.history.ledger[broken.id].state == "complete"
    check_renders(fork)


def test_fork_at_a_turn_includes_results_that_came_too_late(kept) -> None:
    """The fork reports them like the conversation after a rewind to that turn."""
    look, run = kept.pending
    turn = kept.messages[-1].turn_key
    kept.add_result(run, "long " * 2000)
    assert kept.compress("truncate-results", 100).changes
    kept.render("openai-chat")
    kept.add_reply(reply_body("kimi", text="never mind"))
    kept.add_result(look, "the real one")
    kept.add_result(run, "another one")
    kept.undo_compression()
    fork = kept.fork(turn)
    kept.rewind(turn)
    found = fork.chat.state.history.ledger
    assert call_states(fork) == ["interrupted", "complete"]
    assert found == kept.chat.state.history.ledger
    assert fork.messages == kept.messages
    rendered, expected = fork.render("openai-chat"), kept.render("openai-chat")
    assert rendered.data == expected.data
    assert list(rendered.report.findings) == list(expected.report.findings)
    assert "dedupe" in {finding.kind for finding in rendered.report.findings}
    assert fork.fork(turn).chat.state.history.ledger == found
    check_renders(fork)


def test_call_whose_result_came_first_is_rendered_anew(stores) -> None:
    kept = StoredConversation.create(stores[0], segue.Conversation(tools=TOOLS))
    kept.add_user("go")
    for _ in range(2):
        [call] = kept.add_reply(reply_body("kimi", calls=[("look", "a")])).calls
        kept.add_result(call, "done")
    kept.add_reply(reply_body("kimi", text="fine"))
    item = {"type": "function_call_output", "call_id": "hist_tool_abc", "output": "early"}
    kept.add_blocks(*segue.parse_item(item, "openai", wire_type=None))
    [call] = kept.add_reply(reply_body("kimi", calls=[("look", "b")])).calls
    kept.add_result(call, "done")
    kept.render("mistral")
    kept.add_reply(Reply((ToolCall("look", {}, origin=Origin("gemini", raw_id="hist_tool_abc")),)))
    assert kept.render("mistral").data == segue.Conversation.load(kept.dump()).render("mistral").data


def test_loaded_orphan_is_no_duplicate_of_an_equal_result(kept) -> None:
    for call in kept.pending:
        kept.cancel(call)
        kept.add_result(call, "done")
    item = {"type": "function_call_output", "call_id": "", "output": "done"}
    kept.add_blocks(*segue.parse_item(item, "openai", wire_type=None))
    assert segue.Conversation.load(kept.dump()).messages == kept.messages


def test_orphans_get_distinct_ids_in_every_process(stores, kept) -> None:
    item = {"type": "function_call_output", "call_id": "nobody", "output": "lost"}
    for number in range(4):
        [block] = segue.parse_item({**item, "output": f"lost {number}"}, "openai")
        kept.add_blocks(block)
        kept.close()
        kept = StoredConversation(stores[number % 2], kept.id)
    ids = [response.call_id for message in kept.messages for response in responses_of(message)]
    orphans = [call_id for call_id in ids if call_id not in kept.chat.state.history.ledger]
    assert len(orphans) == len(set(orphans)) == 4
    check_renders(kept)


def test_keys_are_not_stored(stores) -> None:
    server = {"type": "url", "url": "https://x.example/mcp", "name": "x", "authorization_token": "hush"}
    user_message = {"role": "user", "content": "go"}
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [user_message], "mcp_servers": [server]}
    kept = StoredConversation.create(stores[0], segue.Conversation.from_body(body, source="anthropic"))
    assert b"hush" in kept.render("anthropic").data
    kept.add_user("on")
    kept.reload()
    assert b"hush" in kept.render("anthropic").data
    again = open_as_second(stores, kept).render("anthropic").data
    assert b"x.example" in again
    assert b"hush" not in again
    kept.update_settings(system="other")
    kept.reload()
    assert b"hush" not in kept.render("anthropic").data


def test_a_turn_is_several_appends_the_reply_before_its_results(kept) -> None:
    for call, number in zip(kept.pending, itertools.count(1), strict=False):
        seq = kept.state.seq
        kept.add_result(call, f"{number}")
        [record] = kept._store.tail(kept.id, 1)
        assert (record.seq, type(record.event)) == (seq + 1, CallCompleted)
    assert [type(r.event) for r in kept._store.events(kept.id)].count(MessageAdded) == 2


# ------------------------------------------------------------------------------------------------------------ the work


def _call_message(call_id: str) -> dict[str, Any]:
    return chat_body.assistant_calls(chat_body.call(call_id))


def _resume_work(store: SqliteStore, turns: int) -> tuple[int, int]:
    """Return the lines run and the steps of SQLite to open a conversation and render its first request."""
    messages = [m for i in range(turns) for m in (_call_message(f"c{i}"), chat_body.result(f"c{i}"))]
    chat = segue.Conversation.from_body({"messages": [chat_body.user("go"), *messages]}, source="openai-chat")
    conversation = StoredConversation.create(store, chat).id
    steps = 0

    def count_step() -> None:
        nonlocal steps
        steps += 1

    with closing(sqlite3.connect(store.path)) as connection:
        connection.set_progress_handler(count_step, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "_connection", connection)
            lines = count_work(lambda: StoredConversation(store, conversation).render("anthropic").data)
    return lines, steps


def test_work_of_a_resume_is_linear_in_the_length(tmp_path: Path) -> None:
    """The first ten turns stand for all that is done once; of the rest, 200 are four times as many as 50."""
    with SqliteStore(tmp_path / "store.db") as store:
        _resume_work(store, 10)  # fills the caches
        once, short, long = (_resume_work(store, turns) for turns in (10, 60, 210))
    for first, middle, last in zip(once, short, long, strict=True):
        assert last - first < 4.2 * (middle - first)
