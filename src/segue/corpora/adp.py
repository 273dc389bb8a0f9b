"""ADP 1.3 (Agent Data Protocol): actions and observations in one list.

A call and its result have the same `tool_call_id`. System text, tools and what else has no place are in `details`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from segue.canonical.blocks import Media
from segue.canonical.json import encode_json_text, parse_json
from segue.corpora.chat import render_tools
from segue.corpora.rows import MARK, Parsed, Provenance, Row, make_call, mark, row_from_chat
from segue.corpora.turns import Turn, Turns, arguments_object, make_target, media_url
from segue.errors import InputError
from segue.sessions.values import list_of, object_of, string_of

VERSION = "1.3.0"
ADP = make_target("adp")
_CODE = "execute_"
_CLASSES = frozenset(
    {"api_action", "code_action", "message_action", "text_observation", "image_observation", "web_observation"}
)


def is_trajectory(value: Mapping[str, Any]) -> bool:
    items = list_of(value.get("content"))
    return bool(items) and all(str(object_of(item).get("class_")) in _CLASSES for item in items)


def parse(value: Mapping[str, Any]) -> Parsed:
    """Parse a trajectory. Code is a call of `execute_LANGUAGE`."""
    items = [object_of(item) for item in list_of(value.get("content"))]
    details = object_of(value.get("details"))
    messages: list[dict[str, Any]] = []
    if system := string_of(details.get("system")):
        messages.append(mark({"role": "system", "content": system}, 0))
    for at, item in enumerate(items, 1):
        messages += _parse_item(item, at, items[at - 2] if at > 1 else {})
    tools = details.get("tools")
    declared = list_of(parse_json(tools)[0]) if isinstance(tools, str) and tools else list_of(tools)
    row = row_from_chat(_join_calls(messages), declared, Provenance(session=str(value.get("id") or "")))
    return Parsed((row,), len(items))


def _parse_item(item: dict[str, Any], at: int, before: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind, content = item.get("class_"), item.get("content")
    path = f"content[{at - 1}]"
    thought = {"reasoning_content": item["reasoning_content"]} if string_of(item.get("reasoning_content")) else {}
    match kind:
        case "message_action":
            yield mark({"role": "assistant", "content": content, **thought}, at)
        case "api_action" | "code_action":
            name = item.get("function") if kind == "api_action" else f"{_CODE}{item.get('language')}"
            arguments = item.get("kwargs") if kind == "api_action" else {"code": content}
            call = make_call(string_of(item.get("tool_call_id")) or f"call_{at}", name, arguments)
            text = string_of(item.get("description"))
            yield mark({"role": "assistant", "content": text, "tool_calls": [call], **thought}, at)
        case "text_observation" | "image_observation" | "web_observation":
            shown = _parse_observation(item, path)
            call_id = string_of(item.get("tool_call_id")) or _implied_id(before, item, at)
            if call_id is not None:
                yield mark({"role": "tool", "tool_call_id": call_id, "content": shown}, at)
            else:
                is_system = item.get("name") == "system"
                yield mark({"role": "system" if is_system else "user", "content": shown}, at)
        case _:
            raise InputError(f"unknown class {kind!r}", path=path)


def _implied_id(before: Mapping[str, Any], item: Mapping[str, Any], at: int) -> str | None:
    """Return the id of the call directly before, which a result of the environment without an id belongs to."""
    is_call = before.get("class_") in ("api_action", "code_action") and not before.get("tool_call_id")
    return f"call_{at - 1}" if is_call and item.get("source") != "user" else None


def _parse_observation(item: Mapping[str, Any], path: str) -> Any:
    match item.get("class_"):
        case "text_observation":
            if not isinstance(item.get("content"), str):
                raise InputError("a string was expected", path=f"{path}.content")
            return item["content"]
        case "image_observation":
            return [{"type": "image_url", "image_url": {"url": item.get("content")}}]
        case _:
            texts = [string_of(item.get(key)) for key in ("url", "axtree", "html")]
            parts = [{"type": "text", "text": "\n".join(filter(None, texts))}]
            image = string_of(object_of(item.get("image_observation")).get("content"))
            return [*parts, {"type": "image_url", "image_url": {"url": image}}] if image else parts


def _join_calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join calls that follow each other into one reply: they ran in parallel."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        alone = message.get("tool_calls") and not message["content"] and "reasoning_content" not in message
        if alone and last.get("role") == "assistant" and last.get("tool_calls"):
            last["tool_calls"] = [*last["tool_calls"], *message["tool_calls"]]
            last[MARK].setdefault("joined", []).append(message[MARK]["record"])
            continue
        joined.append(message)
    return joined


def render(row: Row, turns: Turns, _number: str) -> dict[str, Any]:
    content = [item for turn in turns.turns[1 if turns.system else 0 :] for item in _render_turn(turn)]
    tools = render_tools(turns.tools)
    details: dict[str, Any] = {
        **({"system": turns.system} if turns.system else {}),
        **({"tools": encode_json_text(tools)} if tools else {}),
    }
    return {"schema_version": VERSION, "id": row.provenance.session, "content": content, "details": details}


def _render_turn(turn: Turn) -> Iterator[dict[str, Any]]:
    match turn.role:
        case "assistant":
            thought = {"reasoning_content": turn.reasoning} if turn.reasoning else {}
            if turn.text or not turn.calls:
                yield {"class_": "message_action", "content": turn.text, **thought}
                thought = {}
            for call in turn.calls:
                action = {"class_": "api_action", "function": call.name, "kwargs": arguments_object(call)}
                yield {**action, "tool_call_id": call.id, **thought}
                thought = {}
        case "tool":
            assert turn.result is not None
            shown = {"class_": "text_observation", "content": turn.text, "source": "environment"}
            yield {**shown, "tool_call_id": turn.result.call_id}
        case _:
            source = "user" if turn.role == "user" else "environment"
            name = {"name": "system"} if turn.role == "system" else {}
            images = [block for block in turn.blocks if isinstance(block, Media)]
            if turn.text or not images:
                yield {"class_": "text_observation", "content": turn.text, "source": source, **name}
            for image in images:
                yield {"class_": "image_observation", "content": media_url(image), "source": source}
