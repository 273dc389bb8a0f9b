"""Whole replies as each API returns them, for tests of reply conversion."""

from __future__ import annotations

import json
from typing import Any

from tests.conversations.build import call, function_call, part_call, tool_use, use

Body = dict[str, Any]


def chat_reply(*entries: Any, content: Any = None, model: str = "gpt-4.1", finish: str | None = None) -> Body:
    message = {"role": "assistant", "content": content, **({"tool_calls": list(entries)} if entries else {})}
    reason = finish or ("tool_calls" if entries else "stop")
    return {
        "id": "chatcmpl-A1b2C3d4E5f6G7h8",
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


def responses_reply(*items: Any, model: str = "gpt-5.1", status: str = "completed") -> Body:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": model,
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }


def gemini_reply(*parts: Any, model: str = "gemini-2.5-pro", finish: str = "STOP") -> Body:
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": finish}],
        "modelVersion": model,
        "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18},
    }


def bedrock_reply(*blocks: Any, stop: str | None = None) -> Body:
    called = any("toolUse" in block for block in blocks)
    return {
        "output": {"message": {"role": "assistant", "content": list(blocks)}},
        "stopReason": stop or ("tool_use" if called else "end_turn"),
        "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
        "metrics": {"latencyMs": 551},
    }


def reply_with_calls(api: str, calls: Any) -> Body:
    """A reply of this API that makes these calls: ids, names, arguments."""
    match api:
        case "anthropic":
            return anthropic_reply(*(use(*one) for one in calls))
        case "openai-responses" | "azure-foundry":
            return responses_reply(*(function_call(*one, id=f"fc_{one[0]}", status="completed") for one in calls))
        case "bedrock":
            return bedrock_reply(*(tool_use(*one) for one in calls))
        case "gemini":
            return gemini_reply(*(part_call(name, arguments) for _, name, arguments in calls))
        case _:
            return chat_reply(*(call(*one) for one in calls), content="")


def find_calls(reply: Body, api: str) -> list[tuple[str, Any]]:
    """The calls that a client of this API finds in a reply: names and arguments."""
    match api:
        case "anthropic":
            return [(block["name"], block["input"]) for block in reply["content"] if block["type"] == "tool_use"]
        case "openai-responses" | "azure-foundry":
            items = [item for item in reply["output"] if item["type"] == "function_call"]
            return [(item["name"], json.loads(item["arguments"])) for item in items]
        case "bedrock":
            blocks = reply["output"]["message"]["content"]
            uses = [block["toolUse"] for block in blocks if "toolUse" in block]
            return [(one["name"], one["input"]) for one in uses]
        case "gemini":
            parts = reply["candidates"][0]["content"]["parts"]
            found = [part["functionCall"] for part in parts if "functionCall" in part]
            return [(one["name"], one.get("args", {})) for one in found]
        case _:
            entries = reply["choices"][0]["message"]["tool_calls"]
            return [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in entries]
