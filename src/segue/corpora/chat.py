"""Chat rows: `{"messages": […], "tools": […]}`.

`openai` is the form of OpenAI's fine-tuning files: arguments are text, and there is no place for reasoning. `template`
is the form that chat templates take: arguments are objects, and replies have `reasoning_content`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from segue.canonical.blocks import Media, Text
from segue.canonical.json import parse_json
from segue.canonical.request import Tool
from segue.corpora.rows import Parsed, Row, make_call, mark, row_from_chat
from segue.corpora.turns import Turn, Turns, arguments_object, arguments_text, make_target, media_url
from segue.errors import InputError
from segue.sessions.values import object_of

_MEDIA = ("image", "audio", "document")
OPENAI = make_target("openai", user=_MEDIA, assistant=("image",), reasoning_replay="none")
"""Results are text: their images follow in a message of the user."""
TEMPLATE = make_target("template", user=_MEDIA, results=_MEDIA, assistant=("image",))


def is_row(value: Mapping[str, Any]) -> bool:
    """Return whether a line is a chat row, and not a request body, which names a model."""
    messages = value.get("messages")
    if isinstance(messages, str):
        return messages.lstrip().startswith("[{")
    items = cast("list[Any]", messages) if isinstance(messages, list) else []
    if not items or "model" in value or not all(isinstance(object_of(item).get("role"), str) for item in items):
        return False
    roles = {item["role"] for item in items}
    has_chat_calls = any("tool_calls" in item or item["role"] == "tool" for item in items)
    return roles <= {"system", "developer", "user", "assistant", "tool", "function"} and (
        has_chat_calls or all(_has_chat_content(item.get("content")) for item in items)
    )


def _has_chat_content(content: object) -> bool:
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return all(object_of(part).get("type") in ("text", "image_url", "input_audio", "file", "refusal") for part in parts)


def is_template_row(value: Mapping[str, Any]) -> bool:
    """Return whether a chat row has arguments as objects, or reasoning."""
    if not is_row(value) or isinstance(value.get("messages"), str):
        return False
    return any(
        "reasoning_content" in message
        or any(isinstance(object_of(call.get("function")).get("arguments"), dict) for call in _calls_of(message))
        for message in value["messages"]
    )


def _calls_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    return [object_of(call) for call in cast("list[Any]", calls)] if isinstance(calls, list) else []


def parse(value: Mapping[str, Any]) -> Parsed:
    """Parse a chat row. Messages and tools may be text with JSON; a message may have a weight."""
    messages = _list_of(value, "messages")
    marked = [mark(message, at, weight=_weight_of(message)) for at, message in enumerate(messages, 1)]
    for message in marked:
        message.pop("weight", None)
    row = row_from_chat(marked, _list_of(value, "tools"))
    return Parsed((row,), len(messages))


def _weight_of(message: Mapping[str, Any]) -> int | None:
    weight = message.get("weight")
    return weight if isinstance(weight, int) else None


def _list_of(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = value.get(key)
    if isinstance(found, str) and found:
        found = parse_json(found)[0]
    if found in (None, ""):
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast("list[Any]", found)):
        raise InputError("a list of objects was expected", path=key)
    return cast("list[dict[str, Any]]", found)


def render_openai(_row: Row, turns: Turns, _number: str) -> dict[str, Any]:
    return _render(turns, as_text=True)


def render_template(_row: Row, turns: Turns, _number: str) -> dict[str, Any]:
    return _render(turns, as_text=False)


def _render(turns: Turns, *, as_text: bool) -> dict[str, Any]:
    messages = [render_message(turn, as_text=as_text) for turn in turns.turns]
    tools = render_tools(turns.tools)
    return {"messages": messages, **({"tools": tools} if tools else {})}


def render_message(turn: Turn, *, as_text: bool) -> dict[str, Any]:
    """Return a turn as a Chat message; `as_text`: arguments are text, and there is no reasoning."""
    content = render_content(turn.blocks)
    match turn.role:
        case "assistant":
            message: dict[str, Any] = {"role": "assistant", "content": content}
            if turn.reasoning and not as_text:
                message["reasoning_content"] = turn.reasoning
            if turn.calls:
                arguments = arguments_text if as_text else arguments_object
                message["tool_calls"] = [make_call(call.id, call.name, arguments(call)) for call in turn.calls]
            return {**message, "weight": turn.weight} if turn.weight is not None else message
        case "tool":
            assert turn.result is not None
            name = {"name": turn.result.name} if turn.result.name else {}
            return {"role": "tool", "tool_call_id": turn.result.call_id, **name, "content": content}
        case _:
            return {"role": turn.role, "content": content}


def render_content(blocks: Sequence[Text | Media]) -> str | list[dict[str, Any]]:
    """Return content: text, or parts if there are media."""
    if not any(isinstance(block, Media) for block in blocks):
        return Turn("user", tuple(blocks)).text
    return [_render_part(block) for block in blocks]


def _render_part(block: Text | Media) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Media(kind="audio", data=str() as data):
            form = (block.mime or "audio/wav").rpartition("/")[2]
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
        case Media(kind="image"):
            return {"type": "image_url", "image_url": {"url": media_url(block)}}
        case Media():
            return {"type": "file", "file": {"filename": block.name or "file", "file_data": media_url(block)}}


def render_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return declarations in the form of Chat; the input of a free-text tool is one string."""
    text_input = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": text_input
                if tool.kind == "custom"
                else dict(tool.parameters or {"type": "object", "properties": {}}),
            },
        }
        for tool in tools
    ]
