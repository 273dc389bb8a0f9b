"""OpenAI Responses, and Azure AI Foundry, which has the same items."""

from __future__ import annotations

from typing import Any

from tests.bodies import Body


def body(*items: Any, **more: Any) -> Body:
    head: Body = {"model": more.pop("model")} if "model" in more else {}
    return {**head, "input": list(items), **more}


def user(content: Any = "q", **more: Any) -> Body:
    return {"role": "user", "content": content, **more}


def assistant(text: str = "a", **more: Any) -> Body:
    """An assistant message as it occurs in a reply."""
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
        **more,
    }


def reasoning(item_id: str = "rs_1", **more: Any) -> Body:
    return {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "gAAA1", **more}


def call(call_id: Any = "call_1", name: Any = "f", arguments: Any = "{}", **more: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def result(call_id: Any = "call_1", output: Any = "r", **more: Any) -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}
