"""The reply to a rendered request: tools have their declared names, whatever the target's names are."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue._stream import render_reply_body
from segue.canonical.request import Tool
from segue.wire.stream.events import TextDelta

DOTTED = Tool("files.read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
TARGETS = [row.name for row in segue.formats() if row.kind != "text"]


def render_request(target: str, **more: Any) -> tuple[segue.Conversation, segue.Rendered]:
    chat = segue.Conversation(tools=[DOTTED])
    chat.add_user("Read it.")
    return chat, chat.render(target, **more)


def declared_name(rendered: segue.Rendered) -> str:
    return rendered.sent_request.names.render("files.read")


@pytest.mark.parametrize("target", TARGETS)
def test_calls_come_back_by_the_names_they_were_declared_with(target: str) -> None:
    chat, rendered = render_request(target)
    call = segue.parse_item(
        {"type": "tool_use", "id": "toolu_1", "name": declared_name(rendered), "input": {"path": "a"}}, "anthropic"
    )
    reply = segue.Reply(tuple(call), "tool_calls")
    body, _ = render_reply_body(reply, target)
    added = chat.add_reply(body, source=target)
    assert [call.name for call in added.calls] == ["files.read"]
    chat.add_result(added.calls[0], "bread")
    again = chat.render(target)
    assert segue.check(again.body, target, model=rendered.sent_request.model)


def test_stream_is_mapped_as_it_arrives_and_ends_as_a_reply() -> None:
    chat, rendered = render_request("anthropic")
    name = declared_name(rendered)
    assert name != "files.read"
    stream = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message",'
        b'"role":"assistant",'
        b'"model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}\n\n'
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look."}}\n\n'
        b'data: {"type":"content_block_stop","index":0}\n\n'
        b'data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"'
        + name.encode()
        + b'","input":{}}}\n\n'
        b'data: {"type":"content_block_stop","index":1}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}\n\n'
        b'data: {"type":"message_stop"}\n\n'
    )
    answering = rendered.open_reader()
    half = stream.index(b"I look") + 3
    events = [*answering.feed(stream[:half]), *answering.feed(stream[half:])]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I look."
    added = chat.add_reply(answering.close())
    assert [(call.name, call.raw_id) for call in added.calls] == [("files.read", "toolu_1")]
    assert chat.pending == list(added.calls)


def test_calls_in_text_are_extracted() -> None:
    chat, rendered = render_request("openai-chat", model="llama-3", tool_format="hermes")
    text = '<tool_call>{"name": "files.read", "arguments": {"path": "a"}}</tool_call>'
    delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "llama-3", "choices": [delta]}
    answering = rendered.open_reader()
    answering.feed(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    added = chat.add_reply(answering.close())
    assert [call.name for call in added.calls] == ["files.read"]
    assert added.finish == "tool_calls"
