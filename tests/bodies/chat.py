"""Chat Completions, and the dialects of it."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def body(*messages: Body, **more: Any) -> Body:
    head: Body = {"model": more.pop("model")} if "model" in more else {}
    return {**head, "messages": list(messages), **more}


def system(content: Any = "s") -> Body:
    return {"role": "system", "content": content}


def user(content: Any = "q", **more: Any) -> Body:
    return {"role": "user", "content": content, **more}


def assistant(content: Any = "a", **more: Any) -> Body:
    return {"role": "assistant", "content": content, **more}


def call(call_id: Any = "call_1", name: Any = "f", arguments: Any = "{}", **more: Any) -> Body:
    """An entry of `tool_calls`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def assistant_calls(*calls: Body, content: Any = None, **more: Any) -> Body:
    """An assistant message with these calls, or with one."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls or (call(),)), **more}


def compatible_calls(*calls: Body, content: Any = "", **more: Any) -> Body:
    """An assistant message with calls as most vendors but OpenAI return it: the content is empty, not null."""
    return assistant_calls(*calls, content=content, **more)


def result(call_id: Any = "call_1", content: Any = "r", **more: Any) -> Body:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def tool(name: Any = "f", **more: Any) -> Body:
    """A declaration."""
    return {"type": "function", "function": {"name": name, **more}}
