"""Callers of each API in their plainest form: a body that declares tools, and what is appended to it each turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]


class ClientCall(NamedTuple):
    id: str | None
    tool: str
    arguments: Any


class Client(NamedTuple):
    """`start(tools)` is the first body; `go_on(body, reply, answer)` the next one, and the calls that it answered."""

    start: Callable[[list[str]], Body]
    go_on: Callable[[Body, Body, Callable[[ClientCall], str]], tuple[Body, list[ClientCall]]]


QUESTION = "How warm is it in Lisbon and in Oslo, and how late is it there?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "zone": {"type": "string"}}}


def _chat_start(tools: list[str]) -> Body:
    declared = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
    return {"messages": [{"role": "user", "content": QUESTION}], "tools": declared}


def _chat_go_on(body: Body, reply: Body, answer: Callable[[ClientCall], str]) -> tuple[Body, list[ClientCall]]:
    message = reply["choices"][0]["message"]
    calls = [
        ClientCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or []
    ]
    results = [{"role": "tool", "tool_call_id": call.id, "content": answer(call)} for call in calls]
    return {**body, "messages": [*body["messages"], message, *results]}, calls


def _named_chat_go_on(body: Body, reply: Body, answer: Callable[[ClientCall], str]) -> tuple[Body, list[ClientCall]]:
    longer, calls = _chat_go_on(body, reply, answer)
    names = {call.id: call.tool for call in calls}
    messages = [
        {**message, "name": names[message["tool_call_id"]]} if message.get("tool_call_id") in names else message
        for message in longer["messages"]
    ]
    return {**longer, "messages": messages}, calls


def _messages_start(tools: list[str]) -> Body:
    declared = [{"name": name, "input_schema": SCHEMA} for name in tools]
    return {"max_tokens": 1000, "messages": [{"role": "user", "content": QUESTION}], "tools": declared}


def _messages_go_on(body: Body, reply: Body, answer: Callable[[ClientCall], str]) -> tuple[Body, list[ClientCall]]:
    uses = [block for block in reply["content"] if block["type"] == "tool_use"]
    calls = [ClientCall(block["id"], block["name"], block["input"]) for block in uses]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": answer(call)} for call in calls]
    history = [*body["messages"], {"role": "assistant", "content": reply["content"]}]
    return {**body, "messages": [*history, *([{"role": "user", "content": results}] if results else [])]}, calls


def _responses_start(tools: list[str]) -> Body:
    declared = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in tools]
    return {"input": [{"role": "user", "content": QUESTION}], "tools": declared}


def _responses_go_on(body: Body, reply: Body, answer: Callable[[ClientCall], str]) -> tuple[Body, list[ClientCall]]:
    items = [item for item in reply["output"] if item["type"] == "function_call"]
    calls = [ClientCall(item["call_id"], item["name"], json.loads(item["arguments"])) for item in items]
    results = [{"type": "function_call_output", "call_id": call.id, "output": answer(call)} for call in calls]
    return {**body, "input": [*body["input"], *reply["output"], *results]}, calls


def _gemini_start(tools: list[str]) -> Body:
    declared = [{"functionDeclarations": [{"name": name, "parametersJsonSchema": SCHEMA} for name in tools]}]
    return {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}], "tools": declared}


def _gemini_go_on(body: Body, reply: Body, answer: Callable[[ClientCall], str]) -> tuple[Body, list[ClientCall]]:
    content = reply["candidates"][0]["content"]
    found = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    calls = [ClientCall(call.get("id"), call["name"], call.get("args", {})) for call in found]
    parts = [
        {
            "functionResponse": {
                **({"id": call.id} if call.id else {}),
                "name": call.tool,
                "response": {"output": answer(call)},
            }
        }
        for call in calls
    ]
    history = [*body["contents"], content]
    return {**body, "contents": [*history, *([{"role": "user", "parts": parts}] if parts else [])]}, calls


_CHAT = Client(_chat_start, _chat_go_on)
CLIENTS: dict[str, Client] = {
    "openai-chat": _CHAT,
    "kimi": _CHAT,
    "deepseek": _CHAT,
    "qwen": _CHAT,
    "mistral": Client(_chat_start, _named_chat_go_on),
    "openai-responses": Client(_responses_start, _responses_go_on),
    "azure-foundry": Client(_responses_start, _responses_go_on),
    "anthropic": Client(_messages_start, _messages_go_on),
    "gemini": Client(_gemini_start, _gemini_go_on),
}
