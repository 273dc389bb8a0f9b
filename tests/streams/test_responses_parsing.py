"""Parsing streams of the Responses API in every variant that servers send."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from segue.canonical.blocks import Text, Thinking, ToolCall, ToolResponse
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Finished,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    WholeBlock,
    reply_events,
)
from tests.conversations.replies import responses_reply
from tests.streams.parsing import Body, content_of, join_deltas, read, splits, sse
from tests.streams.rendering import render_stream
from tests.streams.responses_events import (
    CITED,
    CODE,
    COMPUTER,
    EVERYTHING,
    IMAGE,
    MCP,
    SEARCH,
    WIRE,
    check_same_reply,
    custom,
    drop_events,
    function,
    inputs,
    item_events,
    message,
    reasoning,
    select_events,
    started_calls,
    stream_events,
    texts,
)


def test_documented_event_order() -> None:
    events = check_same_reply(EVERYTHING, sse(*stream_events(EVERYTHING), named=True))
    assert isinstance(events[0], ReplyStart)
    assert (events[0].id, events[0].model) == ("resp_1", "gpt-5.1")
    assert "".join(texts(events)) == "Hello wörld 😀 and moreBye."
    assert len(texts(events)) > 5
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "tool_calls"


def test_many_similar_deltas() -> None:
    """Similar deltas are parsed by their text alone; slightly different ones are still parsed."""
    text = 'Words "and" \\ signs, wörld 😀\n' * 20
    arguments = json.dumps({"path": text, "list": list(range(50))})
    body = responses_reply(reasoning(text, text), message(text, text), function(arguments), custom(text))
    payloads = stream_events(body)
    padded = [{**one, "obfuscation": "x" * (at % 7)} if "delta" in one else one for at, one in enumerate(payloads)]
    for some in (payloads, padded):
        events = check_same_reply(body, sse(*some, named=True))
        assert len(events) > 1000
    odd = [
        {**one, "logprobs": [{"token": "x"}]} if at % 50 == 0 and "text.delta" in one["type"] else one
        for at, one in enumerate(payloads)
    ]
    _, reply = read(WIRE, sse(*odd))
    assert reply.text == text * 2
    scored = [{**one, "logprobs": [{"token": "x"}]} if "text.delta" in one["type"] else one for one in payloads]
    events, _ = read(WIRE, sse(*scored))
    assert all(event.extras for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("pieces", list(splits(sse(*stream_events(EVERYTHING), named=True))))
def test_any_split_of_the_bytes_gives_the_same(pieces: list[bytes]) -> None:
    assert join_deltas(read(WIRE, pieces)) == join_deltas(read(WIRE, sse(*stream_events(EVERYTHING), named=True)))


def test_response_is_unchanged_for_same_api() -> None:
    _, reply = read(WIRE, sse(*stream_events(EVERYTHING)))
    assert reply.native is not None
    assert reply.native.fragment == EVERYTHING


def test_type_only_in_the_event_name() -> None:
    payloads = stream_events(EVERYTHING)
    bare = [(one["type"], {key: value for key, value in one.items() if key != "type"}) for one in payloads]
    data = "".join(f"event: {name}\ndata: {json.dumps(value)}\n\n" for name, value in bare).encode()
    check_same_reply(EVERYTHING, data)


def test_without_deltas_only_items() -> None:
    payloads = select_events(stream_events(EVERYTHING), "created", "output_item.added", "output_item.done", "completed")
    check_same_reply(EVERYTHING, sse(*payloads))


def test_without_deltas_only_done_items() -> None:
    payloads = select_events(stream_events(EVERYTHING), "created", "output_item.done", "completed")
    check_same_reply(EVERYTHING, sse(*payloads))


def test_only_the_end_with_the_whole_response() -> None:
    check_same_reply(EVERYTHING, sse(*select_events(stream_events(EVERYTHING), "completed")))


def test_a_body_at_once() -> None:
    check_same_reply(EVERYTHING, json.dumps(EVERYTHING).encode())


def test_a_body_at_once_in_an_event() -> None:
    check_same_reply(EVERYTHING, sse(EVERYTHING))


def test_the_end_without_the_output() -> None:
    payloads = stream_events(EVERYTHING)
    payloads[-1] = {**payloads[-1], "response": {**EVERYTHING, "output": []}}
    check_same_reply(EVERYTHING, sse(*payloads))


def test_only_deltas_and_an_empty_end() -> None:
    """Neither `added` nor `done`: the deltas give the kind of item."""
    body = responses_reply(message("Hello you"))
    payloads = select_events(stream_events(body), "created", "output_text.delta", "completed")
    payloads[-1] = {**payloads[-1], "response": {**body, "output": []}}
    _, reply = read(WIRE, sse(*payloads))
    assert reply.text == "Hello you"
    assert reply.finish == "stop"


def test_missing_sequence_numbers() -> None:
    payloads = [
        {key: value for key, value in one.items() if key != "sequence_number"} for one in stream_events(EVERYTHING)
    ]
    check_same_reply(EVERYTHING, sse(*payloads))


def test_output_indexes_out_of_order() -> None:
    """Two items grow at once; the response has them by their number."""
    body = responses_reply(function('{"path": "a"}'), function('{"path": "b"}', "fc_2", "call_2"))
    first, second = item_events(body["output"][0], 0, 4), item_events(body["output"][1], 1, 4)
    mixed = [one for pair in zip(second, first, strict=True) for one in pair]
    payloads = stream_events({**body, "output": []})
    payloads[-1] = {**payloads[-1], "response": {**body, "output": []}}
    events, reply = read(WIRE, sse(*payloads[:2], *mixed, payloads[-1]))
    assert [call.arguments for call in reply.calls] == [{"path": "a"}, {"path": "b"}]
    assert [call.id for call in reply.calls] == started_calls(events)[::-1]


def test_the_same_output_index_for_all() -> None:
    payloads = [{**one, "output_index": 0} if "output_index" in one else one for one in stream_events(EVERYTHING)]
    check_same_reply(EVERYTHING, sse(*payloads))


def test_item_ids_alone() -> None:
    payloads = [
        {key: value for key, value in one.items() if key != "output_index"} for one in stream_events(EVERYTHING)
    ]
    check_same_reply(EVERYTHING, sse(*payloads))


def test_output_indexes_alone() -> None:
    payloads = [{key: value for key, value in one.items() if key != "item_id"} for one in stream_events(EVERYTHING)]
    check_same_reply(EVERYTHING, sse(*payloads))


def test_another_item_id_in_each_event() -> None:
    payloads: list[Body] = []
    for number, one in enumerate(stream_events(EVERYTHING)):
        if "item_id" in one:
            one = {**one, "item_id": f"x{number}"}
        if "item" in one:
            one = {**one, "item": {**one["item"], "id": f"x{number}"}}
        payloads.append(one)
    _, reply = read(WIRE, sse(*payloads))
    assert reply.text == WIRE.parse_reply(EVERYTHING).text
    assert len(reply.blocks) == len(WIRE.parse_reply(EVERYTHING).blocks)


def test_the_call_id_in_done_alone() -> None:
    """The id of a call is canonical from the first moment, so its beginning waits for what it is made of."""
    body = responses_reply(function('{"path": "a"}'))
    payloads = stream_events(body)
    payloads[2]["item"] = {key: value for key, value in payloads[2]["item"].items() if key != "call_id"}
    events = check_same_reply(body, sse(*payloads))
    whole = check_same_reply(body, sse(*stream_events(body)))
    assert started_calls(events) == started_calls(whole)


def test_arguments_in_done_alone() -> None:
    body = responses_reply(function('{"path": "a"}'))
    payloads = drop_events(stream_events(body), "arguments.delta")
    payloads = [{**one, "response": {**body, "output": []}} if "completed" in one["type"] else one for one in payloads]
    payloads = [
        {**one, "item": {**one["item"], "arguments": ""}} if "item.done" in one["type"] else one for one in payloads
    ]
    events, reply = read(WIRE, sse(*payloads))
    assert [call.arguments for call in reply.calls] == [{"path": "a"}]
    assert inputs(events) == '{"path": "a"}'


def test_arguments_whole_in_added_and_again_in_deltas() -> None:
    body = responses_reply(function('{"path": "a"}'))
    payloads = stream_events(body)
    payloads[2]["item"]["arguments"] = '{"path": "a"}'
    assert inputs(check_same_reply(body, sse(*payloads))) == '{"path": "a"}'


def test_arguments_that_begin_in_added() -> None:
    body = responses_reply(function('{"path": "a"}'))
    payloads = stream_events(body)
    payloads[2]["item"]["arguments"] = '{"p'
    del payloads[3]
    assert inputs(check_same_reply(body, sse(*payloads))) == '{"path": "a"}'


@pytest.mark.parametrize("lost", [3, 4, 5, 6])
def test_arguments_that_lost_a_delta_are_never_a_valid_call(lost: int) -> None:
    """The client got incomplete arguments, which may even be valid JSON."""
    payloads = stream_events(responses_reply(function('{"paa": "a"}')), 1 if lost == 6 else 3)
    del payloads[lost]
    _, reply = read(WIRE, sse(*payloads))
    assert [(call.arguments, call.broken) for call in reply.calls] == [(None, True)]


def test_free_text_that_lost_a_delta_is_never_a_valid_call() -> None:
    payloads = stream_events(responses_reply(custom("rm -r /tmp/x")))
    del payloads[4]
    _, reply = read(WIRE, sse(*payloads))
    assert [(call.arguments, call.broken) for call in reply.calls] == [(None, True)]


def test_arguments_whose_end_is_only_in_done() -> None:
    body = responses_reply(function('{"path": "a"}'))
    payloads = stream_events(body)
    del payloads[6:8]
    assert inputs(check_same_reply(body, sse(*payloads))) == '{"path": "a"}'


def test_free_text_input_deltas() -> None:
    body = responses_reply(custom("*** Begin Patch\n*** End Patch"))
    events = check_same_reply(body, sse(*stream_events(body)))
    first = next(event.block for event in events if isinstance(event, BlockStart))
    assert isinstance(first, ToolCall)
    assert first.kind == "custom"
    assert inputs(events) == "*** Begin Patch\n*** End Patch"


def test_refusal_deltas() -> None:
    content = {**message(), "content": [{"type": "refusal", "refusal": "I can't do that."}]}
    events = check_same_reply(responses_reply(content), sse(*stream_events(responses_reply(content))))
    first = next(event.block for event in events if isinstance(event, BlockStart))
    assert isinstance(first, Text)
    assert first.refusal


def test_summaries_in_parts() -> None:
    body = responses_reply(reasoning("One.", "Two.", "Three."), message("Hi"))
    events = check_same_reply(body, sse(*stream_events(body)))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "One.\n\nTwo.\n\nThree."


def test_reasoning_text() -> None:
    thought = reasoning(content=[{"type": "reasoning_text", "text": "Hm, so be it."}])
    body = responses_reply(thought, message("Hi"))
    events = check_same_reply(body, sse(*stream_events(body)))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Hm, so be it."


def test_encrypted_content_is_that_of_the_done_item() -> None:
    """OAI-RESP-22: before that it is incomplete."""
    body = responses_reply(reasoning("Hm.", encrypted_content="whole"), message("Hi"))
    payloads = stream_events(body)
    payloads[-1] = {
        **payloads[-1],
        "response": responses_reply(reasoning("Hm.", encrypted_content="other"), message("Hi")),
    }
    _, reply = read(WIRE, sse(*payloads))
    assert [block.encrypted for block in reply.blocks if isinstance(block, Thinking)] == ["whole"]


def test_encrypted_content_that_was_never_done_is_none() -> None:
    payloads = stream_events(responses_reply(reasoning("Hm.", encrypted_content="whole"), message("Hi")))
    _, reply = read(WIRE, sse(*payloads[:5]))
    assert [block.encrypted for block in reply.blocks if isinstance(block, Thinking)] == [None]


def test_reasoning_without_text() -> None:
    body = responses_reply(reasoning(encrypted_content="gAAA"), message("Hi"))
    events = check_same_reply(body, sse(*stream_events(body)))
    assert not any(isinstance(event, ThinkingDelta) for event in events)
    assert isinstance(events[2], BlockEnd)
    assert isinstance(events[2].block, Thinking)
    assert events[2].block.encrypted == "gAAA"


def test_annotations() -> None:
    body = responses_reply(message("Hello", annotations=[CITED]))
    check_same_reply(body, sse(*stream_events(body)))
    payloads = drop_events(stream_events(body), "part.done", "item.done")
    payloads[-1] = {**payloads[-1], "response": {**body, "output": []}}
    events, _ = read(WIRE, sse(*payloads))
    (block,) = [event.block for event in events if isinstance(event, BlockEnd)]
    assert block.native is not None
    assert block.native.fragment["content"][0]["annotations"] == [CITED]


@pytest.mark.parametrize("item", [SEARCH, MCP, CODE, IMAGE], ids=lambda item: item["type"])
def test_hosted_items_are_emitted_whole(item: Body) -> None:
    body = responses_reply(item, message("Hi"))
    events = check_same_reply(body, sse(*stream_events(body)))
    whole = [event.block for event in events if isinstance(event, WholeBlock)]
    assert [type(block) for block in whole] in ([ToolCall], [ToolCall, ToolResponse])
    assert whole[0].native is not None
    assert whole[0].native.fragment == item


def test_a_call_of_a_type_of_its_own_comes_at_its_end() -> None:
    body = responses_reply(COMPUTER)
    events = check_same_reply(body, sse(*stream_events(body)))
    assert json.loads(inputs(events))["action"]["x"] == 1


def test_deltas_of_hosted_tools_are_no_events() -> None:
    body = responses_reply(MCP, CODE)
    at = {"item_id": "mcp_1", "output_index": 0}
    more = [
        {"type": "response.mcp_call_arguments.delta", **at, "delta": '{"a":1}'},
        {"type": "response.mcp_call.in_progress", **at},
        {"type": "response.code_interpreter_call_code.delta", "item_id": "ci_1", "output_index": 1, "delta": "1+1"},
    ]
    payloads = stream_events(body)
    check_same_reply(body, sse(*payloads[:3], *more[:2], *payloads[3:5], more[2], *payloads[5:]))


def test_unknown_item_is_kept() -> None:
    odd = {"id": "odd_1", "type": "dream", "text": "of sheep"}
    body = responses_reply(odd, message("Hi"))
    events = check_same_reply(body, sse(*stream_events(body)))
    (whole,) = [event.block for event in events if isinstance(event, WholeBlock)]
    assert whole.native is not None
    assert whole.native.fragment == odd


def test_unknown_events_are_ignored() -> None:
    payloads = stream_events(EVERYTHING)
    odd = [{"type": "keepalive"}, {"type": "response.dreams.delta", "delta": "x"}, {"no": "type"}, {"type": 7}]
    check_same_reply(EVERYTHING, sse(*payloads[:4], *odd, *payloads[4:]))


def test_parallel_parts_are_emitted_in_sequence() -> None:
    body = responses_reply(message("Hello", "World"))
    events = check_same_reply(body, sse(*stream_events(body)))
    kinds = [type(event).__name__ for event in events if isinstance(event, BlockStart | BlockEnd)]
    assert kinds == ["BlockStart", "BlockEnd", "BlockStart", "BlockEnd"]


ITEMS_OF_OLD = json.loads((Path(__file__).parents[1] / "data" / "responses_items.json").read_text())
assert len(ITEMS_OF_OLD) >= 42


@pytest.mark.parametrize("case", ITEMS_OF_OLD, ids=lambda case: case["name"])
def test_items_of_requests_as_a_reply(case: Body) -> None:
    """Any item in a reply is emitted, and unchanged for the same API."""
    body = responses_reply(*case["input"])
    whole = WIRE.parse_reply(body)
    events, reply = read(WIRE, json.dumps(body).encode())
    assert content_of(reply) == content_of(whole)
    for payloads in (events, reply_events(reply)):
        assert content_of(read(WIRE, render_stream(WIRE, payloads))[1]) == content_of(whole)


@pytest.mark.parametrize("is_added", [True, False])
def test_the_name_may_arrive_with_the_complete_arguments(is_added: bool) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "arguments": "", "status": "in_progress"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    place = {"item_id": "fc_1", "output_index": 0}
    done = {"type": "response.function_call_arguments.done", **place, "name": "f", "arguments": '{"x": 1}'}
    response = {"id": "resp_1", "object": "response", "model": "gpt-5", "output": []}
    payloads = [
        {"type": "response.created", "response": response},
        *([added] if is_added else []),
        {"type": "response.function_call_arguments.delta", **place, "delta": '{"x"'},
        done,
        {"type": "response.completed", "response": {**response, "status": "completed"}},
    ]
    events, reply = read(WIRE, sse(*payloads))
    (call,) = reply.calls
    assert (call.name, call.arguments, started_calls(events)) == ("f", {"x": 1}, [call.id])
