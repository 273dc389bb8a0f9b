"""Bedrock Converse."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def blocks(*content: Any) -> list[Any]:
    """Content blocks; strings are text blocks."""
    return [{"text": one} if isinstance(one, str) else one for one in content]


def user(*content: Any) -> Body:
    """A user message; strings are text blocks."""
    return {"role": "user", "content": blocks(*content)}


def assistant(*content: Any) -> Body:
    """An assistant message; strings are text blocks."""
    return {"role": "assistant", "content": blocks(*content)}


def call(call_id: Any = "abcdefgh1", **fields: Any) -> Body:
    """A toolUse block."""
    return {"toolUse": {"toolUseId": call_id, "name": "f", "input": {}, **fields}}


def result(call_id: Any = "abcdefgh1", **fields: Any) -> Body:
    """A toolResult block."""
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": "t"}], **fields}}


def tool(name: Any = "f", **more: Any) -> Body:
    """A declaration."""
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}, **more}}
