"""Chunks of chat completions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.streams.parsing import Body, sse


def encode_chunks(chunks: Iterable[Body], *, done: bool = True) -> bytes:
    """Chunks as servers send them, with the `[DONE]` marker."""
    return sse(*chunks, done=done)


def chunk(delta: Body, reason: str | None = None, **more: Any) -> Body:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    around = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 17, "model": "gpt-4.1"}
    return {**around, "choices": [choice], **more}


def calls(*entries: Body) -> Body:
    return chunk({"tool_calls": list(entries)})


def entry(index: Any = None, raw_id: Any = None, name: Any = None, arguments: Any = None) -> Body:
    given = {"index": index, "id": raw_id, "type": "function" if raw_id is not None else None}
    function = {"name": name, "arguments": arguments}
    fields = {key: value for key, value in given.items() if value is not None}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


STOP, TOOLS = chunk({}, "stop"), chunk({}, "tool_calls")
X = {"x": 1}
