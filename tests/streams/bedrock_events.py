"""Events of Converse: builders, and a recorded stream."""

from __future__ import annotations

import json
from typing import Any

from segue.canonical.request import Reply
from segue.wire.bedrock import BEDROCK
from segue.wire.framing import encode_aws_message

from .reading import however_cut, read, taken

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


def say(index: Any, text: str) -> dict[str, Any]:
    return delta(index, text=text)


def put(index: Any, piece: Any) -> dict[str, Any]:
    return delta(index, toolUse={"input": piece})


def think(index: Any, **fields: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=fields)


def begin(index: Any, **start: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"start": start, "contentBlockIndex": index, "p": "a"}}


def begin_call(index: Any, call_id: str = "tooluse_1", name: str = "read_file", **more: Any) -> dict[str, Any]:
    return begin(index, toolUse={"toolUseId": call_id, "name": name, **more})


def stop(index: Any) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index, "p": "abcd"}}


def end(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"messageStop": {"stopReason": reason, "p": "abc", **more}}


RECORDED = [
    START,
    think(0, text="Let me "),
    think(0, text="see. 🌍"),
    think(0, signature="RXFRQkNnSVlBaElN"),
    stop(0),
    say(1, "Reading"),
    say(1, " it… é"),
    stop(1),
    begin_call(2),
    put(2, ""),
    *[put(2, piece) for piece in '{"path": "ä\\n", "n": [1]}'],
    stop(2),
    end("tool_use"),
    META,
]


def framed(*payloads: Any) -> bytes:
    """Payloads as the service sends them; exceptions are messages of their own kind."""
    messages: list[bytes] = []
    for payload in payloads:
        ((kind, fields),) = payload.items()
        headers = {"event_type": kind, "content_type": "application/json", "message_type": "event"}
        if kind.endswith("Exception"):
            headers = {"exception_type": kind, "content_type": "application/json", "message_type": "exception"}
        messages.append(encode_aws_message(json.dumps(fields).encode(), **headers))
    return b"".join(messages)


def told(*payloads: Any) -> tuple[Any, Reply]:
    """Events and reply of a stream: the same framed, split anywhere, or decoded by boto3."""
    events, reply = however_cut(BEDROCK, framed(*payloads))
    assert taken(BEDROCK, payloads) == (events, reply)
    lines = "\n".join(json.dumps(payload) for payload in payloads).encode()
    assert read(BEDROCK, lines) == (events, reply)
    return events, reply


def spoken(*payloads: Any) -> Reply:
    return told(START, *payloads, META)[1]
