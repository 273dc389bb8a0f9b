"""Events, fields and block types that segue does not parse never change the calls and the text of a reply."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.canonical.blocks import Origin, Text, ToolCall
from segue.canonical.request import Reply, Usage
from segue.wire.registry import WIRES
from segue.wire.stream.framing import FrameDecoder
from tests.budget import examples
from tests.conversations.replies import responses_reply
from tests.streams.parsing import Body
from tests.streams.rendering import json_values, stream_reply
from tests.streams.responses_events import function, message, stream_events

# Fields that other events have, in events of an unknown type.
FIELDS = st.dictionaries(
    st.sampled_from(["item", "output", "content", "delta", "error", "index", "response", "part", "future", "status"]),
    json_values | st.just([{"type": "future_part"}]) | st.just({"message": "x"}),
    max_size=4,
)
UNKNOWN_BLOCKS: dict[str, list[Body]] = {
    "anthropic": [
        {"type": "content_block_start", "index": 90, "content_block": {"type": "future_block", "level": 3}},
        {"type": "content_block_delta", "index": 90, "delta": {"type": "future_delta", "future": "x"}},
        {"type": "content_block_stop", "index": 90},
    ],
    "openai-responses": [
        {"type": "response.output_item.added", "output_index": 90, "item": {"type": "future_call", "id": "fu_1"}},
        {"type": "response.future_call.delta", "output_index": 90, "item_id": "fu_1", "delta": "x"},
        {"type": "response.content_part.added", "item_id": "fu_1", "output_index": 90, "part": {"type": "future"}},
        {"type": "response.output_item.done", "output_index": 90, "item": {"type": "future_call", "id": "fu_1"}},
    ],
    "gemini": [{"candidates": [{"content": {"role": "model", "parts": [{"futurePart": {"level": 3}}]}, "index": 0}]}],
    "openai-chat": [{"choices": [{"index": 0, "delta": {"future": {"level": 3}}, "finish_reason": None}]}],
}


def reply_of(api: str) -> Reply:
    provider = WIRES[api].provider
    calls = [
        ToolCall("search", {"q": number}, id=f"hist_tool_{number}", origin=Origin(provider, raw_id=f"call_{number}"))
        for number in range(2)
    ]
    return Reply((Text("I look."), *calls), "tool_calls", Usage(1, 1), "r1", "m")


def payloads_of(api: str) -> list[tuple[str | None, Body]]:
    frames = FrameDecoder().feed(stream_reply(api, reply_of(api)))
    return [(name, json.loads(data)) for name, data in frames if data != b"[DONE]"]


def unknown_event(draw: Any, api: str) -> tuple[str | None, Body]:
    fields = draw(FIELDS)
    base = WIRES[api].base_api
    if base == "bedrock":
        return "futureEvent", {"futureField": fields}
    if base == "gemini":
        return None, {"futureField": fields}
    if base == "openai-chat":
        return None, {"object": "chat.completion.future", **{k: v for k, v in fields.items() if k != "error"}}
    name = draw(st.sampled_from(["future.event", "response.future_call.done", "response.future"]))
    return name, {"type": name, **fields}


@pytest.mark.parametrize("api", WIRES)
@examples(8, items=len(WIRES))
@given(data=st.data())
def test_unknown_events_fields_and_blocks_change_nothing(api: str, data: st.DataObject) -> None:
    draw = data.draw
    payloads = payloads_of(api)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(payloads)))
        payloads.insert(place, unknown_event(draw, api))
    blocks = UNKNOWN_BLOCKS.get(WIRES[api].base_api, [])
    if blocks and draw(st.booleans()):
        # After the start of the reply, and before its end.
        place = draw(st.integers(3, len(payloads) - 5)) if len(payloads) > 8 else 3
        payloads[place:place] = [(block.get("type"), block) for block in blocks]
    if draw(st.booleans()):
        place = draw(st.integers(0, len(payloads) - 1))
        payloads[place] = (payloads[place][0], {**payloads[place][1], "future_field": draw(json_values)})
    note(repr(payloads))
    parser = WIRES[api].open_stream("turn-0")
    for name, payload in payloads:
        parser.feed_payload(payload, name)
    reply = parser.close()
    assert reply.text == "I look."
    calls = [(call.name, call.arguments, call.raw_id) for call in reply.calls if call.kind == "function"]
    expected = segue.assemble(stream_reply(api, reply_of(api)), cast("Any", api)).calls
    assert calls == [(call.name, call.arguments, call.raw_id) for call in expected]
    assert reply.finish == "tool_calls"


# ----------------------------------------------------------------------------------------------------------- Responses

SHELL_CALL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_s",
    "status": "completed",
    "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": None},
    "environment": {"type": "container_reference", "container_id": "cntr_1"},
}
SHELL_OUTPUTS = [{"stdout": f"{name}\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}} for name in "ab"]
SHELL_OUTPUT = {
    "type": "shell_call_output",
    "id": "sho_1",
    "call_id": "call_s",
    "status": "completed",
    "max_output_length": None,
    "output": SHELL_OUTPUTS,
}


def shell_events(*, with_items: bool) -> list[Body]:
    """A hosted shell call and its output, by the types of the SDK."""
    call = {**SHELL_CALL, "status": "in_progress", "action": {**SHELL_CALL["action"], "commands": []}}
    events: list[Body] = [{"type": "response.output_item.added", "output_index": 1, "item": call}]
    for number, command in enumerate(["ls", "pwd"]):
        at = {"output_index": 1, "command_index": number}
        events += [
            {"type": "response.shell_call_command.added", **at, "command": ""},
            {"type": "response.shell_call_command.delta", **at, "delta": command},
            {"type": "response.shell_call_command.done", **at, "command": command},
        ]
    events += [{"type": "response.output_item.done", "output_index": 1, "item": SHELL_CALL}] if with_items else []
    begun = {**SHELL_OUTPUT, "status": "in_progress", "output": []}
    events.append({"type": "response.output_item.added", "output_index": 2, "item": begun})
    for number, output in enumerate(SHELL_OUTPUTS):
        at = {"item_id": "sho_1", "output_index": 2, "command_index": number}
        events += [
            {"type": "response.shell_call_output_content.delta", **at, "delta": {"stdout": output["stdout"]}},
            {"type": "response.shell_call_output_content.done", **at, "output": [output]},
        ]
    events += [{"type": "response.output_item.done", "output_index": 2, "item": SHELL_OUTPUT}] if with_items else []
    return events


@pytest.mark.parametrize("with_items", [True, False])
@pytest.mark.parametrize("api", ["openai-responses", "azure-foundry"])
def test_events_of_a_hosted_shell(api: str, with_items: bool) -> None:
    whole = responses_reply(message("I look."), SHELL_CALL, SHELL_OUTPUT, function('{"path": "a"}'))
    plain = stream_events(responses_reply(message("I look."), function('{"path": "a"}')))
    events = [*plain[:-1], *shell_events(with_items=with_items)]
    finished = whole if with_items else {**whole, "output": []}
    events.append({"type": "response.completed", "response": finished})
    reply = segue.assemble(events, cast("Any", api))
    assert reply.text == "I look."
    assert [call.arguments for call in reply.calls if call.kind == "function"] == [{"path": "a"}]
    items = cast("Any", reply.native).fragment["output"]
    assert [item["action"]["commands"] for item in items if item["type"] == "shell_call"] == [["ls", "pwd"]]
    assert [item["output"] for item in items if item["type"] == "shell_call_output"] == [SHELL_OUTPUTS]
    stream = segue.convert({"messages": [{"role": "user", "content": "go"}]}, source="anthropic", target=api).stream()
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    assert segue.assemble(stream.feed(data) + stream.close(), "anthropic").finish == "tool_calls"


def call_events(added: Body, done: Body, index: int | None = 0) -> list[Body]:
    at = {} if index is None else {"output_index": index}
    named = {"item_id": added["id"]} if "id" in added else {}
    return [
        {"type": "response.output_item.added", **at, "item": {**added, "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", **at, **named, "delta": done["arguments"]},
        {"type": "response.function_call_arguments.done", **at, **named, "arguments": done["arguments"]},
        {"type": "response.output_item.done", **at, "item": done},
    ]


def without_id(item: Body) -> Body:
    return {key: value for key, value in item.items() if key != "id"}


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("has_output", [True, False])
@pytest.mark.parametrize("client", ["openai-responses", "anthropic", "openai-chat", "gemini"])
def test_a_call_id_that_changes_is_one_call(client: str, has_output: bool, has_ids: bool) -> None:
    """The item id and the index identify the call; the last call id counts."""
    added, done = function('{"path": "a"}', call_id="call_early"), function('{"path": "a"}', call_id="call_late")
    if not has_ids:
        added, done = without_id(added), without_id(done)
    other = function('{"path": "b"}', "fc_2", "call_other")
    whole = responses_reply(done, other)
    events = [
        {"type": "response.created", "response": {**whole, "output": []}},
        *call_events(added, done),
        *call_events(other, other, 1),
        {"type": "response.completed", "response": whole if has_output else {**whole, "output": []}},
    ]
    reply = segue.assemble(events, "openai-responses")
    assert [(call.raw_id, call.arguments) for call in reply.calls] == [
        ("call_late", {"path": "a"}),
        ("call_other", {"path": "b"}),
    ]
    body = segue.convert({"messages": [{"role": "user", "content": "go"}]}, source="openai-chat", target=client).body
    stream = segue.convert(body, source=cast("Any", client), target="openai-responses").stream()
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    sent = stream.feed(data) + stream.close()
    client_reply = segue.assemble(sent, cast("Any", client))
    assert [call.arguments for call in client_reply.calls] == [{"path": "a"}, {"path": "b"}]
    # The caller gets one id for the call, from its start to its end.
    assert not (b"call_early" in sent and b"call_late" in sent)


def test_calls_that_share_an_index_are_told_apart_by_their_call_ids() -> None:
    first, second = (without_id(function(f'{{"path": "{n}"}}', call_id=f"call_{n}")) for n in "ab")
    added = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
        for item in (first, second)
    ]
    done = [{"type": "response.output_item.done", "output_index": 0, "item": item} for item in (first, second)]
    events = [*added, *done, {"type": "response.completed", "response": responses_reply(first, second)}]
    calls = segue.assemble(events, "openai-responses").calls
    assert [(call.raw_id, call.arguments) for call in calls] == [("call_a", {"path": "a"}), ("call_b", {"path": "b"})]
