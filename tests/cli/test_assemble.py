"""`segue assemble`: a recorded stream in any supported recording format becomes one reply."""

from __future__ import annotations

import json

import pytest

from segue.wire.stream.aws_events import encode_aws_message
from tests.cli.process import is_one_line_error, run

CHAT = ("assemble", "--api", "openai-chat")
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
CHUNKS = [
    {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]},
    {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
    },
]
EVENTS = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in CHUNKS)
LINES = b"".join(json.dumps(chunk).encode() + b"\n" for chunk in CHUNKS)
RECORDED = {
    "server-sent events": EVENTS + b"data: [DONE]\n\n",
    "with a byte order mark": b"\xef\xbb\xbf" + EVENTS,
    "by curl -i": b"HTTP/2 200\r\ncontent-type: text/event-stream\r\n\r\n" + EVENTS,
    "JSON lines": LINES,
    "a JSON list": json.dumps(CHUNKS, indent=2).encode(),
    "with the names of events": json.dumps([{"event": "x", "data": chunk} for chunk in CHUNKS]).encode(),
}


@pytest.mark.parametrize("recording", RECORDED)
def test_however_it_was_recorded(recording):
    ended = run(*CHAT, stdin=RECORDED[recording])
    assert (ended.code, ended.err) == (0, "")
    message = ended.json["choices"][0]["message"]
    assert (message["content"], message["tool_calls"][0]["function"]["arguments"]) == ("Hi", '{"x":1}')
    assert (ended.json["object"], ended.json["choices"][0]["finish_reason"]) == ("chat.completion", "tool_calls")


def test_in_another_apis_form():
    ended = run(*CHAT, "--to", "anthropic", stdin=EVENTS)
    assert [block["type"] for block in ended.json["content"]] == ["text", "tool_use"]
    assert ended.json["stop_reason"] == "tool_use"


def test_an_event_stream_of_aws():
    payloads = {
        "messageStart": {"role": "assistant"},
        "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}},
        "contentBlockStop": {"contentBlockIndex": 0},
        "messageStop": {"stopReason": "end_turn"},
    }
    data = b"".join(
        encode_aws_message(json.dumps(payload).encode(), event_type=name, message_type="event")
        for name, payload in payloads.items()
    )
    ended = run("assemble", "--api", "bedrock", "--to", "openai-chat", stdin=data)
    assert ended.json["choices"][0]["message"]["content"] == "Hi"


def test_json_reports_the_stream_read():
    output = run(*CHAT, "--json", stdin=EVENTS).json
    assert (output["text"], output["finish"]) == ("Hi", "tool_calls")
    assert output["calls"][0] | {"id": ""} == {
        "id": "",
        "raw_id": "call_1",
        "name": "f",
        "arguments": {"x": 1},
        "arguments_text": None,
        "broken": False,
    }


@pytest.mark.parametrize("stop", [len(EVENTS) // 2 + 40, len(EVENTS) - 60])
def test_truncated_stream_is_printed_and_fails(stop):
    ended = run(*CHAT, "--json", stdin=EVENTS[:stop])
    assert ended.code == 1
    assert ended.json["text"] == "Hi"
    assert ended.json["finish"] == "error"
    assert "incomplete" in ended.err


def test_provider_error_is_reported():
    ended = run(*CHAT, stdin=b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n')
    assert is_one_line_error(ended, 1)
    assert "overloaded" in ended.err


@pytest.mark.parametrize("data", [b"", b"hello", b"{}", b"data: {\n\n", b"\x00\x01\x02\x03" * 9, b"[1, 2]"])
def test_input_without_stream_is_usage_error(data):
    assert is_one_line_error(run(*CHAT, stdin=data))


def test_calls_in_text():
    words = {"content": '<tool_call>{"name": "f", "arguments": {}}</tool_call>'}
    chunk = {"choices": [{"index": 0, "delta": words, "finish_reason": "stop"}]}
    data = b"data: %b\n\n" % json.dumps(chunk).encode()
    assert run(*CHAT, "--json", stdin=data).json["calls"] == []
    output = run(*CHAT, "--json", "--tool-format", "hermes", stdin=data).json
    assert [call["name"] for call in output["calls"]] == ["f"]
