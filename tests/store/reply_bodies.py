"""Reply bodies of all ten wires."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Calls = Sequence[tuple[str, str | None]]
"""Names of tools, and the ids that the calls bear."""

MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.1",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro-preview",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "azure-foundry": "gpt-5.1",
    "mistral": "magistral-medium-latest",
    "kimi": "kimi-k2-thinking",
    "deepseek": "deepseek-reasoner",
    "qwen": "qwen3-coder-plus",
}


def reply_body(wire: str, *, thought: str = "", text: str = "", calls: Calls = (), tokens: int = 0) -> dict[str, Any]:
    """The whole answer as this API gives it, counted with so many tokens of input where there are any."""
    if wire in ("openai-responses", "azure-foundry"):
        return _responses(wire, thought, text, calls, tokens)
    if wire in ("anthropic", "gemini", "bedrock"):
        return {"anthropic": _anthropic, "gemini": _gemini, "bedrock": _bedrock}[wire](thought, text, calls, tokens)
    return _chat(wire, thought, text, calls, tokens)


def arguments(number: int) -> dict[str, Any]:
    return {"path": f"src/{number}.py", "n": number, "deep": {"x": [1, 2.0, None, "ü"]}}


def _chat(wire: str, thought: str, text: str, calls: Calls, tokens: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thought and wire == "mistral":
        text_parts = [{"type": "text", "text": text}] if text else []
        message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}, *text_parts]
    elif thought and wire != "openai-chat":
        message["reasoning_content"] = thought
    made = [
        {
            **({"id": raw_id} if raw_id is not None else {}),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments(number))},
        }
        for number, (name, raw_id) in enumerate(calls)
    ]
    if made:
        message["tool_calls"] = made
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODELS[wire],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7},
    }


def _responses(wire: str, thought: str, text: str, calls: Calls, tokens: int) -> dict[str, Any]:
    sealed = {"encrypted_content": f"sealed {thought}", "summary": [{"type": "summary_text", "text": thought}]}
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": f"rs_{len(calls)}", **sealed}] if thought else []
    if text:
        text_parts = [{"type": "output_text", "text": text, "annotations": []}]
        items.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": text_parts}
        )
    for number, (name, raw_id) in enumerate(calls):
        item = {"type": "function_call", "id": f"fc_{number}", "name": name, "arguments": json.dumps(arguments(number))}
        items.append({**item, "call_id": raw_id or f"call_{number}", "status": "completed"})
    usage = {"input_tokens": tokens, "output_tokens": 7, "total_tokens": tokens + 7}
    given = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": MODELS[wire]}
    return {**given, "output": items, "usage": usage}


def _anthropic(thought: str, text: str, calls: Calls, tokens: int) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if thought:
        blocks.append({"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"})
    if text:
        blocks.append({"type": "text", "text": text})
    for number, (name, raw_id) in enumerate(calls):
        blocks.append({"type": "tool_use", "id": raw_id or f"toolu_{number}", "name": name, "input": arguments(number)})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODELS["anthropic"],
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 7},
    }


def _gemini(thought: str, text: str, calls: Calls, tokens: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": thought, "thought": True}] if thought else []
    if text:
        parts.append({"text": text})
    for number, (name, raw_id) in enumerate(calls):
        call = {"name": name, "args": arguments(number), **({"id": raw_id} if raw_id else {})}
        signed = {"thoughtSignature": "c2lnbmVk"} if thought and not number else {}
        parts.append({"functionCall": call, **signed})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": 7, "totalTokenCount": tokens + 7},
        "modelVersion": MODELS["gemini"],
    }


def _bedrock(thought: str, text: str, calls: Calls, tokens: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if thought:
        signed = {"text": thought, "signature": "c2lnbmVk"}
        content.append({"reasoningContent": {"reasoningText": signed}})
    if text:
        content.append({"text": text})
    for number, (name, raw_id) in enumerate(calls):
        use = {"toolUseId": raw_id or f"tooluse_{number}", "name": name, "input": arguments(number)}
        content.append({"toolUse": use})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": tokens, "outputTokens": 7, "totalTokens": tokens + 7},
        "metrics": {"latencyMs": 1},
    }
