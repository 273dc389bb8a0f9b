"""A history converted by renaming fields only: ids, order, gaps and reasoning stay as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from segue.canonical.blocks import Block, Message, Text, Thinking, ToolCall, ToolResponse, text_of

__all__ = ["copy_history"]

Json = dict[str, Any]


def copy_history(messages: Sequence[Message], api: str, rendered: Json) -> Json:
    """`rendered` with its messages replaced by naive copies; everything else in the body stays valid."""
    key, write = _WRITERS.get(api, ("messages", _chat))
    head = [entry for entry in rendered[key][:1] if entry.get("role") == "system"]
    return {**rendered, key: [*head, *(entry for message in messages for entry in write(message))]}


def _copied_blocks(message: Message) -> list[Block]:
    """The blocks without the results of cancelled calls, which a program that only renames fields would not have."""
    return [block for block in message.blocks if not (isinstance(block, ToolResponse) and block.outcome)]


def _result_text(response: ToolResponse) -> str:
    return text_of(response.content)


def _chat(message: Message) -> Iterator[Json]:
    for response in (block for block in _copied_blocks(message) if isinstance(block, ToolResponse)):
        yield {"role": "tool", "tool_call_id": response.origin.raw_id, "content": _result_text(response)}
    if message.speaker == "human":
        yield {"role": "user", "content": text_of(message.blocks)}
    if message.speaker == "ai":
        reply: Json = {"role": "assistant", "content": text_of(message.blocks) or None}
        reasoning = [block.text for block in message.blocks if isinstance(block, Thinking) and block.text]
        calls = [
            {
                "id": call.raw_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.blocks
            if isinstance(call, ToolCall)
        ]
        yield {
            **reply,
            **({"reasoning_content": reasoning[0]} if reasoning else {}),
            **({"tool_calls": calls} if calls else {}),
        }


def _responses(message: Message) -> Iterator[Json]:
    for block in _copied_blocks(message):
        match block:
            case Text() if message.speaker == "human":
                yield {"role": "user", "content": block.text}
            case Text():
                yield {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": block.text}]}
            case Thinking():
                yield {"type": "reasoning", "id": block.signature or "rs_1", "summary": []}
            case ToolCall():
                text = json.dumps(block.arguments)
                yield {"type": "function_call", "call_id": block.raw_id, "name": block.name, "arguments": text}
            case ToolResponse():
                yield {"type": "function_call_output", "call_id": block.origin.raw_id, "output": _result_text(block)}
            case _:
                pass


def _anthropic(message: Message) -> Iterator[Json]:
    content: list[Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                content.append({"type": "text", "text": block.text})
            case Thinking():
                content.append({"type": "thinking", "thinking": block.text, "signature": block.signature or ""})
            case ToolCall():
                content.append({"type": "tool_use", "id": block.raw_id, "name": block.name, "input": block.arguments})
            case ToolResponse():
                result = {"tool_use_id": block.origin.raw_id, "content": _result_text(block)}
                content.append({"type": "tool_result", **result})
            case _:
                pass
    if content:
        yield {"role": "assistant" if message.speaker == "ai" else "user", "content": content}


def _bedrock(message: Message) -> Iterator[Json]:
    content: list[Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                content.append({"text": block.text})
            case Thinking():
                reasoning = {"text": block.text, "signature": block.signature or ""}
                content.append({"reasoningContent": {"reasoningText": reasoning}})
            case ToolCall():
                content.append({"toolUse": {"toolUseId": block.raw_id, "name": block.name, "input": block.arguments}})
            case ToolResponse():
                result = {"toolUseId": block.origin.raw_id, "content": [{"text": _result_text(block)}]}
                content.append({"toolResult": result})
            case _:
                pass
    if content:
        yield {"role": "assistant" if message.speaker == "ai" else "user", "content": content}


def _gemini(message: Message) -> Iterator[Json]:
    parts: list[Json] = []
    for block in _copied_blocks(message):
        match block:
            case Text():
                parts.append({"text": block.text})
            case ToolCall():
                parts.append({"functionCall": {"name": block.name, "args": block.arguments}})
            case ToolResponse():
                parts.append({"functionResponse": {"name": block.name, "response": {"output": _result_text(block)}}})
            case _:
                pass
    if parts:
        yield {"role": "model" if message.speaker == "ai" else "user", "parts": parts}


_WRITERS: dict[str, tuple[str, Callable[[Message], Iterator[Json]]]] = {
    "openai-responses": ("input", _responses),
    "azure-foundry": ("input", _responses),
    "anthropic": ("messages", _anthropic),
    "bedrock": ("messages", _bedrock),
    "gemini": ("contents", _gemini),
}
