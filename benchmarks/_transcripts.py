"""A generated agent session of any length, as a request body of each API.

The same seed gives the same bytes. Results are code, JSON, log lines and prose in several languages, 0.2 to 4 kB each,
one to five a turn. Replies have reasoning where the API supports it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SIZES = (100, 1_000, 10_000)

_CODE = '''def walk(self, node: Node) -> Iterator[str]:
    """Every child of a node, "depth first"."""
    for child in node.children:
        if child.kind == 'leaf' and not child.seen:
            yield child.name + "\\n"
        yield from self.walk(child)  # see C:\\docs\\walk.md
'''
_PROSE = (
    "Der Zug fährt um 18:45 nach Zürich – naïve café, 東京は今日も雨です。 ✓ done 🎈\nNothing else was found there.\n"
)
_TOOLS = ("read_file", "grep", "run_command", "write_file", "list_dir", "fetch_page")
_SYSTEM = "You are a careful engineer. Read before you write, and say what you saw."
_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where to look, from the root of the project."},
        "pattern": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
    },
    "required": ["path"],
}


@dataclass(frozen=True)
class Call:
    number: int
    tool: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True)
class Turn:
    """A reply with its calls, or a user message if `user_text` is set."""

    user_text: str | None = None
    reasoning: str = ""
    text: str | None = None
    calls: tuple[Call, ...] = ()


def session(messages: int, seed: int = 7) -> list[Turn]:
    """Return a session of about this number of messages, counted as in Chat Completions: one for each result."""
    rng = random.Random(seed)
    turns: list[Turn] = []
    count = number = 0
    while count < messages - 1:
        turns.append(Turn(user_text=_text(rng, rng.randrange(40, 400))))
        count += 1
        for _ in range(rng.randrange(1, 6)):
            calls: list[Call] = []
            for _ in range(rng.randrange(1, 6)):
                number += 1
                arguments = {
                    "path": f"src/pkg/module_{number}.py",
                    "pattern": f"def f{number}\\b",
                    "limit": number % 50,
                }
                calls.append(Call(number, rng.choice(_TOOLS), arguments, _text(rng, rng.randrange(200, 4000))))
            text = _text(rng, rng.randrange(20, 200)) if rng.random() < 0.5 else None
            turns.append(Turn(None, _text(rng, rng.randrange(100, 600)), text, tuple(calls)))
            count += 1 + len(calls)
        turns.append(Turn(None, _text(rng, 200), _text(rng, rng.randrange(100, 900))))
        count += 1
    return [*turns, Turn(user_text="Go on.")]


def _text(rng: random.Random, size: int) -> str:
    make: Callable[[], str] = rng.choice((lambda: _CODE, lambda: _log(rng), lambda: _json(rng), lambda: _PROSE))
    pieces: list[str] = []
    while sum(map(len, pieces)) < size:
        pieces.append(make())
    return "".join(pieces)[:size]


def _log(rng: random.Random) -> str:
    when = f"2025-11-03T12:44:{rng.randrange(60):02}.{rng.randrange(1000):03}Z"
    path = f"/api/v1/items?id={rng.randrange(10**6)}"
    return f'{when} INFO  worker-{rng.randrange(9)} handled "GET {path}" in {rng.randrange(900)} ms\n'


def _json(rng: random.Random) -> str:
    item = {"id": rng.randrange(10**6), "name": f"item {rng.randrange(999)}", "ok": True, "score": rng.random()}
    return json.dumps(item) + "\n"


# -------------------------------------------------------------------------------------------------------- as bodies


def _chat(turns: list[Turn], call_id: Callable[[Call], str], model: str, key: str | None = None) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": _SYSTEM}]
    for turn in turns:
        if turn.user_text is not None:
            messages.append({"role": "user", "content": turn.user_text})
            continue
        reply: dict[str, Any] = {"role": "assistant", "content": turn.text}
        if key is not None:
            reply[key] = turn.reasoning
        if turn.calls:
            reply["tool_calls"] = [
                {
                    "id": call_id(call),
                    "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
                }
                for call in turn.calls
            ]
        messages.append(reply)
        messages += [{"role": "tool", "tool_call_id": call_id(c), "content": c.result} for c in turn.calls]
    tools = [
        {"type": "function", "function": {"name": name, "description": f"The tool {name}.", "parameters": _SCHEMA}}
        for name in _TOOLS
    ]
    return {"model": model, "messages": messages, "tools": tools, "temperature": 0.2}


def _openai_chat(turns: list[Turn]) -> dict[str, Any]:
    return _chat(turns, lambda call: f"call_{call.number:024}", "gpt-4.1")


def _kimi(turns: list[Turn]) -> dict[str, Any]:
    names = lambda call: f"functions.{call.tool}:{call.number - 1}"  # noqa: E731
    return _chat(turns, names, "kimi-k2-thinking", "reasoning_content")


def _deepseek(turns: list[Turn]) -> dict[str, Any]:
    return _chat(turns, lambda call: f"call_00_{call.number:024}", "deepseek-chat", "reasoning_content")


def _qwen(turns: list[Turn]) -> dict[str, Any]:
    return _chat(turns, lambda call: f"call_{call.number:024}", "qwen3-235b-a22b-thinking-2507", "reasoning_content")


def _mistral(turns: list[Turn]) -> dict[str, Any]:
    body = _chat(turns, lambda call: f"{call.number:09}", "magistral-medium-latest")
    replies = iter([turn for turn in turns if turn.user_text is None])
    names = {f"{call.number:09}": call.tool for turn in turns for call in turn.calls}
    for message in body["messages"]:
        if message["role"] == "assistant":
            turn = next(replies)
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": turn.reasoning}]}
            message["content"] = [thinking, *([{"type": "text", "text": turn.text}] if turn.text else [])]
        elif message["role"] == "tool":
            message["name"] = names[message["tool_call_id"]]
    return body


def _anthropic(turns: list[Turn]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.user_text is not None:
            messages.append({"role": "user", "content": turn.user_text})
            continue
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": turn.reasoning, "signature": "c2lnbmVk" * 45}]
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        blocks += [
            {"type": "tool_use", "id": f"toolu_{call.number:024}", "name": call.tool, "input": call.arguments}
            for call in turn.calls
        ]
        messages.append({"role": "assistant", "content": blocks})
        if turn.calls:
            results = [
                {"type": "tool_result", "tool_use_id": f"toolu_{call.number:024}", "content": call.result}
                for call in turn.calls
            ]
            messages.append({"role": "user", "content": results})
    tools = [{"name": name, "description": f"The tool {name}.", "input_schema": _SCHEMA} for name in _TOOLS]
    thinking = {"type": "enabled", "budget_tokens": 4096}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 16384,
        "system": _SYSTEM,
        "messages": messages,
        "tools": tools,
        "thinking": thinking,
    }


def _responses(turns: list[Turn]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        if turn.user_text is not None:
            items.append({"role": "user", "content": turn.user_text})
            continue
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        sealed = "Z0FBQUFB" * 45
        items.append({"type": "reasoning", "id": f"rs_{number:024}", "summary": summary, "encrypted_content": sealed})
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            items.append({"type": "message", "id": f"msg_{number:024}", "role": "assistant", "content": content})
        items += [
            {
                "type": "function_call",
                "id": f"fc_{call.number:024}",
                "call_id": f"call_{call.number:024}",
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
            }
            for call in turn.calls
        ]
        items += [
            {"type": "function_call_output", "call_id": f"call_{call.number:024}", "output": call.result}
            for call in turn.calls
        ]
    tools = [
        {"type": "function", "name": name, "description": f"The tool {name}.", "parameters": _SCHEMA, "strict": False}
        for name in _TOOLS
    ]
    return {"model": "gpt-5.1", "instructions": _SYSTEM, "input": items, "tools": tools, "store": False}


def _foundry(turns: list[Turn]) -> dict[str, Any]:
    """Render a body without tools, which the agent declares, and without reasoning."""
    kept = [item for item in _responses(turns)["input"] if item.get("type") != "reasoning"]
    items = [{**item, "id": f"{item['id']}{'0' * 26}"} if "id" in item else item for item in kept]
    return {"agent_reference": {"type": "agent_reference", "name": "desk"}, "instructions": _SYSTEM, "input": items}


def _gemini(turns: list[Turn]) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in turns:
        if turn.user_text is not None:
            contents.append({"role": "user", "parts": [{"text": turn.user_text}]})
            continue
        parts: list[dict[str, Any]] = [{"text": turn.reasoning, "thought": True}]
        if turn.text:
            parts.append({"text": turn.text})
        for position, call in enumerate(turn.calls):
            part: dict[str, Any] = {"functionCall": {"name": call.tool, "args": call.arguments}}
            parts.append(part if position else {**part, "thoughtSignature": "c2lnbmVk" * 45})
        contents.append({"role": "model", "parts": parts})
        if turn.calls:
            results = [{"functionResponse": {"name": c.tool, "response": {"output": c.result}}} for c in turn.calls]
            contents.append({"role": "user", "parts": results})
    declared = [{"name": name, "description": f"The tool {name}.", "parameters": _SCHEMA} for name in _TOOLS]
    return {
        "systemInstruction": {"parts": [{"text": _SYSTEM}]},
        "contents": contents,
        "tools": [{"functionDeclarations": declared}],
        "generationConfig": {"maxOutputTokens": 8192},
    }


def _bedrock(turns: list[Turn]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.user_text is not None:
            messages.append({"role": "user", "content": [{"text": turn.user_text}]})
            continue
        thought = {"text": turn.reasoning, "signature": "c2lnbmVk" * 45}
        blocks: list[dict[str, Any]] = [{"reasoningContent": {"reasoningText": thought}}]
        if turn.text:
            blocks.append({"text": turn.text})
        blocks += [
            {"toolUse": {"toolUseId": f"tooluse_{call.number:022}", "name": call.tool, "input": call.arguments}}
            for call in turn.calls
        ]
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"toolResult": {"toolUseId": f"tooluse_{call.number:022}", "content": [{"text": call.result}]}}
            for call in turn.calls
        ]
        if results:
            messages.append({"role": "user", "content": results})
    tools = [
        {"toolSpec": {"name": name, "description": f"The tool {name}.", "inputSchema": {"json": _SCHEMA}}}
        for name in _TOOLS
    ]
    return {
        "modelId": "us.anthropic.claude-sonnet-4-5",
        "system": [{"text": _SYSTEM}],
        "messages": messages,
        "toolConfig": {"tools": tools},
        "inferenceConfig": {"maxTokens": 16384},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 4096}},
    }


RENDERERS: dict[str, Callable[[list[Turn]], dict[str, Any]]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _responses,
    "azure-foundry": _foundry,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "mistral": _mistral,
    "kimi": _kimi,
    "deepseek": _deepseek,
    "qwen": _qwen,
}


def body(api: str, messages: int) -> bytes:
    """Return the session as a request body of this API."""
    made = RENDERERS[api](session(messages))
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()


def bodies(messages: int) -> Iterator[tuple[str, bytes]]:
    for api in RENDERERS:
        yield api, body(api, messages)
