"""Whole replies as each API gives them, for tests that go the way back."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def chat_reply(*entries: Any, content: Any = None, model: str = "gpt-4.1", finish: str | None = None) -> Body:
    message = {"role": "assistant", "content": content, **({"tool_calls": list(entries)} if entries else {})}
    reason = finish or ("tool_calls" if entries else "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def anthropic_reply(*blocks: Any, model: str = "claude-opus-4-6", stop: str | None = None) -> Body:
    called = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }
