"""Servers that glue parallel calls send `{"a":1}{"a":2}` as the arguments of one call: two calls, or an invalid one."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue

GLUED = ('{"a":1}{"a":2}', '{"a":1}\n{"a":2}', '{"a":1}, {"a":2}', '{}{"a":2}', '{"a":1}{', '{"a":1}]')
TARGETS = tuple(row.name for row in segue.formats() if row.kind != "text")
TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALLER = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "a"}],
    "tools": [TOOL],
}


def _chat_call(text: str) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": text}}


def _reply(api: str, text: str) -> dict[str, Any]:
    if api == "openai-responses":
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": text}
        return {"id": "resp_1", "object": "response", "status": "completed", "output": [call]}
    message = {"role": "assistant", "content": None, "tool_calls": [_chat_call(text)]}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def _stream(text: str, cut: int) -> bytes:
    first = {"index": 0, **_chat_call(text[:cut])}
    deltas = [{"role": "assistant", "tool_calls": [first]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": text[cut:]}}]}, {}]
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "tool_calls"}]}
        for delta in deltas
    ]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def _assert_not_one_of_them(reply: segue.Reply, text: str) -> None:
    assert [(call.arguments, call.arguments_text) for call in reply.calls] == [(None, text)]


@pytest.mark.parametrize("text", GLUED)
@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "mistral", "qwen"])
def test_whole_replies(api: str, text: str) -> None:
    chat = segue.Conversation(tools=[TOOL])
    chat.add_user("a")
    _assert_not_one_of_them(chat.add_reply(_reply(api, text), source=api), text)


# `{}` before the arguments is a placeholder that some servers send in the first delta.
@pytest.mark.parametrize("text", [text for text in GLUED if not text.startswith("{}")])
def test_streams(text: str) -> None:
    for cut in range(len(text)):
        _assert_not_one_of_them(segue.assemble(_stream(text, cut), "openai-chat"), text)


def test_streamed_calls_with_ids_of_their_own_are_two() -> None:
    """The same index, but another id: the second call begins."""
    second = {"index": 0, "id": "call_2", "function": {"name": "f", "arguments": '{"a":2}'}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [second]}, "finish_reason": None}]}
    head, tail = _stream('{"a":1}', 7).split(b"\n\n", 1)
    data = head + b"\n\ndata: " + json.dumps(chunk).encode() + b"\n\n" + tail
    assert [call.arguments for call in segue.assemble(data, "openai-chat").calls] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("text", GLUED)
@pytest.mark.parametrize("target", TARGETS)
def test_requests(target: str, text: str) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [_chat_call(text)]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
    ]
    made = segue.convert({"messages": messages}, source="openai-chat", target=target)
    assert not [found for found in segue.check(made.body, target) if found.severity == "reject"]
    sent = json.dumps(made.body, ensure_ascii=False)
    variants = [text, json.dumps({"_raw": text}, separators=(",", ":"))]
    assert any(json.dumps(variant)[1:-1] in sent for variant in variants)


FALLBACK = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "overloaded"}}


@pytest.mark.parametrize("notice", [FALLBACK, {"type": "compaction", "content": "So far."}], ids=lambda n: n["type"])
@pytest.mark.parametrize("source", [name for name in TARGETS if name != "anthropic"])
def test_provider_notices_are_no_text(source: str, notice: dict[str, Any]) -> None:
    """A `fallback` block states which model answered, a `compaction` sums up the history: no part of the answer."""
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "stop_reason": "end_turn",
        "content": [notice, {"type": "text", "text": "Hello."}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": notice},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    data = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    body = segue.convert(CALLER, source="anthropic", target=source).body
    made = segue.convert(body, source=source, target="anthropic")
    shown = json.dumps(made.reply(reply))
    assert notice["type"] not in shown
    assert "So far." not in shown
    finding = made.report.findings_of("dropped")[-1]
    assert (finding.level, finding.message.split()[0]) == ("note", notice["type"])
    stream = made.stream()
    sent = stream.feed(data) + stream.close()
    assert notice["type"].encode() not in sent
    assert b"So far." not in sent
    assert b"Hello." in sent
    assert segue.assemble(data, "anthropic").text == "Hello."
    back = segue.convert(
        {**CALLER, "messages": [*CALLER["messages"], {"role": "assistant", "content": reply["content"]}]}, target=source
    )
    # Clients send a compaction in place of the history before it.
    assert ("So far." in json.dumps(back.body)) is (notice["type"] == "compaction")
    assert "fallback" not in json.dumps(back.body)


def test_provider_notices_stay_for_their_own_api() -> None:
    notice = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "overloaded"}}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "content": [notice], "stop_reason": "end_turn"}
    assert segue.convert(CALLER, source="anthropic", target="anthropic").reply(reply)["content"] == [notice]
