"""Streams of the Responses API: every way that servers tell a response in, and a stream that clients take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.blocks import Text, Thinking, ToolCall, ToolResponse
from segue.errors import InputError, RemoteProtocolError
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.dialects.foundry import AZURE_FOUNDRY
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    Whole,
    events_of,
)
from segue.wire.gemini import GEMINI
from segue.wire.openai_chat import OPENAI_CHAT
from segue.wire.openai_responses import OPENAI_RESPONSES
from segue.wire.openai_responses.growing import INPUTS
from tests.catalog.originals import samples
from tests.conversations.replies import chat_reply, responses_reply

from .flowing import (
    Body,
    at_once,
    calls_of,
    check,
    flow,
    garbled,
    payloads,
    pieces,
    plainly,
    random_bytes,
    sse,
    written,
)

WIRE = OPENAI_RESPONSES
DIALECTS = [OPENAI_RESPONSES, AZURE_FOUNDRY]
CITED = {"type": "url_citation", "start_index": 0, "end_index": 5, "url": "https://a.example", "title": "A"}


def message(*texts: str, id: str = "msg_1", **part: Any) -> Body:
    content = [{"type": "output_text", "text": text, "annotations": [], **part} for text in texts]
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content}


def function(arguments: str, id: str = "fc_1", call_id: str = "call_1", name: str = "read_file", **more: Any) -> Body:
    bare = {"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return {**bare, "status": "completed", **more}


def custom(text: str) -> Body:
    return {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_c", "name": "patch", "input": text}


def reasoning(*summary: str, **more: Any) -> Body:
    told = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": told, **more}


SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "lisbon", "sources": [{"type": "url", "url": "https://a.example"}]},
}
MCP = {"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "t", "arguments": '{"a":1}', "output": "o"}
CODE = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1+1", "outputs": []}
IMAGE = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk="}
COMPUTER = {
    "id": "cu_1",
    "type": "computer_call",
    "call_id": "call_u",
    "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
    "pending_safety_checks": [],
    "status": "completed",
}
EVERYTHING = responses_reply(
    reasoning("Think.", "Again.", encrypted_content="gAAA"),
    message("Hello wörld 😀", " and more"),
    SEARCH,
    function('{"path": "a"}'),
    function('{"path": "b"}', "fc_2", "call_2"),
    custom("*** Begin"),
    message("Bye.", id="msg_2"),
)


# ------------------------------------------------------------------------------------------------- by the book, written


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def by_the_book(body: Body, size: int = 3) -> list[Body]:
    """A response as OpenAI streams it, written from its documents and not by what is tested here."""
    told: list[Body] = []
    empty = {**body, "output": [], "usage": None, "status": "in_progress"}
    told += [{"type": "response.created", "response": empty}, {"type": "response.in_progress", "response": empty}]
    for index, item in enumerate(body["output"]):
        told += _item(item, index, size)
    told.append({"type": f"response.{body['status']}", "response": body})
    return [{**one, "sequence_number": number} for number, one in enumerate(told)]


def _item(item: Body, index: int, size: int) -> list[Body]:
    kind, at = item["type"], {"item_id": item["id"], "output_index": index}
    bare = {**item, "status": "in_progress"} if "status" in item else dict(item)
    told: list[Body] = []
    if kind == "message":
        bare["content"] = []
        for number, part in enumerate(item["content"]):
            place = {**at, "content_index": number}
            key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
            told.append({"type": "response.content_part.added", **place, "part": {**part, key: "", "annotations": []}})
            told += [{"type": f"response.{name}.delta", **place, "delta": one} for one in cut(part[key], size)]
            told += [
                {"type": "response.output_text.annotation.added", **place, "annotation_index": n, "annotation": one}
                for n, one in enumerate(part.get("annotations", []))
            ]
            told.append({"type": f"response.{name}.done", **place, key: part[key]})
            told.append({"type": "response.content_part.done", **place, "part": part})
    elif kind == "reasoning":
        bare = {"id": item["id"], "type": kind, "summary": [], "encrypted_content": "not yet"}
        for listed, numbered, part, text in (
            ("summary", "summary_index", "reasoning_summary_part", "reasoning_summary_text"),
            ("content", "content_index", "content_part", "reasoning_text"),
        ):
            for number, entry in enumerate(item.get(listed) or []):
                place = {**at, numbered: number}
                told.append({"type": f"response.{part}.added", **place, "part": {**entry, "text": ""}})
                told += [{"type": f"response.{text}.delta", **place, "delta": one} for one in cut(entry["text"], size)]
                told.append({"type": f"response.{text}.done", **place, "text": entry["text"]})
                told.append({"type": f"response.{part}.done", **place, "part": entry})
    elif kind in ("function_call", "custom_tool_call"):
        key = INPUTS[kind]
        name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
        bare[key] = ""
        told += [{"type": f"response.{name}.delta", **at, "delta": one} for one in cut(item[key], size)]
        told.append({"type": f"response.{name}.done", **at, key: item[key]})
    added = {"type": "response.output_item.added", "output_index": index, "item": bare}
    return [added, *told, {"type": "response.output_item.done", "output_index": index, "item": item}]


def same_as_at_once(body: Body, data: bytes, *, finish: str | None = None) -> list[Event]:
    events, reply = flow(WIRE, data)
    whole = WIRE.parse_reply(body)
    assert plainly(reply) == plainly(whole)
    assert (reply.finish, reply.usage, reply.id, reply.model, reply.created) == (
        finish or whole.finish,
        whole.usage,
        whole.id,
        whole.model,
        whole.created,
    )
    assert len({call.id for call in reply.calls}) == len(reply.calls)
    return events


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def inputs(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, InputDelta))


def begun(events: list[Event]) -> list[str]:
    """The ids of calls in the order in which they begin."""
    return [event.block.id for event in events if isinstance(event, Start) and isinstance(event.block, ToolCall)]


def only(told: list[Body], *kinds: str) -> list[Body]:
    return [one for one in told if one["type"].removeprefix("response.") in kinds]


def without(told: list[Body], *words: str) -> list[Body]:
    return [one for one in told if not any(word in one["type"] for word in words)]


# ------------------------------------------------------------------------------------------------------------- reading


def test_a_response_by_the_book() -> None:
    events = same_as_at_once(EVERYTHING, sse(*by_the_book(EVERYTHING), named=True))
    assert isinstance(events[0], Opened)
    assert (events[0].id, events[0].model) == ("resp_1", "gpt-5.1")
    assert "".join(texts(events)) == "Hello wörld 😀 and moreBye."
    assert len(texts(events)) > 5
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "tool_calls"


def test_many_deltas_that_are_alike() -> None:
    """Those are read by their text alone; what is not quite like them still is read."""
    text = 'Words "and" \\ signs, wörld 😀\n' * 20
    arguments = json.dumps({"path": text, "list": list(range(50))})
    body = responses_reply(reasoning(text, text), message(text, text), function(arguments), custom(text))
    told = by_the_book(body)
    padded = [{**one, "obfuscation": "x" * (at % 7)} if "delta" in one else one for at, one in enumerate(told)]
    for some in (told, padded):
        events = same_as_at_once(body, sse(*some, named=True))
        assert len(events) > 1000
    odd = [
        {**one, "logprobs": [{"token": "x"}]} if at % 50 == 0 and "text.delta" in one["type"] else one
        for at, one in enumerate(told)
    ]
    _, reply = flow(WIRE, sse(*odd))
    assert reply.text == text * 2
    scored = [{**one, "logprobs": [{"token": "x"}]} if "text.delta" in one["type"] else one for one in told]
    events, _ = flow(WIRE, sse(*scored))
    assert all(event.beside for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_any_split_of_the_bytes_gives_the_same(seed: int | None) -> None:
    data = sse(*by_the_book(EVERYTHING), named=True)
    whole = flow(WIRE, data)
    assert flow(WIRE, pieces(data, seed)) == whole


def test_at_home_nothing_of_a_response_is_lost() -> None:
    _, reply = flow(WIRE, sse(*by_the_book(EVERYTHING)))
    assert reply.native is not None
    assert reply.native.fragment == EVERYTHING


def test_the_type_may_stand_in_the_name_of_the_event_alone() -> None:
    told = by_the_book(EVERYTHING)
    bare = [(one["type"], {key: value for key, value in one.items() if key != "type"}) for one in told]
    data = "".join(f"event: {name}\ndata: {json.dumps(value)}\n\n" for name, value in bare).encode()
    same_as_at_once(EVERYTHING, data)


def test_without_deltas_only_items() -> None:
    told = only(by_the_book(EVERYTHING), "created", "output_item.added", "output_item.done", "completed")
    same_as_at_once(EVERYTHING, sse(*told))


def test_without_deltas_only_done_items() -> None:
    told = only(by_the_book(EVERYTHING), "created", "output_item.done", "completed")
    same_as_at_once(EVERYTHING, sse(*told))


def test_only_the_end_with_the_whole_response() -> None:
    same_as_at_once(EVERYTHING, sse(*only(by_the_book(EVERYTHING), "completed")))


def test_a_body_at_once() -> None:
    same_as_at_once(EVERYTHING, json.dumps(EVERYTHING).encode())


def test_a_body_at_once_in_an_event() -> None:
    same_as_at_once(EVERYTHING, sse(EVERYTHING))


def test_the_end_without_the_output() -> None:
    told = by_the_book(EVERYTHING)
    told[-1] = {**told[-1], "response": {**EVERYTHING, "output": []}}
    same_as_at_once(EVERYTHING, sse(*told))


def test_only_deltas_and_an_empty_end() -> None:
    """Neither `added` nor `done`: what kind of item it is, the deltas say."""
    body = responses_reply(message("Hello you"))
    told = only(by_the_book(body), "created", "output_text.delta", "completed")
    told[-1] = {**told[-1], "response": {**body, "output": []}}
    _, reply = flow(WIRE, sse(*told))
    assert reply.text == "Hello you"
    assert reply.finish == "stop"


def test_missing_sequence_numbers() -> None:
    told = [{key: value for key, value in one.items() if key != "sequence_number"} for one in by_the_book(EVERYTHING)]
    same_as_at_once(EVERYTHING, sse(*told))


def test_output_indexes_out_of_order() -> None:
    """Two items grow at once; the response has them by their number."""
    body = responses_reply(function('{"path": "a"}'), function('{"path": "b"}', "fc_2", "call_2"))
    first, second = _item(body["output"][0], 0, 4), _item(body["output"][1], 1, 4)
    mixed = [one for pair in zip(second, first, strict=True) for one in pair]
    told = by_the_book({**body, "output": []})
    told[-1] = {**told[-1], "response": {**body, "output": []}}
    events, reply = flow(WIRE, sse(*told[:2], *mixed, told[-1]))
    assert [call.arguments for call in calls_of(reply)] == [{"path": "a"}, {"path": "b"}]
    assert [call.id for call in calls_of(reply)] == begun(events)[::-1]


def test_the_same_output_index_for_all() -> None:
    told = [{**one, "output_index": 0} if "output_index" in one else one for one in by_the_book(EVERYTHING)]
    same_as_at_once(EVERYTHING, sse(*told))


def test_item_ids_alone() -> None:
    told = [{key: value for key, value in one.items() if key != "output_index"} for one in by_the_book(EVERYTHING)]
    same_as_at_once(EVERYTHING, sse(*told))


def test_output_indexes_alone() -> None:
    told = [{key: value for key, value in one.items() if key != "item_id"} for one in by_the_book(EVERYTHING)]
    same_as_at_once(EVERYTHING, sse(*told))


def test_another_item_id_in_each_event() -> None:
    told: list[Body] = []
    for number, one in enumerate(by_the_book(EVERYTHING)):
        if "item_id" in one:
            one = {**one, "item_id": f"x{number}"}
        if "item" in one:
            one = {**one, "item": {**one["item"], "id": f"x{number}"}}
        told.append(one)
    _, reply = flow(WIRE, sse(*told))
    assert reply.text == WIRE.parse_reply(EVERYTHING).text
    assert len(reply.blocks) == len(WIRE.parse_reply(EVERYTHING).blocks)


def test_the_call_id_in_done_alone() -> None:
    """The id of a call is canonical from the first moment, so its beginning waits for what it is made of."""
    body = responses_reply(function('{"path": "a"}'))
    told = by_the_book(body)
    told[2]["item"] = {key: value for key, value in told[2]["item"].items() if key != "call_id"}
    events = same_as_at_once(body, sse(*told))
    whole = same_as_at_once(body, sse(*by_the_book(body)))
    assert begun(events) == begun(whole)


def test_arguments_in_done_alone() -> None:
    body = responses_reply(function('{"path": "a"}'))
    told = without(by_the_book(body), "arguments.delta")
    told = [{**one, "response": {**body, "output": []}} if "completed" in one["type"] else one for one in told]
    told = [{**one, "item": {**one["item"], "arguments": ""}} if "item.done" in one["type"] else one for one in told]
    events, reply = flow(WIRE, sse(*told))
    assert [call.arguments for call in calls_of(reply)] == [{"path": "a"}]
    assert inputs(events) == '{"path": "a"}'


def test_arguments_whole_in_added_and_again_in_deltas() -> None:
    body = responses_reply(function('{"path": "a"}'))
    told = by_the_book(body)
    told[2]["item"]["arguments"] = '{"path": "a"}'
    assert inputs(same_as_at_once(body, sse(*told))) == '{"path": "a"}'


def test_arguments_that_begin_in_added() -> None:
    body = responses_reply(function('{"path": "a"}'))
    told = by_the_book(body)
    told[2]["item"]["arguments"] = '{"p'
    del told[3]
    assert inputs(same_as_at_once(body, sse(*told))) == '{"path": "a"}'


@pytest.mark.parametrize("lost", [3, 4, 5, 6])
def test_arguments_that_lost_a_delta_are_never_a_valid_call(lost: int) -> None:
    """What a client was told is not what was meant, and may even be JSON."""
    told = by_the_book(responses_reply(function('{"paa": "a"}')), 1 if lost == 6 else 3)
    del told[lost]
    _, reply = flow(WIRE, sse(*told))
    assert [(call.arguments, call.broken) for call in calls_of(reply)] == [(None, True)]


def test_free_text_that_lost_a_delta_is_never_a_valid_call() -> None:
    told = by_the_book(responses_reply(custom("rm -r /tmp/x")))
    del told[4]
    _, reply = flow(WIRE, sse(*told))
    assert [(call.arguments, call.broken) for call in calls_of(reply)] == [(None, True)]


def test_arguments_whose_end_no_delta_told() -> None:
    body = responses_reply(function('{"path": "a"}'))
    told = by_the_book(body)
    del told[6:8]
    assert inputs(same_as_at_once(body, sse(*told))) == '{"path": "a"}'


def test_free_text_input_deltas() -> None:
    body = responses_reply(custom("*** Begin Patch\n*** End Patch"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    first = next(event.block for event in events if isinstance(event, Start))
    assert isinstance(first, ToolCall)
    assert first.kind == "custom"
    assert inputs(events) == "*** Begin Patch\n*** End Patch"


def test_refusal_deltas() -> None:
    said = {**message(), "content": [{"type": "refusal", "refusal": "I can't do that."}]}
    events = same_as_at_once(responses_reply(said), sse(*by_the_book(responses_reply(said))))
    first = next(event.block for event in events if isinstance(event, Start))
    assert isinstance(first, Text)
    assert first.refusal


def test_summaries_in_parts() -> None:
    body = responses_reply(reasoning("One.", "Two.", "Three."), message("Hi"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "One.\n\nTwo.\n\nThree."


def test_reasoning_text() -> None:
    thought = reasoning(content=[{"type": "reasoning_text", "text": "Hm, so be it."}])
    body = responses_reply(thought, message("Hi"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Hm, so be it."


def test_encrypted_content_is_that_of_the_done_item() -> None:
    """OAI-RESP-22: before that it is not whole."""
    body = responses_reply(reasoning("Hm.", encrypted_content="whole"), message("Hi"))
    told = by_the_book(body)
    told[-1] = {**told[-1], "response": responses_reply(reasoning("Hm.", encrypted_content="other"), message("Hi"))}
    _, reply = flow(WIRE, sse(*told))
    assert [block.sealed for block in reply.blocks if isinstance(block, Thinking)] == ["whole"]


def test_encrypted_content_that_was_never_done_is_none() -> None:
    told = by_the_book(responses_reply(reasoning("Hm.", encrypted_content="whole"), message("Hi")))
    _, reply = flow(WIRE, sse(*told[:5]))
    assert [block.sealed for block in reply.blocks if isinstance(block, Thinking)] == [None]


def test_reasoning_without_words() -> None:
    body = responses_reply(reasoning(encrypted_content="gAAA"), message("Hi"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    assert not any(isinstance(event, ThinkingDelta) for event in events)
    assert isinstance(events[2], End)
    assert isinstance(events[2].block, Thinking)
    assert events[2].block.sealed == "gAAA"


def test_annotations() -> None:
    body = responses_reply(message("Hello", annotations=[CITED]))
    same_as_at_once(body, sse(*by_the_book(body)))
    told = without(by_the_book(body), "part.done", "item.done")
    told[-1] = {**told[-1], "response": {**body, "output": []}}
    events, _ = flow(WIRE, sse(*told))
    (block,) = [event.block for event in events if isinstance(event, End)]
    assert block.native is not None
    assert block.native.fragment["content"][0]["annotations"] == [CITED]


@pytest.mark.parametrize("item", [SEARCH, MCP, CODE, IMAGE], ids=lambda item: item["type"])
def test_what_the_provider_ran_comes_whole(item: Body) -> None:
    body = responses_reply(item, message("Hi"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    whole = [event.block for event in events if isinstance(event, Whole)]
    assert [type(block) for block in whole] in ([ToolCall], [ToolCall, ToolResponse])
    assert whole[0].native is not None
    assert whole[0].native.fragment == item


def test_a_call_of_a_type_of_its_own_comes_at_its_end() -> None:
    body = responses_reply(COMPUTER)
    events = same_as_at_once(body, sse(*by_the_book(body)))
    assert json.loads(inputs(events))["action"]["x"] == 1


def test_deltas_of_hosted_tools_are_no_events() -> None:
    body = responses_reply(MCP, CODE)
    at = {"item_id": "mcp_1", "output_index": 0}
    more = [
        {"type": "response.mcp_call_arguments.delta", **at, "delta": '{"a":1}'},
        {"type": "response.mcp_call.in_progress", **at},
        {"type": "response.code_interpreter_call_code.delta", "item_id": "ci_1", "output_index": 1, "delta": "1+1"},
    ]
    told = by_the_book(body)
    same_as_at_once(body, sse(*told[:3], *more[:2], *told[3:5], more[2], *told[5:]))


def test_an_item_nobody_knows_is_kept() -> None:
    odd = {"id": "odd_1", "type": "dream", "text": "of sheep"}
    body = responses_reply(odd, message("Hi"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    (whole,) = [event.block for event in events if isinstance(event, Whole)]
    assert whole.native is not None
    assert whole.native.fragment == odd


def test_events_nobody_knows_say_nothing() -> None:
    told = by_the_book(EVERYTHING)
    odd = [{"type": "keepalive"}, {"type": "response.dreams.delta", "delta": "x"}, {"no": "type"}, {"type": 7}]
    same_as_at_once(EVERYTHING, sse(*told[:4], *odd, *told[4:]))


def test_two_open_parts_are_told_one_after_the_other() -> None:
    body = responses_reply(message("Hello", "World"))
    events = same_as_at_once(body, sse(*by_the_book(body)))
    kinds = [type(event).__name__ for event in events if isinstance(event, Start | End)]
    assert kinds == ["Start", "End", "Start", "End"]


ITEMS_OF_OLD = json.loads((Path(__file__).parents[1] / "data" / "responses_items.json").read_text())


@pytest.mark.parametrize("case", ITEMS_OF_OLD, ids=lambda case: case["name"])
def test_items_of_requests_as_a_reply(case: Body) -> None:
    """Whatever stands in a reply is told, and comes home as it was."""
    body = responses_reply(*case["input"])
    try:
        whole = WIRE.parse_reply(body)
    except InputError:
        pytest.skip("no items of a response")
    events, reply = flow(WIRE, json.dumps(body).encode())
    assert plainly(reply) == plainly(whole)
    for told in (events, events_of(reply)):
        assert plainly(flow(WIRE, written(WIRE, told))[1]) == plainly(whole)


# ---------------------------------------------------------------------------------------------------------- how it ends


def test_the_sign_of_the_end_alone() -> None:
    """Gateways that speak the Chat API elsewhere end with it, and leave the terminal event out."""
    body = responses_reply(message("Hi"), function('{"path": "a"}'))
    told = by_the_book(body)[:-1]
    _, reply = flow(WIRE, sse(*told) + b"data: [DONE]\n\n")
    assert (reply.finish, reply.text, reply.calls[0].broken) == ("tool_calls", "Hi", False)


def test_incomplete_for_want_of_room() -> None:
    """OAI-RESP-23; the call that was cut off is broken, and never a valid one."""
    half = function('{"path": "a', status="incomplete")
    body = responses_reply(message("Hi"), half, status="incomplete")
    body["incomplete_details"] = {"reason": "max_output_tokens"}
    events, reply = flow(WIRE, sse(*by_the_book(body)))
    assert reply.finish == "length"
    (call,) = calls_of(reply)
    assert (call.broken, call.arguments, call.arguments_text) == (True, None, '{"path": "a')
    assert isinstance(events[-1], Finished)


def test_incomplete_by_a_filter() -> None:
    body = {**responses_reply(message("Hi"), status="incomplete"), "incomplete_details": {"reason": "content_filter"}}
    same_as_at_once(body, sse(*by_the_book(body)), finish="filter")


def test_a_whole_call_before_the_room_ended_stays_valid() -> None:
    body = responses_reply(function('{"path": "a"}'), message("Hi"), status="incomplete")
    _, reply = flow(WIRE, sse(*by_the_book(body)))
    assert [call.broken for call in calls_of(reply)] == [False]


def test_failed() -> None:
    body = {
        **responses_reply(message("Hi"), status="failed"),
        "error": {"code": "rate_limit_exceeded", "message": "No."},
    }
    events, reply = flow(WIRE, sse(*by_the_book(body)))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.code, events[-1].error.message) == ("rate_limit_exceeded", "No.")
    assert (reply.finish, reply.text) == ("error", "Hi")


def test_cancelled() -> None:
    body = responses_reply(message("Hi"), status="cancelled")
    events, reply = flow(WIRE, sse(*by_the_book(body)))
    assert isinstance(events[-1], Failed)
    assert "cancelled" in events[-1].error.message
    assert reply.finish == "error"


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "server_error", "message": "Oh no.", "param": None, "sequence_number": 7},
        {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "Oh no."}},
        {"error": {"code": "server_error", "message": "Oh no."}},
    ],
)
def test_an_error_in_the_stream(error: Body) -> None:
    told = by_the_book(responses_reply(function('{"path": "a"}')))
    events, reply = flow(WIRE, sse(*told[:5], error))
    assert isinstance(events[-1], Failed)
    assert (events[-1].error.code, events[-1].error.message) == ("server_error", "Oh no.")
    assert [call.broken for call in calls_of(reply)] == [True]


def test_an_error_instead_of_a_stream() -> None:
    parser = WIRE.open_stream("turn-1")
    parser.feed(b'{"error": {"message": "Bad key.", "type": "invalid_request_error", "code": "invalid_api_key"}}')
    with pytest.raises(RemoteProtocolError, match=r"Bad key\.") as caught:
        parser.close()
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize("stop", range(1, 40))
def test_a_stream_that_is_cut_off_anywhere(stop: int) -> None:
    told = by_the_book(EVERYTHING)
    stop = stop * (len(told) - 1) // 40 + 1
    events, reply = flow(WIRE, sse(*told[:stop]))
    assert reply.finish == "error"
    assert isinstance(events[-1], Failed)
    done = {one["item"]["id"] for one in told[:stop] if one["type"] == "response.output_item.done"}
    argued = {one["item_id"] for one in told[:stop] if "arguments.done" in one["type"] or "input.done" in one["type"]}
    for call in calls_of(reply):
        if call.kind != "hosted":
            whole = call.origin.item_id in done | argued or isinstance(call.arguments, dict)
            assert call.broken is not whole
            assert whole or call.arguments is None


def test_ids_are_those_of_the_turn() -> None:
    data = sse(*by_the_book(EVERYTHING))
    one, other = (flow(WIRE, data, key)[1] for key in ("turn-1", "turn-2"))
    assert not {call.id for call in one.calls} & {call.id for call in other.calls}
    assert [call.origin.raw_id for call in one.calls if call.kind != "hosted"] == ["call_1", "call_2", "call_c"]


def test_characters_cut_in_two() -> None:
    body = responses_reply(message("a 😀 b"))
    told = by_the_book(body)
    deltas = [one for one in told if one["type"].endswith("text.delta")]
    halves = [{**deltas[0], "delta": "a \ud83d"}, {**deltas[0], "delta": "\ude00 b"}]
    at = told.index(deltas[0])
    assert texts(same_as_at_once(body, sse(*told[:at], *halves, *told[at + len(deltas) :]))) == ["a ", "😀 b"]


def test_garbage_is_a_value_or_the_providers_fault() -> None:
    assert garbled(WIRE, by_the_book(EVERYTHING), 1500, GEMINI) > 300


@pytest.mark.parametrize("depth", [600, 5000])
def test_nesting_without_end_is_refused(depth: int) -> None:
    told = '{"type":"response.completed","response":{"a":' + "[" * depth + "]" * depth + "}}"
    with pytest.raises(RemoteProtocolError, match="nested too deep"):
        WIRE.open_stream("turn-1").feed(f"data: {told}\n\n".encode())


def test_random_bytes() -> None:
    random_bytes(WIRE)


# ------------------------------------------------------------------------------------------------------------- writing


def rendered(body: Body) -> list[Body]:
    return payloads(written(WIRE, flow(WIRE, json.dumps(body).encode())[0]))


def test_at_home_a_stream_is_what_it_was() -> None:
    """Items, ids and envelope go out again, and what is read of it is the same reply."""
    events, reply = flow(WIRE, sse(*by_the_book(EVERYTHING)))
    data = written(WIRE, events)
    assert flow(WIRE, data)[1].blocks == reply.blocks
    end = payloads(data)[-1]["response"]
    assert end["output"] == EVERYTHING["output"]
    assert {key: end[key] for key in EVERYTHING if key not in ("output", "usage")} == {
        key: value for key, value in EVERYTHING.items() if key not in ("output", "usage")
    }


def test_order_names_and_numbers_of_the_events() -> None:
    told = rendered(responses_reply(message("Hello"), function('{"a": 1}')))
    assert [one["type"].removeprefix("response.") for one in told] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [one["sequence_number"] for one in told] == list(range(len(told)))


def test_each_event_has_its_name() -> None:
    events, _ = flow(WIRE, sse(*by_the_book(EVERYTHING)))
    blocks = written(WIRE, events).decode().split("\n\n")[:-1]
    assert all(block.split("\n")[0] == f"event: {json.loads(block.split('data: ', 1)[1])['type']}" for block in blocks)


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.name)
def test_ids_told_at_the_beginning_are_those_of_the_end(wire: Any) -> None:
    entry = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    reply = chat_reply(entry, content="Hi")
    reply["choices"][0]["message"]["reasoning_content"] = "Hm."
    told = payloads(written(wire, events_of(flow(OPENAI_CHAT, json.dumps(reply).encode())[1])))
    added = [one["item"]["id"] for one in told if one["type"] == "response.output_item.added"]
    done = [one["item"]["id"] for one in told if one["type"] == "response.output_item.done"]
    last = told[-1]["response"]
    assert added == done == [item["id"] for item in last["output"]]
    assert len(set(added)) == 3
    assert last["id"].startswith("caresp_" if wire is AZURE_FOUNDRY else "resp_")
    assert {one["response"]["id"] for one in told if "response" in one} == {last["id"]}


def test_words_side_by_side_are_parts_of_one_message() -> None:
    events = [
        Opened("x", "m"),
        *(one for at in range(2) for one in (Start(at, Text("")), TextDelta(at, f"t{at}"), End(at, Text(f"t{at}")))),
        Finished("stop"),
    ]
    told = payloads(written(WIRE, events))
    (item,) = told[-1]["response"]["output"]
    assert [part["text"] for part in item["content"]] == ["t0", "t1"]
    assert [one["content_index"] for one in told if one["type"] == "response.output_text.delta"] == [0, 1]


def test_calls_that_grow_at_once_are_told_one_after_the_other() -> None:
    calls = [ToolCall(f"f{at}", {"a": at}, id=f"hist_tool_{at}") for at in range(2)]
    events: list[Event] = [
        Opened("x", "m"),
        Start(0, ToolCall("f0", id="hist_tool_0")),
        Start(1, ToolCall("f1", id="hist_tool_1")),
        InputDelta(1, '{"a":'),
        InputDelta(0, '{"a":0}'),
        InputDelta(1, "1}"),
        End(1, calls[1]),
        End(0, calls[0]),
        Finished("tool_calls"),
    ]
    for step in (1, 3, 9):
        _, reply = flow(WIRE, written(WIRE, events, step=step))
        assert [(call.name, call.arguments) for call in reply.calls] == [("f0", {"a": 0}), ("f1", {"a": 1})]


def test_a_broken_call_is_left_as_the_api_leaves_it() -> None:
    half = ToolCall("f", None, id="hist_tool_0", arguments_text='{"a', broken=True)
    events: list[Event] = [
        Opened("x", "m"),
        Start(0, ToolCall("f", id="hist_tool_0")),
        InputDelta(0, '{"a'),
        End(0, half),
        Finished("length"),
    ]
    data = written(WIRE, events)
    told = payloads(data)
    assert told[-1]["type"] == "response.incomplete"
    assert told[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert told[-1]["response"]["output"][0]["status"] == "incomplete"
    assert [call.broken for call in calls_of(flow(WIRE, data)[1])] == [True]


def test_a_failure_is_told_as_one() -> None:
    events: list[Event] = [
        Opened("x", "m"),
        Start(0, Text("")),
        TextDelta(0, "Hi"),
        End(0, Text("Hi")),
        Failed(ApiError(429, "Too fast.", code="rate_limit_exceeded")),
    ]
    data = written(WIRE, events)
    last = payloads(data)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {"code": "rate_limit_exceeded", "message": "Too fast."}
    again, _ = flow(WIRE, data)
    assert isinstance(again[-1], Failed)


def test_a_failure_before_anything_was_said() -> None:
    (told,) = payloads(written(WIRE, [Failed(ApiError(500, "Oh no.", code="server_error"))]))
    assert told == {
        "type": "error",
        "code": "server_error",
        "message": "Oh no.",
        "param": None,
        "sequence_number": 0,
    }


def test_what_another_provider_ran_is_left_out_and_reported() -> None:
    report = Report(target=WIRE.name)
    hosted = ToolCall("web_search", {"q": 1}, id="hist_tool_0", kind="hosted")
    events = [Opened("x", "m"), Whole(0, hosted), Whole(1, hosted.respond("found")), Finished("stop")]
    told = payloads(written(WIRE, events, report))
    assert told[-1]["response"]["output"] == []
    assert len(report.findings) == 2


def test_reasoning_without_words_from_abroad_is_nothing() -> None:
    events: list[Event] = [
        Opened("x", "m"),
        Start(0, Thinking()),
        End(0, Thinking(signature="sig")),
        Finished("stop"),
    ]
    assert payloads(written(WIRE, events))[-1]["response"]["output"] == []


# What of the catalogue is an item of a response.
ITEMS = [
    sample
    for sample in samples()
    if sample.provider in ("openai", "azure-foundry") and isinstance(sample.payload.get("type"), str)
    if sample.payload["type"].endswith("_call") or sample.payload["type"] in ("message", "reasoning", "mcp_list_tools")
]


@pytest.mark.parametrize("sample", ITEMS, ids=str)
def test_items_of_the_catalogue_there_and_back(sample: Any) -> None:
    wire = AZURE_FOUNDRY if sample.provider == "azure-foundry" else WIRE
    body = responses_reply(sample.payload, message("Hi"))
    try:
        whole = wire.parse_reply(body)
    except InputError:
        pytest.skip("no item of a response")
    events, reply = flow(wire, json.dumps(body).encode())
    assert plainly(reply) == plainly(whole)
    check(events_of(reply))
    for told in (events, events_of(reply)):
        again = flow(wire, written(wire, told))[1]
        assert plainly(again) == plainly(whole)
        assert again.native is not None
        items = [_without_made_id(item) for item in again.native.fragment["output"]]
        assert items == [_as_streamed(item) for item in at_once(wire, reply)["output"]]


def _without_made_id(item: Body) -> Body:
    """An item that had no id has one in a stream, for its deltas to name."""
    made = "_hist_" in str(item.get("id"))
    return {key: value for key, value in item.items() if key != "id" or not made}


def _as_streamed(item: Body) -> Body:
    """An item whose arguments are text: a stream knows no other."""
    given = item.get("arguments")
    streamed = item["type"] == "function_call" and isinstance(given, dict)
    return {**item, "arguments": json.dumps(given, separators=(",", ":"))} if streamed else item
