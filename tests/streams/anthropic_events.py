"""Events of Anthropic's streams: builders, and a recorded stream."""

from __future__ import annotations

from typing import Any

from segue.canonical.request import Reply
from segue.wire.anthropic import WIRE as ANTHROPIC
from tests.streams.parsing import read_in_any_split, sse

CITATION = {
    "type": "char_location",
    "cited_text": "the sky",
    "document_index": 0,
    "document_title": "Sky",
    "start_char_index": 0,
    "end_char_index": 7,
}
START = {
    "type": "message_start",
    "message": {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "cache_read_input_tokens": 4, "output_tokens": 1},
    },
}
STOP = {"type": "message_stop"}
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def block_start(index: Any, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def text_delta(index: Any, text: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=text)


def input_delta(index: Any, piece: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=piece)


def block_stop(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None = "end_turn", sequence: str | None = None, **usage: Any) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": sequence}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **usage}}


def text_start(index: Any) -> dict[str, Any]:
    return block_start(index, type="text", text="")


def call_start(index: Any, call_id: str = "toolu_1", name: str = "read_file", given: Any = None) -> dict[str, Any]:
    return block_start(index, type="tool_use", id=call_id, name=name, input={} if given is None else given)


RECORDED = [
    START,
    block_start(0, type="thinking", thinking="", signature=""),
    {"type": "ping"},
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see. 🌍"),
    delta(0, "signature_delta", signature="RXFRQkNnSVlBaElN"),
    block_stop(0),
    block_start(1, type="text", text="", citations=[]),
    text_delta(1, "Reading"),
    text_delta(1, " it… é"),
    delta(1, "citations_delta", citation=CITATION),
    block_stop(1),
    block_start(2, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    input_delta(2, ""),
    input_delta(2, '{"query": "sk'),
    input_delta(2, 'y"}'),
    block_stop(2),
    block_start(3, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
    block_stop(3),
    call_start(4),
    input_delta(4, ""),
    *[input_delta(4, sign) for sign in '{"path": "ä\\n", "n": [1]}'],
    block_stop(4),
    message_delta("tool_use", input_tokens=12, cache_creation_input_tokens=None),
    STOP,
]


def encode_events(*payloads: Any, named: bool = True) -> bytes:
    """Payloads as the service sends them, with event names."""
    return sse(*payloads, named=named)


def read_stream(*payloads: Any) -> tuple[Any, Reply]:
    """Events and reply of a stream, equal in every split of its bytes; the event rules are checked."""
    return read_in_any_split(ANTHROPIC, encode_events(*payloads))


def read_reply(*payloads: Any) -> Reply:
    return read_stream(START, *payloads)[1]
