"""A row of the table of conversations, and the few words that its bodies are built from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

Body = dict[str, Any]

GONE: Any = object()  # leave this key out


class Case(NamedTuple):
    """One conversation. `models` names the target model where the case is about one; the default holds elsewhere."""

    name: str
    source: str
    about: str
    body: Body
    models: Mapping[str, str] = {}


def kept(**entry: Any) -> Body:
    return {key: value for key, value in entry.items() if value is not GONE}


# ------------------------------------------------------------------------------------------------ Chat Completions


def system(text: str) -> Body:
    return {"role": "system", "content": text}


def user(content: Any) -> Body:
    return {"role": "user", "content": content}


def says(content: Any, **more: Any) -> Body:
    return {"role": "assistant", "content": content, **more}


def call(call_id: Any, name: str = "read_file", arguments: Any = None) -> Body:
    """An entry of `tool_calls`; arguments that are no string are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return kept(id=call_id, type="function", function={"name": name, "arguments": text})


def calls(*entries: Body, content: Any = None, **more: Any) -> Body:
    return {"role": "assistant", "content": content, **more, "tool_calls": list(entries)}


def tool(call_id: Any, content: Any, **more: Any) -> Body:
    return kept(role="tool", tool_call_id=call_id, content=content, **more)


def function(name: str = "read_file", **more: Any) -> Body:
    """A declaration."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {
        "type": "function",
        "function": {"name": name, "description": f"The tool {name}.", "parameters": schema, **more},
    }


def chat(*messages: Body, model: str | None = "gpt-4.1", tools: Any = GONE, **more: Any) -> Body:
    body: Body = {"model": model} if model else {}
    return {**body, "messages": list(messages), **kept(tools=[function()] if tools is GONE else tools), **more}


def kimi(*messages: Body, model: str | None = "kimi-k2-0905-preview", tools: Any = GONE, **more: Any) -> Body:
    return chat(*messages, model=model, tools=tools, **more)


# ---------------------------------------------------------------------------------------------- Anthropic Messages


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def use(call_id: Any, name: str = "read_file", value: Any = None, **more: Any) -> Body:
    return {**kept(type="tool_use", id=call_id, name=name), "input": {} if value is None else value, **more}


def result(call_id: Any, content: Any = GONE, **more: Any) -> Body:
    return kept(type="tool_result", tool_use_id=call_id, content=content, **more)


def thinking(thought: str, signature: Any = "RXFRQkNnSVlBaElN") -> Body:
    return kept(type="thinking", thinking=thought, signature=signature)


def asks(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def answers(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def declared(name: str = "read_file", **more: Any) -> Body:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"name": name, "description": f"The tool {name}.", "input_schema": schema, **more}


def anthropic(*messages: Body, model: str | None = "claude-sonnet-4-5", tools: Any = GONE, **more: Any) -> Body:
    body: Body = {"model": model} if model else {}
    return {
        **body,
        "max_tokens": 1024,
        "messages": list(messages),
        **kept(tools=[declared()] if tools is GONE else tools),
        **more,
    }


ENABLED = {"type": "enabled", "budget_tokens": 2048}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
