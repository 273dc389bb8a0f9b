"""Events of Converse: builders, and a recorded stream."""

from __future__ import annotations

import json
from typing import Any

from segue.canonical.request import Reply
from segue.wire.bedrock import WIRE as BEDROCK
from segue.wire.stream.aws_events import encode_aws_message
from tests.streams.parsing import read, read_in_any_split, read_payloads

START = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
META = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 551}, "p": "abcdefgh"}}
CITATION = {
    "title": "Sky",
    "sourceContent": [{"text": "the sky"}],
    "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 7}},
}


def delta(index: Any, **fields: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields, "p": "ab"}}


def text_delta(index: Any, text: str) -> dict[str, Any]:
    return delta(index, text=text)


def input_delta(index: Any, piece: Any) -> dict[str, Any]:
    return delta(index, toolUse={"input": piece})


def reasoning_delta(index: Any, **fields: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=fields)


def block_start(index: Any, **start: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"start": start, "contentBlockIndex": index, "p": "a"}}


def call_start(index: Any, call_id: str = "tooluse_1", name: str = "read_file", **more: Any) -> dict[str, Any]:
    return block_start(index, toolUse={"toolUseId": call_id, "name": name, **more})


def block_stop(index: Any) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index, "p": "abcd"}}


def message_stop(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"messageStop": {"stopReason": reason, "p": "abc", **more}}


RECORDED = [
    START,
    reasoning_delta(0, text="Let me "),
    reasoning_delta(0, text="see. 🌍"),
    reasoning_delta(0, signature="RXFRQkNnSVlBaElN"),
    block_stop(0),
    text_delta(1, "Reading"),
    text_delta(1, " it… é"),
    block_stop(1),
    call_start(2),
    input_delta(2, ""),
    *[input_delta(2, piece) for piece in '{"path": "ä\\n", "n": [1]}'],
    block_stop(2),
    message_stop("tool_use"),
    META,
]


def encode_events(*payloads: Any) -> bytes:
    """Payloads as the service sends them; exceptions are messages of their own kind."""
    messages: list[bytes] = []
    for payload in payloads:
        ((kind, fields),) = payload.items()
        headers = {"event_type": kind, "content_type": "application/json", "message_type": "event"}
        if kind.endswith("Exception"):
            headers = {"exception_type": kind, "content_type": "application/json", "message_type": "exception"}
        messages.append(encode_aws_message(json.dumps(fields).encode(), **headers))
    return b"".join(messages)


def read_stream(*payloads: Any) -> tuple[Any, Reply]:
    """Events and reply of a stream: the same framed, split anywhere, or decoded by boto3."""
    events, reply = read_in_any_split(BEDROCK, encode_events(*payloads))
    assert read_payloads(BEDROCK, payloads) == (events, reply)
    lines = "\n".join(json.dumps(payload) for payload in payloads).encode()
    assert read(BEDROCK, lines) == (events, reply)
    return events, reply


def read_reply(*payloads: Any) -> Reply:
    return read_stream(START, *payloads, META)[1]
