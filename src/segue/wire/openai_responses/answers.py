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
from segue.wire.fields import JsonObject, kind_of, object_or_none, string_or_none
from segue.wire.openai_responses.parts import parse_parts
from segue.wire.openai_responses.shapes import has_lawful_status
from segue.wire.openai_responses.shared import Reading, Spelling
from segue.wire.overlay import rewritten

__all__ = [
    "MESSAGE_KEYS",
    "is_lawful_message",
    "joined",
    "parse_answer",
    "parse_reasoning",
    "render_reasoning",
    "render_text",
    "said",
]

_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call"})
MESSAGE_KEYS = frozenset({"type", "id", "role", "content", "status", *_CHAT_KEYS})


# ------------------------------------------------------------------------------------------------------------------ in


def parse_answer(item: JsonObject, context: Reading) -> list[Block]:
    """One block for each part, each with the item reduced to that part as its fragment."""
    if item.get("tool_calls"):
        # OAI-RESP-14
        raise InputError("`tool_calls` belongs to Chat Completions; use `function_call` items", path="tool_calls")
    content, lawful = item.get("content"), is_lawful_message(item)
    if isinstance(content, str):
        return [Text(content, native=context.native(item, lawful))]
    if content is None:
        return [Text("", native=context.native(item, intact=False))]
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {kind_of(content)}", path="content")
    parts = parse_parts(cast("list[object]", content), "output", "content", context.dialect)
    if not parts:
        return [Text("", native=context.native(item, lawful))]
    # One invalid part makes the whole item not intact.
    intact = lawful and all(part.native is not None and part.native.intact for part in parts)
    blocks: list[Block] = []
    for index, (part, block) in enumerate(zip(cast("list[object]", content), parts, strict=True)):
        if len(parts) == 1:
            native, place = context.native(item, intact), None
        else:
            native, place = context.native({**item, "content": [part]}, intact), {"part": [index, len(parts)]}
        blocks.append(msgspec.structs.replace(block, native=native, extra=place))
    return blocks


def is_lawful_message(item: JsonObject) -> bool:
    # OAI-RESP-14: Chat Completions keys are rejected with any value.
    return has_lawful_status("message", item) and _CHAT_KEYS.isdisjoint(item)


def parse_reasoning(item: JsonObject, context: Reading) -> Thinking:
    """The encrypted content is kept; the item id is the signature if the provider has stored the item."""
    texts = [
        text
        for key in ("summary", "content")
        for part in (cast("list[object]", item[key]) if isinstance(item.get(key), list) else [])
        if (text := string_or_none((object_or_none(part) or {}).get("text")))
    ]
    item_id = raw_id_or_none(item.get("id"))
    sealed = string_or_none(item.get("encrypted_content")) or None
    # OAI-RESP-10: reasoning in plain text is not looked up in the store.
    stored = context.stored or (isinstance(item.get("content"), list) and bool(item["content"]))
    known = item_id is not None and stored and context.dialect.lawful_id("reasoning", item_id)
    return Thinking(
        "\n\n".join(texts),
        signature=item_id if known else None,
        sealed=sealed,
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


def said(text: str) -> JsonObject:
    # The only form of assistant text that needs no id.
    return {"role": "assistant", "content": text}


def render_text(block: Text, home: Native | None, context: Spelling) -> JsonObject:
    if block.refusal:
        context.report.add("text", "refusal rendered as assistant text", subject="refusal")
    return said(block.text) if home is None else rewritten(home.fragment, said(block.text), MESSAGE_KEYS)


def render_reasoning(block: Thinking, home: Native | None) -> JsonObject:
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    if home is not None:
        rest = {key: value for key, value in home.fragment.items() if key != "encrypted_content" or block.sealed}
        return {**rest, "summary": home.fragment["summary"] if isinstance(rest.get("summary"), list) else summary}
    rendered: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": block.sealed}
    return rendered if block.origin.item_id is None else {"id": block.origin.item_id, **rendered}


def _place(block: Block, context: Spelling) -> tuple[int, int] | None:
    """The index of this part in its item, and the number of parts."""
    home = context.home(block.native)
    match block.extra:
        case {"part": [int(index), int(count)]} if home is not None and home.intact:
            return index, count
        case _:
            return None


def joined(item: JsonObject, before: Block, block: Block, context: Spelling) -> JsonObject | None:
    """The item with the part of `block` appended if both blocks were parts of it, else None."""
    last, place = _place(before, context), _place(block, context)
    if last is None or place is None or place != (last[0] + 1, last[1]) or block.native is None:
        return None
    fragment = block.native.fragment
    return {**item, "content": [*item["content"], *fragment["content"]]}
