"""Anthropic Messages."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def body(*messages: Any, model: str | None = "claude-sonnet-4-5", max_tokens: int = 1024, **more: Any) -> Body:
    head: Body = {"model": model} if model else {}
    return {**head, "max_tokens": max_tokens, "messages": list(messages), **more}


def user(*blocks: Any) -> Body:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def text(content: str = "t", **more: Any) -> Body:
    return {"type": "text", "text": content, **more}


def call(call_id: Any = "toolu_1", **fields: Any) -> Body:
    """A tool_use block."""
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **fields}


def result(call_id: Any = "toolu_1", content: Any = "r", **more: Any) -> Body:
    """A tool_result block."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def tool(name: Any = "f", **more: Any) -> Body:
    """A declaration."""
    return {"name": name, "input_schema": {"type": "object"}, **more}
