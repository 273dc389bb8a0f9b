"""The write boundary: one ledger, equal results once, sent results stay, rewinds lose nothing."""

from __future__ import annotations

from typing import Any

import pytest

from segue.canonical.blocks import Message, Origin, State, Text, ToolCall, ToolResponse, responses_of, state_of
from segue.canonical.history import History
from segue.errors import InputError


def call(raw_id: str = "a", **arguments: Any) -> Message:
    return Message("ai", (ToolCall("look", arguments, origin=Origin("openai", raw_id=raw_id)),), turn_key="turn-1")


def opened() -> tuple[History, ToolCall]:
    history = History()
    history.add(call(word="w"))
    return history, history.pending[0]


def completion(history: History) -> ToolResponse:
    found = [response for message in history.messages for response in responses_of(message)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("response", "state"),
    [
        (ToolResponse(content=(Text("x"),)), "complete"),
        (ToolResponse(content=(), is_complete=True), "complete"),
        (ToolResponse(content=()), "complete"),
        (ToolResponse(structured={"a": 1}), "complete"),
        (ToolResponse(structured=None), "complete"),
        (ToolResponse(), "pending"),
        (ToolResponse(is_complete=True), "complete"),
        (ToolResponse(content=(Text("half"),), is_complete=False), "pending"),
        (ToolResponse(content=(Text("boom"),), error=True), "error"),
        (ToolResponse(error=True), "error"),
        (ToolResponse(content=(Text("half"),), is_complete=False, error=True), "error"),
        (ToolResponse(outcome="cancelled", error=True), "cancelled"),
        (ToolResponse(outcome="interrupted"), "interrupted"),
    ],
)
def test_state_follows_from_all_fields(response: ToolResponse, state: State):
    assert state_of(response) == state


def test_the_same_completion_twice_is_written_once():
    history, pending = opened()
    history.add(Message("tool", (pending.respond("done"),)))
    assert history.add(Message("tool", (pending.respond("done"),))) == ()
    assert completion(history).content == (Text("done"),)
    assert history.pending == []


def test_a_real_result_takes_the_place_of_an_unsent_interruption():
    history, pending = opened()
    history.add(Message("tool", (pending.respond("gone", error=True, outcome="interrupted"),)))
    history.add(Message("tool", (pending.respond("real"),)))
    assert completion(history).content == (Text("real"),)
    assert [found.outcome for found in history.ledger[pending.id].evidence] == ["interrupted"]


def test_sent_result_is_not_replaced():
    history, pending = opened()
    history.add(Message("tool", (pending.respond("gone", error=True, outcome="interrupted"),)))
    history.mark_sent()
    history.add(Message("tool", (pending.respond("real"),)))
    assert completion(history).outcome == "interrupted"
    assert [found.content for found in history.ledger[pending.id].evidence] == [(Text("real"),)]


def test_among_equals_the_first():
    history, pending = opened()
    history.add(Message("tool", (pending.respond("one"),)), Message("tool", (pending.respond("two"),)))
    assert completion(history).content == (Text("one"),)


def test_partial_output_is_evidence_and_the_call_is_still_pending():
    history, pending = opened()
    history.add(Message("tool", (ToolResponse(pending.id, content=(Text("half"),), is_complete=False),)))
    assert [found.id for found in history.pending] == [pending.id]
    assert len(history.ledger[pending.id].evidence) == 1


def test_the_ledger_supplies_the_side_that_was_cut():
    history, pending = opened()
    history.add(Message("tool", (pending.respond("done"),)))
    call_message, result_message = history.messages
    history.replace_messages([result_message])
    messages, given = history.complete_from_ledger()
    assert given == [pending.id]
    assert [message.speaker for message in messages] == ["ai", "tool"]
    assert messages[0].blocks == (pending,)
    history = History([call_message, result_message])
    history.replace_messages([history.messages[0]])
    messages, given = history.complete_from_ledger()
    assert given == [pending.id]
    assert [message.speaker for message in messages] == ["ai", "tool"]


def test_a_shared_argument_object_stays_whole():
    shared = {"deep": [1, 2]}
    history = History([call(one=shared, two=shared)])
    assert history.pending[0].arguments == {"one": {"deep": [1, 2]}, "two": {"deep": [1, 2]}}


def test_a_circular_argument_object_is_a_clear_error():
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(InputError, match="contains itself") as caught:
        History([call(loop=loop)])
    assert caught.value.path == "blocks[0].arguments.loop.self"


def test_the_counter_never_goes_back():
    history = History(turns=7)
    assert history.open_turn() == "turn-8"
    history.replace_messages([])
    assert history.open_turn() == "turn-9"
