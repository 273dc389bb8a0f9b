"""Replays complete items as a stream: the empty item, and the events that fill it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from segue.canonical.blocks import Block, ToolCall, ToolResponse
from segue.canonical.jsontext import write_text
from segue.wire.fields import JsonObject, object_or_none
from segue.wire.openai_responses.calls import FUNCTIONS, relabelled
from segue.wire.openai_responses.hosted import HOSTED, is_embedded
from segue.wire.openai_responses.items import item_kind_or_none
from segue.wire.openai_responses.reply import render_item
from segue.wire.openai_responses.shared import Spelling

__all__ = ["CONTENT", "INPUTS", "SUMMARY", "growth", "is_whole", "items_of", "unfinished"]

Said: TypeAlias = tuple[str, JsonObject]
"""The name of an event, and its fields apart from the item."""

INPUTS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
"""Event name and key of the text of a call."""

# Event names of a part and its text, the list key, the index key, and the part type.
SUMMARY = ("reasoning_summary_part", "reasoning_summary_text", "summary", "summary_index", "summary_text")
CONTENT = ("content_part", "reasoning_text", "content", "content_index", "reasoning_text")
_WORDS = ("content_part", "output_text", "content", "content_index", "output_text")

_GROWING = ("message", "reasoning", *FUNCTIONS)


def is_whole(item: Mapping[str, Any]) -> bool:
    """Whether an item has its content already, or is of a type that is not streamed."""
    kind = item_kind_or_none(cast("JsonObject", item)) or "message"
    if kind in INPUTS:
        return bool(item.get(INPUTS[kind][1]))
    if kind not in ("message", "reasoning"):
        return True
    listed = [item.get(key) for key in ("content", "summary")]
    parts = [part for given in listed if isinstance(given, list) for part in cast("list[object]", given)]
    return any((object_or_none(part) or {}).get(key) for part in parts for key in ("text", "refusal"))


def items_of(block: Block, suffix: str, context: Spelling) -> list[JsonObject]:
    """The items of a block; same-API the original one, with projected call id and name."""
    native = context.home(block.native)
    if native is None or item_kind_or_none(cast("JsonObject", native.fragment)) is None:
        state = "incomplete" if isinstance(block, ToolCall) and block.broken else "completed"
        return render_item(block, suffix, state, context)
    item = cast("JsonObject", native.fragment)
    if isinstance(block, ToolResponse):
        embedded = is_embedded(block) and not HOSTED[item["type"]].alone
        return [] if embedded else [item]
    if isinstance(block, ToolCall) and block.kind != "hosted":
        return [relabelled(item, block, context)]
    return [item]


def unfinished(item: JsonObject) -> JsonObject:
    """The item without content, for `output_item.added`."""
    kind = item.get("type", "message")
    if kind not in _GROWING:
        return item
    empty: JsonObject = {key: [] for key in ("content", "summary") if isinstance(item.get(key), list)}
    if kind in FUNCTIONS:
        empty[INPUTS[kind][1]] = ""
    if item.get("status") is not None:
        empty["status"] = "in_progress"
    return {**item, **empty}


def growth(item: JsonObject) -> Iterator[Said]:
    """The events between `output_item.added` and `output_item.done`."""
    match item.get("type", "message"):
        case "message":
            yield from _parts(item, *_WORDS)
        case "reasoning":
            yield from _parts(item, *SUMMARY)
            yield from _parts(item, *CONTENT)
        case kind if kind in FUNCTIONS:
            name, key = INPUTS[kind]
            given = item.get(key)
            text = given if isinstance(given, str) else "" if given is None else write_text(given)
            yield f"{name}.delta", {"delta": text}
            yield f"{name}.done", {key: text}
        case _:
            pass


def _parts(item: JsonObject, part: str, text: str, listed: str, numbered: str, kind: str) -> Iterator[Said]:
    given = item.get(listed)
    for number, entry in enumerate(cast("list[object]", given) if isinstance(given, list) else []):
        one = object_or_none(entry)
        if one is None or one.get("type") != kind or not isinstance(one.get("text"), str):
            continue
        place: JsonObject = {numbered: number}
        beside: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        yield f"{part}.added", {**place, "part": {**one, "text": ""}}
        yield f"{text}.delta", {**place, "delta": one["text"], **beside}
        yield f"{text}.done", {**place, "text": one["text"], **beside}
        yield f"{part}.done", {**place, "part": one}
