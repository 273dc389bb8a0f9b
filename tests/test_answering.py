"""The answer to a rendered request: tools by the names they were declared with, whatever the target calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.request import Tool
from segue.streaming import reply_body
from segue.wire.events import TextDelta

DOTTED = Tool("files.read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
TARGETS = [row.name for row in segue.formats() if row.kind != "text"]


def asked(target: str, **more: Any) -> tuple[segue.Conversation, segue.Rendered]:
    chat = segue.Conversation(tools=[DOTTED])
    chat.add_user("Read it.")
    return chat, chat.render(target, **more)


def spelled(rendered: segue.Rendered) -> str:
    return rendered.asked.names.render("files.read")


@pytest.mark.parametrize("target", TARGETS)
def test_calls_come_back_by_the_names_they_were_declared_with(target: str) -> None:
    chat, rendered = asked(target)
    call = segue.parse_item(
        {"type": "tool_use", "id": "toolu_1", "name": spelled(rendered), "input": {"path": "a"}}, "anthropic"
    )
    reply = segue.Reply(tuple(call), "tool_calls")
    body, _ = reply_body(reply, target)
    added = chat.add_reply(body, source=target)
    assert [call.name for call in added.calls] == ["files.read"]
    chat.add_result(added.calls[0], "bread")
    again = chat.render(target)
    assert segue.check(again.body, target, model=rendered.asked.model)


def test_a_stream_is_told_as_it_comes_and_ends_as_a_reply() -> None:
    chat, rendered = asked("anthropic")
    name = spelled(rendered)
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
    answering = rendered.answer()
    half = stream.index(b"I look") + 3
    told = [*answering.feed(stream[:half]), *answering.feed(stream[half:])]
    assert "".join(event.text for event in told if isinstance(event, TextDelta)) == "I look."
    added = chat.add_reply(answering.close())
    assert [(call.name, call.raw_id) for call in added.calls] == [("files.read", "toolu_1")]
    assert chat.pending == list(added.calls)


def test_calls_in_words_are_heard() -> None:
    chat, rendered = asked("openai-chat", model="llama-3", tool_format="hermes")
    said = '<tool_call>{"name": "files.read", "arguments": {"path": "a"}}</tool_call>'
    delta = {"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "llama-3", "choices": [delta]}
    answering = rendered.answer()
    answering.feed(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    added = chat.add_reply(answering.close())
    assert [call.name for call in added.calls] == ["files.read"]
    assert added.finish == "tool_calls"
