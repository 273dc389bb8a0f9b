"""Events of Converse: builders, and a recorded stream."""

from __future__ import annotations

import json
from typing import Any

from segue.canonical.request import Reply
from segue.wire.bedrock import BEDROCK
from segue.wire.framing import event_message

from .reading import however_cut, read, taken

START = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}
META = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 551}, "p": "abcdefgh"}}
CITATION = {
    "title": "Sky",
    "sourceContent": [{"text": "the sky"}],
    "location": {"documentChar": {"documentIndex": 0, "start": 0, "end": 7}},
}


def delta(index: Any, **said: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": said, "p": "ab"}}


def say(index: Any, words: str) -> dict[str, Any]:
    return delta(index, text=words)


def put(index: Any, piece: Any) -> dict[str, Any]:
    return delta(index, toolUse={"input": piece})


def think(index: Any, **said: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=said)


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
        ((kind, said),) = payload.items()
        headers = {"event_type": kind, "content_type": "application/json", "message_type": "event"}
        if kind.endswith("Exception"):
            headers = {"exception_type": kind, "content_type": "application/json", "message_type": "exception"}
        messages.append(event_message(json.dumps(said).encode(), **headers))
    return b"".join(messages)


def told(*payloads: Any) -> tuple[Any, Reply]:
    """What is read of a stream: the same whether it is framed, cut anywhere, or given as boto3 decodes it."""
    events, reply = however_cut(BEDROCK, framed(*payloads))
    assert taken(BEDROCK, payloads) == (events, reply)
    lines = "\n".join(json.dumps(payload) for payload in payloads).encode()
    assert read(BEDROCK, lines) == (events, reply)
    return events, reply


def spoken(*payloads: Any) -> Reply:
    return told(START, *payloads, META)[1]
