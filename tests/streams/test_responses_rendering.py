"""Rendering streams of the Responses API in the order that its clients accept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue.canonical.blocks import Text, Thinking, ToolCall
from segue.render.report import Report
from segue.wire.base import ApiError
from segue.wire.dialects.azure_foundry import WIRE as AZURE_FOUNDRY
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from segue.wire.stream.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    WholeBlock,
    reply_events,
)
from tests.catalog.vendor_catalog import samples
from tests.conversations.replies import chat_reply, responses_reply
from tests.streams.parsing import Body, check_event_rules, content_of, payloads_of, read, sse
from tests.streams.rendering import render_stream, render_whole_reply
from tests.streams.responses_events import DIALECTS, EVERYTHING, WIRE, function, message, stream_events


def rendered(body: Body) -> list[Body]:
    return payloads_of(render_stream(WIRE, read(WIRE, json.dumps(body).encode())[0]))


def test_stream_is_unchanged_for_same_api() -> None:
    """Items, ids and envelope are rendered again, and parse to the same reply."""
    events, reply = read(WIRE, sse(*stream_events(EVERYTHING)))
    data = render_stream(WIRE, events)
    assert read(WIRE, data)[1].blocks == reply.blocks
    end = payloads_of(data)[-1]["response"]
    assert end["output"] == EVERYTHING["output"]
    assert {key: end[key] for key in EVERYTHING if key not in ("output", "usage")} == {
        key: value for key, value in EVERYTHING.items() if key not in ("output", "usage")
    }


def test_order_names_and_numbers_of_the_events() -> None:
    payloads = rendered(responses_reply(message("Hello"), function('{"a": 1}')))
    assert [one["type"].removeprefix("response.") for one in payloads] == [
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
    assert [one["sequence_number"] for one in payloads] == list(range(len(payloads)))


def test_each_event_has_its_name() -> None:
    events, _ = read(WIRE, sse(*stream_events(EVERYTHING)))
    blocks = render_stream(WIRE, events).decode().split("\n\n")[:-1]
    assert all(block.split("\n")[0] == f"event: {json.loads(block.split('data: ', 1)[1])['type']}" for block in blocks)


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.name)
def test_ids_are_the_same_at_start_and_end(wire: Any) -> None:
    entry = {"id": "call_9", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    reply = chat_reply(entry, content="Hi")
    reply["choices"][0]["message"]["reasoning_content"] = "Hm."
    payloads = payloads_of(render_stream(wire, reply_events(read(OPENAI_CHAT, json.dumps(reply).encode())[1])))
    added = [one["item"]["id"] for one in payloads if one["type"] == "response.output_item.added"]
    done = [one["item"]["id"] for one in payloads if one["type"] == "response.output_item.done"]
    last = payloads[-1]["response"]
    assert added == done == [item["id"] for item in last["output"]]
    assert len(set(added)) == 3
    assert last["id"].startswith("caresp_" if wire is AZURE_FOUNDRY else "resp_")
    assert {one["response"]["id"] for one in payloads if "response" in one} == {last["id"]}


def test_adjacent_texts_are_parts_of_one_message() -> None:
    events = [
        ReplyStart("x", "m"),
        *(
            one
            for at in range(2)
            for one in (BlockStart(at, Text("")), TextDelta(at, f"t{at}"), BlockEnd(at, Text(f"t{at}")))
        ),
        Finished("stop"),
    ]
    payloads = payloads_of(render_stream(WIRE, events))
    (item,) = payloads[-1]["response"]["output"]
    assert [part["text"] for part in item["content"]] == ["t0", "t1"]
    assert [one["content_index"] for one in payloads if one["type"] == "response.output_text.delta"] == [0, 1]


def test_parallel_calls_are_rendered_in_sequence() -> None:
    calls = [ToolCall(f"f{at}", {"a": at}, id=f"hist_tool_{at}") for at in range(2)]
    events: list[Event] = [
        ReplyStart("x", "m"),
        BlockStart(0, ToolCall("f0", id="hist_tool_0")),
        BlockStart(1, ToolCall("f1", id="hist_tool_1")),
        InputDelta(1, '{"a":'),
        InputDelta(0, '{"a":0}'),
        InputDelta(1, "1}"),
        BlockEnd(1, calls[1]),
        BlockEnd(0, calls[0]),
        Finished("tool_calls"),
    ]
    for step in (1, 3, 9):
        _, reply = read(WIRE, render_stream(WIRE, events, step=step))
        assert [(call.name, call.arguments) for call in reply.calls] == [("f0", {"a": 0}), ("f1", {"a": 1})]


def test_a_broken_call_is_left_as_the_api_leaves_it() -> None:
    half = ToolCall("f", None, id="hist_tool_0", arguments_text='{"a', broken=True)
    events: list[Event] = [
        ReplyStart("x", "m"),
        BlockStart(0, ToolCall("f", id="hist_tool_0")),
        InputDelta(0, '{"a'),
        BlockEnd(0, half),
        Finished("length"),
    ]
    data = render_stream(WIRE, events)
    payloads = payloads_of(data)
    assert payloads[-1]["type"] == "response.incomplete"
    assert payloads[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert payloads[-1]["response"]["output"][0]["status"] == "incomplete"
    assert [call.broken for call in read(WIRE, data)[1].calls] == [True]


def test_failure_is_rendered_as_an_error() -> None:
    events: list[Event] = [
        ReplyStart("x", "m"),
        BlockStart(0, Text("")),
        TextDelta(0, "Hi"),
        BlockEnd(0, Text("Hi")),
        Failed(ApiError(429, "Too fast.", code="rate_limit_exceeded")),
    ]
    data = render_stream(WIRE, events)
    last = payloads_of(data)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {"code": "rate_limit_exceeded", "message": "Too fast."}
    again, _ = read(WIRE, data)
    assert isinstance(again[-1], Failed)


def test_failure_before_any_content() -> None:
    created, *_, failed = payloads_of(render_stream(WIRE, [Failed(ApiError(500, "Oh no.", code="server_error"))]))
    assert (created["type"], failed["type"]) == ("response.created", "response.failed")
    assert failed["response"]["error"] == {"code": "server_error", "message": "Oh no."}
    assert failed["response"]["id"] == created["response"]["id"]


def test_hosted_call_of_another_provider_is_dropped_and_reported() -> None:
    report = Report(target=WIRE.name)
    hosted = ToolCall("web_search", {"q": 1}, id="hist_tool_0", kind="hosted")
    events = [ReplyStart("x", "m"), WholeBlock(0, hosted), WholeBlock(1, hosted.respond("found")), Finished("stop")]
    payloads = payloads_of(render_stream(WIRE, events, report))
    assert payloads[-1]["response"]["output"] == []
    assert [finding.subject for finding in report.findings] == ["web_search"]


def test_cross_api_reasoning_without_text_is_dropped() -> None:
    events: list[Event] = [
        ReplyStart("x", "m"),
        BlockStart(0, Thinking()),
        BlockEnd(0, Thinking(signature="sig")),
        Finished("stop"),
    ]
    assert payloads_of(render_stream(WIRE, events))[-1]["response"]["output"] == []


# What of the catalogue is an item of a response.
ITEMS = [
    sample
    for sample in samples()
    if sample.provider in ("openai", "azure-foundry") and isinstance(sample.payload.get("type"), str)
    if sample.payload["type"].endswith("_call") or sample.payload["type"] in ("message", "reasoning", "mcp_list_tools")
]
assert len(ITEMS) >= 63


@pytest.mark.parametrize("sample", ITEMS, ids=str)
def test_catalog_items_survive_a_round_trip(sample: Any) -> None:
    wire = AZURE_FOUNDRY if sample.provider == "azure-foundry" else WIRE
    body = responses_reply(sample.payload, message("Hi"))
    whole = wire.parse_reply(body)
    events, reply = read(wire, json.dumps(body).encode())
    assert content_of(reply) == content_of(whole)
    check_event_rules(reply_events(reply))
    for payloads in (events, reply_events(reply)):
        again = read(wire, render_stream(wire, payloads))[1]
        assert content_of(again) == content_of(whole)
        assert again.native is not None
        items = [_without_made_id(item) for item in again.native.fragment["output"]]
        assert items == [_as_streamed(item) for item in render_whole_reply(wire, reply)["output"]]


def _without_made_id(item: Body) -> Body:
    """An item that had no id has one in a stream, for its deltas to name."""
    made = "_hist_" in str(item.get("id"))
    return {key: value for key, value in item.items() if key != "id" or not made}


def _as_streamed(item: Body) -> Body:
    """An item whose arguments are text: a stream has no other form."""
    given = item.get("arguments")
    streamed = item["type"] == "function_call" and isinstance(given, dict)
    return {**item, "arguments": json.dumps(given, separators=(",", ":"))} if streamed else item
