"""Misuse of streams, and what clients rely on."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.wire.registry import WIRES
from tests.bodies.anthropic import call
from tests.streams.test_api_pairs import request_body

START = {"id": "m", "role": "assistant", "model": "c", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}
CALL = call("toolu_2", name="search")
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": START},
    {"type": "content_block_start", "index": 0, "content_block": CALL},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
STREAM = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in EVENTS)


@pytest.mark.parametrize("client", WIRES)
def test_a_call_without_arguments_has_an_empty_object(client: str) -> None:
    stream = segue.convert(request_body(client), source=client, target="anthropic").stream()
    sent = stream.feed(STREAM) + stream.close()
    (call,) = segue.assemble(sent, client).calls
    assert (call.arguments, call.arguments_text) == ({}, None)


def test_closing_twice_changes_nothing() -> None:
    stream = segue.convert(request_body("openai-chat"), source="openai-chat", target="anthropic").stream()
    assert (stream.feed(STREAM) + stream.close()).endswith(b"data: [DONE]\n\n")
    assert stream.close() == b""
    assert stream.feed(STREAM) == b""


@pytest.mark.parametrize("data", [None, "text", {}, 3, []])
def test_non_bytes_input_is_rejected(data: Any) -> None:
    stream = segue.convert(request_body("openai-chat"), source="openai-chat", target="anthropic").stream()
    with pytest.raises(segue.InputError, match="bytes were expected"):
        stream.feed(data)


def test_stream_can_fail_with_a_message() -> None:
    stream = segue.convert(request_body("openai-chat"), source="openai-chat", target="anthropic").stream()
    output = stream.feed(STREAM[:-200]) + stream.fail("the network is down")
    assert b"the network is down" in output
    assert stream.close() == b""


def test_stream_of_another_api_is_rejected() -> None:
    with pytest.raises(segue.RemoteProtocolError, match="this looks like one of anthropic"):
        segue.assemble(STREAM, "openai-chat")


@pytest.mark.parametrize("tool_format", ["foo", None, 3])
def test_unknown_tool_format_is_rejected(tool_format: Any) -> None:
    with pytest.raises(segue.InputError, match="tool_format"):
        segue.assemble(STREAM, "anthropic", tool_format=tool_format)


def test_lines_without_their_ends() -> None:
    whole = segue.assemble(STREAM, "anthropic")
    assert segue.assemble(STREAM.splitlines(), "anthropic") == whole
    assert segue.assemble(iter(STREAM.decode().splitlines()), "anthropic") == whole


def test_usage_is_requested_where_needed() -> None:
    body = {"model": "c", "max_tokens": 5, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    assert segue.convert(body, source="anthropic", target="openai-chat").body["stream_options"] == {
        "include_usage": True
    }
    assert "stream_options" not in segue.convert(body, source="anthropic", target="mistral").body


def test_model_is_the_requested_one_with_a_text_format() -> None:
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "x"}]}
    made = segue.convert(body, source="openai-chat", target="openai-chat", model="mine", tool_format="hermes")
    assert made.body["model"] == "mine"
