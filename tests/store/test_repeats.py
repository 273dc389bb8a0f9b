"""Stored messages without the texts that their fragments repeat: every message comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from segue import Conversation
from segue.canonical.blocks import Message, Native, Opaque, Text, ToolCall
from segue.errors import InputError
from segue.store.events import Event, MessageAdded, decode_by_field, decode_event, dump_event
from segue.store.replay import conversation_events
from tests.store.sample_events import any_event

LONG = "a text that is long enough to be stored once " * 3
SIGNATURE = "c2lnbmVk" * 12
ARGUMENTS = {"path": "notes.txt", "text": LONG + "in a file", "limit": 3}

ANTHROPIC = {
    "messages": [
        {"role": "user", "content": LONG},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": LONG + "thought", "signature": SIGNATURE},
                {"type": "text", "text": LONG + "reply", "cache_control": {"type": "ephemeral"}},
                {"type": "tool_use", "id": "toolu_1", "name": "write", "input": ARGUMENTS},
                {"type": "tool_use", "id": "toolu_2", "name": "write", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": LONG + "1"}, {"type": "text", "text": LONG + "2"}],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": LONG + "3"},
            ],
        },
    ]
}
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "write", "arguments": json.dumps(ARGUMENTS)}}
CHAT = {
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": LONG}]},
        {"role": "assistant", "content": LONG + "reply", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": LONG + "result"},
    ]
}
RESPONSES = {
    "input": [
        {"role": "user", "content": LONG},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": LONG + "thought"}],
            "encrypted_content": SIGNATURE,
        },
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "patch", "input": LONG + "input"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": LONG + "result"},
    ]
}
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": LONG}, {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8=" * 20}}]},
        {
            "role": "model",
            "parts": [
                {"text": LONG + "thought", "thought": True},
                {"functionCall": {"name": "write", "args": ARGUMENTS}, "thoughtSignature": SIGNATURE},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "write", "response": {"output": LONG + "result"}}}]},
    ]
}
BEDROCK = {
    "messages": [
        {"role": "user", "content": [{"text": LONG}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": LONG + "thought", "signature": SIGNATURE}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "write", "input": ARGUMENTS}},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": LONG + "1"}]}}]},
    ]
}
BODIES: dict[str, dict[str, Any]] = {
    "anthropic": ANTHROPIC,
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
}


def dump_once(event: Event) -> bytes:
    return dump_event(event, with_repeats=False)


@pytest.mark.parametrize("api", BODIES)
def test_each_text_is_stored_once_and_comes_back(api: Any) -> None:
    for event in conversation_events(Conversation.from_body(BODIES[api], source=api)):
        stored, full = dump_once(event), dump_event(event)
        for decode in (decode_event, decode_by_field):
            assert decode(stored) == decode(full) == event
            assert dump_event(decode(stored)) == full
        # A decoded message shares what it repeats, so it is stored in as few bytes again.
        assert len(dump_once(decode_event(stored))) < len(stored) + 100
        encoded = stored.decode()
        texts = {text for text in _strings(json.loads(full)) if text.startswith(LONG)}
        assert all(encoded.count(json.dumps(text)) == 1 for text in texts), encoded


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items: list[Any] = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in _strings(item)]


@given(any_event)
def test_any_event_comes_back(event: Event) -> None:
    assert decode_event(dump_once(event)) == event


def test_numbers_that_are_equal_but_differ_as_json_are_stored() -> None:
    native = Native("anthropic", {"type": "tool_use", "input": {"text": LONG, "count": 1.0, "is_new": 1}})
    event = MessageAdded(Message("ai", (ToolCall("f", {"text": LONG, "count": 1, "is_new": True}, native=native),)))
    assert dump_event(decode_event(dump_once(event))) == dump_event(event)


def test_an_unknown_block_keeps_its_own_fragment() -> None:
    hologram = {"type": "hologram", "text": LONG, "native": {"api": "anthropic", "fragment": {"beam": LONG}}}
    stored = {"type": "added", "message": {"speaker": "ai", "blocks": [hologram]}}
    event = decode_event(json.dumps(stored))
    assert isinstance(event, MessageAdded)
    assert isinstance(event.message.blocks[0], Opaque)
    assert json.loads(dump_once(event)) == stored


def test_a_message_with_an_unknown_field_comes_back() -> None:
    block = Text(LONG, native=Native("anthropic", {"type": "text", "text": LONG}), extra={"later": 1})
    event = MessageAdded(Message("ai", (block,)), extra={"later": 2})
    assert decode_event(dump_once(event)) == event


@pytest.mark.parametrize(
    "repeats",
    [
        [False, [[5, 0, ["text"]]]],
        [False, [[0, 5, ["text"]]]],
        [False, [[0, -1, ["text"]]]],
        [False, [[0, 0, ["text", "deeper", "still"]]]],
        [False, [[0, 0, []]]],
        [False, [], [[0, 0, ["text"]]]],
        [False, [], [], [[0, ["list"], [9]]]],
        [False, [], [], [[0, [], []]]],
        "none",
    ],
)
def test_repeats_that_do_not_fit_are_bad_input(repeats: Any) -> None:
    event = MessageAdded(Message("ai", (Text(LONG, native=Native("anthropic", {"type": "text", "text": LONG})),)))
    stored = {**json.loads(dump_once(event)), "repeats": repeats}
    with pytest.raises(InputError):
        decode_event(json.dumps(stored))
