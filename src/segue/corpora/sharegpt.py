"""ShareGPT rows: `{"conversations": [{"from", "value"}], "system", "tools"}`, with calls as `function_call`.

Calls and results have no ids: they pair by order. Reasoning is a `<think>` block before the text. Images are `<image>`
in the text, with a list beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.blocks import Media, Text
from segue.canonical.json import encode_json_text, parse_json
from segue.corpora.chat import render_tools
from segue.corpora.rows import Parsed, Row, make_call, mark, row_from_chat
from segue.corpora.turns import Turn, Turns, arguments_object, make_target, media_url
from segue.errors import InputError
from segue.sessions.values import list_of, object_of

SHAREGPT = make_target("sharegpt")
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}
_IMAGE = "<image>"
_THINK, _THOUGHT = "<think>\n", "\n</think>\n\n"


def is_row(value: Mapping[str, Any]) -> bool:
    items = list_of(value.get("conversations"))
    return bool(items) and all({"from", "value"} <= object_of(item).keys() for item in items)


def parse(value: Mapping[str, Any]) -> Parsed:
    """Parse a row whose calls are `function_call`; calls that are text stay text."""
    messages: list[dict[str, Any]] = []
    images = iter(list_of(value.get("images")))
    open_ids: list[str] = []
    if isinstance(value.get("system"), str) and value["system"]:
        messages.append(mark({"role": "system", "content": value["system"]}, 0))
    for at, item in enumerate(map(object_of, list_of(value.get("conversations"))), 1):
        role, text = item.get("from"), item.get("value")
        if not isinstance(text, str):
            raise InputError("a string was expected", path=f"conversations[{at - 1}].value")
        match role:
            case "function_call" | "tool_call":
                calls = _parse_calls(text, at)
                open_ids += [call["id"] for call in calls]
                messages.append(mark({"role": "assistant", "content": None, "tool_calls": calls}, at))
            case "observation" | "tool":
                call_id = open_ids.pop(0) if open_ids else f"unknown_{at}"
                messages.append(mark({"role": "tool", "tool_call_id": call_id, "content": text}, at))
            case str() if role in _ROLES:
                messages.append(mark(_parse_message(_ROLES[role], text, images), at))
            case _:
                raise InputError(f"unknown speaker {role!r}", path=f"conversations[{at - 1}].from")
    tools = value.get("tools")
    declared = parse_json(tools)[0] if isinstance(tools, str) and tools.strip() else tools
    return Parsed((row_from_chat(messages, list_of(declared)),), len(list_of(value["conversations"])))


def _parse_calls(text: str, at: int) -> list[dict[str, Any]]:
    value = parse_json(text)[0]
    found = [object_of(item) for item in (list_of(value) or [value])]
    if not found or not all(isinstance(call.get("name"), str) for call in found):
        raise InputError("calls were expected, with name and arguments", path=f"conversations[{at - 1}].value")
    return [
        make_call(f"call_{at}_{number}", each["name"], each.get("arguments", {})) for number, each in enumerate(found)
    ]


def _parse_message(role: str, text: str, images: Any) -> dict[str, Any]:
    if role == "assistant" and text.startswith(_THINK) and _THOUGHT in text:
        thought, _, text = text.removeprefix(_THINK).partition(_THOUGHT)
        return {"role": role, "content": text, "reasoning_content": thought}
    if role == "user" and _IMAGE in text:
        parts: list[dict[str, Any]] = []
        for number, piece in enumerate(text.split(_IMAGE)):
            if number and (url := next(images, None)) is not None:
                parts.append({"type": "image_url", "image_url": {"url": str(url)}})
            elif number:
                piece = _IMAGE + piece
            if piece.strip("\n"):
                parts.append({"type": "text", "text": piece.strip("\n")})
        return {"role": role, "content": parts}
    return {"role": role, "content": text}


def render(_row: Row, turns: Turns, _number: str) -> dict[str, Any]:
    conversations: list[dict[str, Any]] = []
    images: list[str] = []
    for turn in turns.turns[1 if turns.system else 0 :]:
        weight = {"weight": turn.weight} if turn.weight is not None else {}
        match turn.role:
            case "assistant":
                thought = f"{_THINK}{turn.reasoning}{_THOUGHT}" if turn.reasoning else ""
                if thought or turn.text or not turn.calls:
                    conversations.append({"from": "gpt", "value": thought + turn.text, **weight})
                if turn.calls:
                    calls = [{"name": call.name, "arguments": arguments_object(call)} for call in turn.calls]
                    shown = calls if len(calls) > 1 else calls[0]
                    conversations.append({"from": "function_call", "value": encode_json_text(shown), **weight})
            case "tool":
                conversations.append({"from": "observation", "value": turn.text})
            case "user":
                images += [media_url(block) for block in turn.blocks if isinstance(block, Media)]
                conversations.append({"from": "human", "value": _with_images(turn)})
            case "system":
                conversations.append({"from": "system", "value": turn.text})
    tools = [tool["function"] for tool in render_tools(turns.tools)]
    return {
        "conversations": conversations,
        **({"system": turns.system} if turns.system else {}),
        **({"tools": encode_json_text(tools)} if tools else {}),
        **({"images": images} if images else {}),
    }


def _with_images(turn: Turn) -> str:
    return "\n".join(block.text if isinstance(block, Text) else _IMAGE for block in turn.blocks)
