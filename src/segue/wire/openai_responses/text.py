"""Assistant messages and reasoning items ⇄ `Text` and `Thinking`.

A message with several parts becomes as many blocks, each with the item reduced to that part as its fragment; same-API,
neighbours that were one item are joined again.
"""

from __future__ import annotations

from typing import cast

import msgspec

from segue.canonical.blocks import Block, Native, Origin, Text, Thinking
from segue.canonical.ids import raw_id_or_none
from segue.errors import InputError
from segue.wire.json_values import JsonObject, json_type_name, object_or_none, string_or_none
from segue.wire.merge import replace_modelled_fields
from segue.wire.openai_responses.context import ParseContext, ResponsesContext
from segue.wire.openai_responses.parts import parse_parts
from segue.wire.openai_responses.required_fields import has_valid_status

__all__ = [
    "MESSAGE_KEYS",
    "assistant_message",
    "is_valid_message",
    "join_parts",
    "parse_assistant_message",
    "parse_reasoning",
    "render_reasoning",
    "render_text",
]

_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})
MESSAGE_KEYS = frozenset({"type", "id", "role", "content", "status", *_CHAT_KEYS})


# ------------------------------------------------------------------------------------------------------------------ in


def parse_assistant_message(item: JsonObject, context: ParseContext) -> list[Block]:
    """One block for each part, each with the item reduced to that part as its fragment."""
    if item.get("tool_calls"):
        # OAI-RESP-14
        raise InputError("`tool_calls` belongs to Chat Completions; use `function_call` items", path="tool_calls")
    content, is_valid = item.get("content"), is_valid_message(item)
    if isinstance(content, str):
        return [Text(content, native=context.native(item, is_valid))]
    if content is None:
        return [Text("", native=context.native(item, intact=False))]
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {json_type_name(content)}", path="content")
    parts = parse_parts(cast("list[object]", content), "output", "content", context.dialect)
    if not parts:
        return [Text("", native=context.native(item, is_valid))]
    # One invalid part makes the whole item not intact.
    intact = is_valid and all(part.native is not None and part.native.intact for part in parts)
    blocks: list[Block] = []
    for index, (part, block) in enumerate(zip(cast("list[object]", content), parts, strict=True)):
        if len(parts) == 1:
            native, position = context.native(item, intact), None
        else:
            native, position = context.native({**item, "content": [part]}, intact), {"part": [index, len(parts)]}
        blocks.append(msgspec.structs.replace(block, native=native, extra=position))
    return blocks


def is_valid_message(item: JsonObject) -> bool:
    # OAI-RESP-14: Chat Completions keys are rejected with any value.
    return has_valid_status("message", item) and _CHAT_KEYS.isdisjoint(item)


def parse_reasoning(item: JsonObject, context: ParseContext) -> Thinking:
    """Parse reasoning. Its item id becomes the signature if the provider may have stored the item."""
    texts = [
        text
        for key in ("summary", "content")
        for part in (cast("list[object]", item[key]) if isinstance(item.get(key), list) else [])
        if (text := string_or_none((object_or_none(part) or {}).get("text")))
    ]
    item_id = raw_id_or_none(item.get("id"))
    encrypted = string_or_none(item.get("encrypted_content")) or None
    # OAI-RESP-10: reasoning in plain text is not looked up in the store.
    stored = context.stored or (isinstance(item.get("content"), list) and bool(item["content"]))
    is_stored = item_id is not None and stored and context.dialect.is_valid_id("reasoning", item_id)
    return Thinking(
        "\n\n".join(texts),
        signature=item_id if is_stored else None,
        encrypted=encrypted,
        origin=Origin(
            context.dialect.provider, context.model, item_id=item_id, identity="natural" if item_id else "absent"
        ),
        native=context.native(
            item, isinstance(item.get("summary"), list) and _is_text_or_none(item, "encrypted_content")
        ),
    )


def _is_text_or_none(item: JsonObject, key: str) -> bool:
    return item.get(key) is None or isinstance(item[key], str)


# ----------------------------------------------------------------------------------------------------------------- out


def assistant_message(text: str) -> JsonObject:
    # The only form of assistant text that needs no id.
    return {"role": "assistant", "content": text}


def render_text(block: Text, own_native: Native | None, context: ResponsesContext) -> JsonObject:
    if block.refusal:
        context.report.add("text", "refusal rendered as assistant text", subject="refusal")
    return (
        assistant_message(block.text)
        if own_native is None
        else replace_modelled_fields(own_native.fragment, assistant_message(block.text), MESSAGE_KEYS)
    )


def render_reasoning(block: Thinking, own_native: Native | None) -> JsonObject:
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    if own_native is not None:
        fragment = {
            key: value for key, value in own_native.fragment.items() if key != "encrypted_content" or block.encrypted
        }
        return {
            **fragment,
            "summary": own_native.fragment["summary"] if isinstance(fragment.get("summary"), list) else summary,
        }
    rendered: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": block.encrypted}
    return rendered if block.origin.item_id is None else {"id": block.origin.item_id, **rendered}


def _part_position(block: Block, context: ResponsesContext) -> tuple[int, int] | None:
    """The index of this part in its item, and the number of parts."""
    own_native = context.own_native(block.native)
    match block.extra:
        case {"part": [int(index), int(count)]} if own_native is not None and own_native.intact:
            return index, count
        case _:
            return None


def join_parts(item: JsonObject, previous: Block, block: Block, context: ResponsesContext) -> JsonObject | None:
    """The item with the part of `block` appended if both blocks were parts of it, else None."""
    previous_position, position = _part_position(previous, context), _part_position(block, context)
    if (
        previous_position is None
        or position is None
        or position != (previous_position[0] + 1, previous_position[1])
        or block.native is None
    ):
        return None
    fragment = block.native.fragment
    return {**item, "content": [*item["content"], *fragment["content"]]}
