"""A row of the table of conversations, and the functions that its bodies are built with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.bodies import Body
from tests.bodies.bedrock import blocks

GONE: Any = object()  # leave this key out


class Case(NamedTuple):
    """One conversation. `models` has the target model where the case needs one; other targets use their default."""

    name: str
    source: str
    about: str
    body: Body
    models: Mapping[str, str] = {}


def kept(**entry: Any) -> Body:
    return {key: value for key, value in entry.items() if value is not GONE}


def without_tools(body: Body) -> Body:
    """The same request without its tools."""
    return {key: value for key, value in body.items() if key != "tools"}


# ------------------------------------------------------------------------------------------------ Chat Completions


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


def use(call_id: Any, name: str = "read_file", value: Any = None, **more: Any) -> Body:
    return {**kept(type="tool_use", id=call_id, name=name), "input": {} if value is None else value, **more}


def result(call_id: Any, content: Any = GONE, **more: Any) -> Body:
    return kept(type="tool_result", tool_use_id=call_id, content=content, **more)


def thinking(thought: str, signature: Any = "RXFRQkNnSVlBaElN") -> Body:
    return kept(type="thinking", thinking=thought, signature=signature)


def anthropic_tool(name: str = "read_file", **more: Any) -> Body:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"name": name, "description": f"The tool {name}.", "input_schema": schema, **more}


def anthropic(*messages: Body, model: str | None = "claude-sonnet-4-5", tools: Any = GONE, **more: Any) -> Body:
    body: Body = {"model": model} if model else {}
    return {
        **body,
        "max_tokens": 1024,
        "messages": list(messages),
        **kept(tools=[anthropic_tool()] if tools is GONE else tools),
        **more,
    }


# ------------------------------------------------------------------------------------------------ OpenAI Responses


def item(role: str, content: Any, **more: Any) -> Body:
    """A message; a string content stays a string."""
    return {"role": role, "content": content, **more}


def output_text(message_text: str, item_id: Any = GONE, **more: Any) -> Body:
    """An assistant message as the API returns it."""
    part = {"type": "output_text", "text": message_text, "annotations": []}
    return kept(type="message", id=item_id, role="assistant", status="completed", content=[part], **more)


def function_call(call_id: Any, name: str = "read_file", arguments: Any = None, **more: Any) -> Body:
    """Arguments that are no string are written as JSON."""
    message_text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return kept(type="function_call", call_id=call_id, name=name, arguments=message_text, **more)


def output(call_id: Any, content: Any, kind: str = "function_call_output", **more: Any) -> Body:
    return kept(type=kind, call_id=call_id, output=content, **more)


def custom_call(call_id: Any, name: str, message_text: str, **more: Any) -> Body:
    return kept(type="custom_tool_call", call_id=call_id, name=name, input=message_text, **more)


def reasoning(item_id: str, sealed: Any = "gAAAAABo8sealed", summary: str | None = None, **more: Any) -> Body:
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    return kept(type="reasoning", id=item_id, summary=parts, encrypted_content=sealed, **more)


def flat_function(name: str = "read_file", **more: Any) -> Body:
    """A declaration, which Responses has without the inner object."""
    return {"type": "function", **function(name)["function"], **more}


def responses(*items: Any, model: str | None = "gpt-5.1", tools: Any = GONE, **more: Any) -> Body:
    """`items` is the input; one string is a string input."""
    given = items[0] if len(items) == 1 and isinstance(items[0], str) else list(items)
    body: Body = {"model": model} if model else {}
    return {**body, "input": given, **kept(tools=[flat_function()] if tools is GONE else tools), **more}


# ---------------------------------------------------------------------------------------------------------- Gemini


def part_call(name: str = "read_file", args: Any = GONE, call_id: Any = GONE, **more: Any) -> Body:
    """A functionCall part; `more` stands beside it, as a thoughtSignature does."""
    return {"functionCall": kept(id=call_id, name=name, args=args), **more}


def part_result(name: str, response: Any, call_id: Any = GONE, **inside: Any) -> Body:
    """A functionResponse part; a string is wrapped as `output`."""
    value = {"output": response} if isinstance(response, str) else response
    return {"functionResponse": kept(id=call_id, name=name, response=value, **inside)}


def part_text(content: str, **more: Any) -> Body:
    """A text part."""
    return {"text": content, **more}


def gemini_tools(*names: str) -> list[Body]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return [
        {
            "functionDeclarations": [
                {"name": name, "description": f"The tool {name}.", "parametersJsonSchema": schema} for name in names
            ]
        }
    ]


def gemini(*contents: Body, tools: Any = GONE, **more: Any) -> Body:
    return {"contents": list(contents), **kept(tools=gemini_tools("read_file") if tools is GONE else tools), **more}


# --------------------------------------------------------------------------------------------------------- Bedrock


def tool_use(call_id: Any, name: str = "read_file", value: Any = None, **more: Any) -> Body:
    return {"toolUse": {**kept(toolUseId=call_id, name=name), "input": {} if value is None else value, **more}}


def tool_result(call_id: Any, *content: Any, **more: Any) -> Body:
    """Strings are text blocks."""
    return {"toolResult": kept(toolUseId=call_id, content=blocks(*content), **more)}


def thought(message_text: str, signature: Any = "RXFRQkNnSVlBaElN") -> Body:
    return {"reasoningContent": {"reasoningText": kept(text=message_text, signature=signature)}}


def tool_spec(name: str = "read_file", **more: Any) -> Body:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"toolSpec": {"name": name, "description": f"The tool {name}.", "inputSchema": {"json": schema}, **more}}


def bedrock(*messages: Body, model: Any = GONE, tools: Any = GONE, **more: Any) -> Body:
    """Without `model` the body has none, as sent over HTTP."""
    config = {"tools": [tool_spec()]} if tools is GONE else tools
    return {**kept(modelId=model), "messages": list(messages), **({"toolConfig": config} if config else {}), **more}


# ------------------------------------------------------------------------------------- Mistral, DeepSeek and Qwen


def named_tool_result(call_id: Any, content: Any, name: str = "read_file") -> Body:
    """A result with its tool's name, as Mistral's client sends it."""
    return kept(role="tool", tool_call_id=call_id, name=name, content=content)


def mistral(*messages: Body, model: str | None = "mistral-medium-latest", tools: Any = GONE, **more: Any) -> Body:
    return chat(*messages, model=model, tools=tools, **more)


def deepseek(*messages: Body, model: str | None = "deepseek-chat", tools: Any = GONE, **more: Any) -> Body:
    return chat(*messages, model=model, tools=tools, **more)


def qwen(*messages: Body, model: str | None = "qwen3-coder-plus", tools: Any = GONE, **more: Any) -> Body:
    return chat(*messages, model=model, tools=tools, **more)


ENABLED = {"type": "enabled", "budget_tokens": 2048}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
