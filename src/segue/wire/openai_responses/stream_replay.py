"""Replays complete items as a stream: the empty item, then the events with its content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from segue.canonical.blocks import Block, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.openai_responses.calls import FUNCTION_TYPES, project_call_item
from segue.wire.openai_responses.context import ResponsesContext
from segue.wire.openai_responses.hosted_types import HOSTED_TYPES, is_embedded
from segue.wire.openai_responses.items import item_type_or_none
from segue.wire.openai_responses.reply import render_item

__all__ = [
    "CONTENT_EVENTS",
    "INPUT_EVENTS",
    "SUMMARY_EVENTS",
    "clear_content",
    "is_complete_item",
    "render_block_items",
    "replay_events",
]

ReplayEvent: TypeAlias = tuple[str, JsonObject]
"""The name of an event, and its fields apart from the item."""

INPUT_EVENTS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
"""Event name and key of the text of a call."""

# Event names of a part and its text, the list key, the index key, and the part type.
SUMMARY_EVENTS = ("reasoning_summary_part", "reasoning_summary_text", "summary", "summary_index", "summary_text")
CONTENT_EVENTS = ("content_part", "reasoning_text", "content", "content_index", "reasoning_text")
_TEXT_EVENTS = ("content_part", "output_text", "content", "content_index", "output_text")

_STREAMED_TYPES = ("message", "reasoning", *FUNCTION_TYPES)


def is_complete_item(item: Mapping[str, Any]) -> bool:
    """Whether an item has its content already, or is of a type that is not streamed."""
    kind = item_type_or_none(cast("JsonObject", item)) or "message"
    if kind in INPUT_EVENTS:
        return bool(item.get(INPUT_EVENTS[kind][1]))
    if kind not in ("message", "reasoning"):
        return True
    lists = [item.get(key) for key in ("content", "summary")]
    parts = [part for entries in lists if isinstance(entries, list) for part in cast("list[object]", entries)]
    return any((object_or_none(part) or {}).get(key) for part in parts for key in ("text", "refusal"))


def render_block_items(block: Block, suffix: str, context: ResponsesContext) -> list[JsonObject]:
    """The items of a block; same-API the original one, with projected call id and name."""
    native = context.own_native(block.native)
    if native is None or item_type_or_none(cast("JsonObject", native.fragment)) is None:
        state = "incomplete" if isinstance(block, ToolCall) and block.broken else "completed"
        return render_item(block, suffix, state, context)
    item = cast("JsonObject", native.fragment)
    if isinstance(block, ToolResponse):
        embedded = is_embedded(block) and not HOSTED_TYPES[item["type"]].output_only
        return [] if embedded else [item]
    if isinstance(block, ToolCall) and block.kind != "hosted":
        return [project_call_item(item, block, context)]
    return [item]


def clear_content(item: JsonObject) -> JsonObject:
    """The item without content, for `output_item.added`."""
    kind = item.get("type", "message")
    if kind not in _STREAMED_TYPES:
        return item
    empty: JsonObject = {key: [] for key in ("content", "summary") if isinstance(item.get(key), list)}
    if kind in FUNCTION_TYPES:
        empty[INPUT_EVENTS[kind][1]] = ""
    if item.get("status") is not None:
        empty["status"] = "in_progress"
    return {**item, **empty}


def replay_events(item: JsonObject) -> Iterator[ReplayEvent]:
    """The events between `output_item.added` and `output_item.done`."""
    match item.get("type", "message"):
        case "message":
            yield from _replay_parts(item, *_TEXT_EVENTS)
        case "reasoning":
            yield from _replay_parts(item, *SUMMARY_EVENTS)
            yield from _replay_parts(item, *CONTENT_EVENTS)
        case kind if kind in FUNCTION_TYPES:
            name, key = INPUT_EVENTS[kind]
            value = item.get(key)
            text = value if isinstance(value, str) else "" if value is None else encode_json_text(value)
            yield f"{name}.delta", {"delta": text}
            yield f"{name}.done", {key: text}
        case _:
            pass


def _replay_parts(
    item: JsonObject, part: str, text: str, list_key: str, index_key: str, kind: str
) -> Iterator[ReplayEvent]:
    entries = item.get(list_key)
    for number, entry in enumerate(cast("list[object]", entries) if isinstance(entries, list) else []):
        fragment = object_or_none(entry)
        if fragment is None or fragment.get("type") != kind or not isinstance(fragment.get("text"), str):
            continue
        index_field: JsonObject = {index_key: number}
        logprobs: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        yield f"{part}.added", {**index_field, "part": {**fragment, "text": ""}}
        yield f"{text}.delta", {**index_field, "delta": fragment["text"], **logprobs}
        yield f"{text}.done", {**index_field, "text": fragment["text"], **logprobs}
        yield f"{part}.done", {**index_field, "part": fragment}
