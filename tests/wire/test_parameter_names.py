"""Parameter names that Claude rejects (ANT-41) are projected in requests and restored in replies."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.wire.names import CLAUDE_PARAMETERS, ParameterNames
from tests.budget import examples

VALID = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
CLAUDE_ON_BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ODATA = {
    "type": "object",
    "properties": {
        "$top": {"type": "integer", "description": "How many."},
        "filter[name]": {"type": "string"},
        "where": {"type": "object", "properties": {"$in": {"type": "string"}}, "required": ["$in"]},
    },
    "required": ["$top"],
    "dependentRequired": {"filter[name]": ["$top"]},
    "additionalProperties": False,
}
ARGUMENTS = {"filter[name]": "a", "$top": 3, "where": {"$in": "b"}}


def chat_body(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "list", "arguments": json.dumps(arguments)}}
    return {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "list", "description": "d", "parameters": schema}}],
    }


def anthropic_body(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "list", "input": arguments}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
        ],
        "tools": [{"name": "list", "input_schema": schema}],
    }


def bedrock_body(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"toolUse": {"toolUseId": "t1", "name": "list", "input": arguments}}
    return {
        "modelId": CLAUDE_ON_BEDROCK,
        "messages": [
            {"role": "user", "content": [{"text": "q"}]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "r"}]}}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "list", "inputSchema": {"json": schema}}}]},
    }


BODIES = {"openai-chat": chat_body, "anthropic": anthropic_body, "bedrock": bedrock_body}


def schema_and_arguments(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    message = body["messages"][1]["content"][0]
    if "toolConfig" in body:
        return body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"], message["toolUse"]["input"]
    return body["tools"][0]["input_schema"], message["input"]


def claude_events(arguments: dict[str, Any]) -> bytes:
    text = json.dumps(arguments)
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    block = {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {}}
    delta = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    events = [
        {"type": "message_start", "message": {**message, "usage": usage, "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *delta,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize(("target", "model"), [("anthropic", None), ("bedrock", CLAUDE_ON_BEDROCK)])
def test_names_are_projected_and_nested_ones_kept(source: str, target: str, model: str | None) -> None:
    out = segue.convert(BODIES[source](ODATA, ARGUMENTS), source=source, target=target, model=model)
    schema, arguments = schema_and_arguments(out.body)
    top, filter_name, where = schema["properties"]
    assert VALID.fullmatch(top)
    assert VALID.fullmatch(filter_name)
    assert where == "where"
    assert list(schema["properties"].values()) == list(ODATA["properties"].values())
    assert schema["required"] == [top]
    assert schema["dependentRequired"] == {filter_name: [top]}
    assert schema["additionalProperties"] is False
    assert arguments == {filter_name: "a", top: 3, "where": {"$in": "b"}}
    renamed = {finding.subject for finding in out.report.findings if finding.kind == "name"}
    assert renamed == {"$top", "filter[name]"}


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
def test_repair_is_idempotent_and_a_valid_body_stays(api: str) -> None:
    repaired = segue.repair(BODIES[api](ODATA, ARGUMENTS), api)
    assert repaired.changes
    assert not segue.repair(repaired.body, api).changes
    valid = BODIES[api]({"type": "object", "properties": {"a.b-c_1": {}}}, {"$undeclared": 1})
    assert not segue.repair(valid, api).changes


def test_examples_of_arguments_have_the_projected_names() -> None:
    body = anthropic_body(ODATA, ARGUMENTS)
    body["tools"][0]["input_examples"] = [ARGUMENTS]
    repaired = segue.repair(body, "anthropic").body
    assert repaired["tools"][0]["input_examples"] == [schema_and_arguments(repaired)[1]]


def test_other_bedrock_models_keep_their_names() -> None:
    body = {**bedrock_body(ODATA, ARGUMENTS), "modelId": "amazon.nova-pro-v1:0"}
    assert schema_and_arguments(segue.repair(body, "bedrock").body) == (ODATA, ARGUMENTS)


@pytest.mark.parametrize("source", BODIES)
def test_reply_has_the_original_names_whole_and_streamed(source: str) -> None:
    out = segue.convert(BODIES[source](ODATA, ARGUMENTS), source=source, target="anthropic")
    _, arguments = schema_and_arguments(out.body)
    reply = segue.assemble(claude_events(arguments), "anthropic")
    whole = out.reply(json.loads(json.dumps(claude_reply(arguments))))
    assert reply_arguments(whole, source) == ARGUMENTS
    assert reply.calls[0].arguments == arguments
    stream = out.stream()
    data = b"".join(stream.feed(bytes([byte])) for byte in claude_events(arguments)) + stream.close()
    assert segue.assemble(data, source).calls[0].arguments == ARGUMENTS


def claude_reply(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "list", "input": arguments}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def reply_arguments(reply: dict[str, Any], api: str) -> Any:
    if api == "openai-chat":
        return json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
    if api == "bedrock":
        return reply["output"]["message"]["content"][0]["toolUse"]["input"]
    return reply["content"][0]["input"]


def test_conversation_restores_the_names() -> None:
    chat = segue.Conversation.from_body(chat_body(ODATA, ARGUMENTS), source="openai-chat")
    _, arguments = schema_and_arguments(chat.render("anthropic").body)
    added = chat.add_reply(claude_reply(arguments), source="anthropic")
    assert added.calls[0].arguments == ARGUMENTS
    chat.add_result(added.calls[0], "r")
    chat.add_user("q")
    body = chat.render("anthropic").body
    inputs = [block["input"] for message in body["messages"] for block in message["content"] if "input" in block]
    assert inputs == [arguments, arguments]


def test_references_to_the_root_keep_the_nested_names() -> None:
    schema = {"type": "object", "properties": {"$v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["$v"]}
    renamed = ParameterNames().render_schema("f", schema, CLAUDE_PARAMETERS)
    name = next(iter(renamed["properties"]))
    assert renamed["required"] == [name]
    assert renamed["properties"]["next"] == {"$ref": "#/$defs/whole"}
    whole = renamed["$defs"]["whole"]
    assert whole["properties"] == {"$v": {"type": "integer"}, "next": {"$ref": "#/$defs/whole"}}


def test_a_name_equal_to_the_projection_of_another() -> None:
    taken = CLAUDE_PARAMETERS.project("$top")
    names = ParameterNames()
    schema = names.render_schema("f", {"type": "object", "properties": {taken: {}, "$top": {}}}, CLAUDE_PARAMETERS)
    assert len(schema["properties"]) == 2
    assert taken in schema["properties"]
    other = ParameterNames()
    other.render_schema("f", {"type": "object", "properties": {"$top": {}}}, CLAUDE_PARAMETERS)
    sent = other.render_arguments("f", {"$top": 1, taken: 2})
    assert len(sent) == 2
    assert other.parse_arguments("f", sent) == {"$top": 1, taken: 2}


@examples(2)
@given(names=st.lists(st.text(max_size=70), min_size=1, max_size=6, unique=True), data=st.data())
def test_random_names(names: list[str], data: st.DataObject) -> None:
    """The converted body is accepted, and a reply with the projected names has the original ones."""
    arguments = {name: index for index, name in enumerate(data.draw(st.permutations(names)))}
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": names[:1]}
    out = segue.convert(chat_body(schema, arguments), source="openai-chat", target="anthropic")
    rendered, sent = schema_and_arguments(out.body)
    assert all(map(VALID.fullmatch, rendered["properties"]))
    assert len(rendered["properties"]) == len(names)
    assert set(rendered["properties"]) == set(sent)
    assert segue.check(out.body, "anthropic", model="claude-sonnet-4-5")
    assert reply_arguments(out.reply(claude_reply(sent)), "openai-chat") == arguments
    assert not segue.repair(out.body, "anthropic").changes
