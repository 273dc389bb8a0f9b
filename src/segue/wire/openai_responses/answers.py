"""The model's words and its reasoning ⇄ `Text` and `Thinking`.

A message with several parts becomes as many blocks, each with the item holding that part alone; at home neighbours that
were one item are joined again.
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


def parse_answer(item: JsonObject, reading: Reading) -> list[Block]:
    """The model's words: one block for each part, each with the item as if it held no other."""
    if item.get("tool_calls"):
        # OAI-RESP-14
        raise InputError("`tool_calls` are of the Chat API; a call is an item of its own here", path="tool_calls")
    content, lawful = item.get("content"), is_lawful_message(item)
    if isinstance(content, str):
        return [Text(content, native=reading.native(item, lawful))]
    if content is None:
        return [Text("", native=reading.native(item, intact=False))]
    if not isinstance(content, list):
        raise InputError(f"a string or a list of parts was expected, not {kind_of(content)}", path="content")
    parts = parse_parts(cast("list[object]", content), "output", "content", reading.dialect)
    if not parts:
        return [Text("", native=reading.native(item, lawful))]
    # One part that can't stay takes the id from all.
    intact = lawful and all(part.native is not None and part.native.intact for part in parts)
    blocks: list[Block] = []
    for index, (part, block) in enumerate(zip(cast("list[object]", content), parts, strict=True)):
        if len(parts) == 1:
            native, place = reading.native(item, intact), None
        else:
            native, place = reading.native({**item, "content": [part]}, intact), {"part": [index, len(parts)]}
        blocks.append(msgspec.structs.replace(block, native=native, extra=place))
    return blocks


def is_lawful_message(item: JsonObject) -> bool:
    # OAI-RESP-14: keys of the Chat API are refused, whatever they hold.
    return has_lawful_status("message", item) and _CHAT_KEYS.isdisjoint(item)


def parse_reasoning(item: JsonObject, reading: Reading) -> Thinking:
    """`sealed` is the encrypted content; the item's id is the signature where the provider stores what it names."""
    texts = [
        text
        for key in ("summary", "content")
        for part in (cast("list[object]", item[key]) if isinstance(item.get(key), list) else [])
        if (text := string_or_none((object_or_none(part) or {}).get("text")))
    ]
    item_id = raw_id_or_none(item.get("id"))
    sealed = string_or_none(item.get("encrypted_content")) or None
    # OAI-RESP-10: what is there in plain text needs no looking up.
    stored = reading.stored or (isinstance(item.get("content"), list) and bool(item["content"]))
    known = item_id is not None and stored and reading.dialect.lawful_id("reasoning", item_id)
    return Thinking(
        "\n\n".join(texts),
        signature=item_id if known else None,
        sealed=sealed,
        origin=Origin(
            reading.dialect.provider, reading.model, item_id=item_id, identity="natural" if item_id else "absent"
        ),
        native=reading.native(
            item, isinstance(item.get("summary"), list) and _is_text_or_none(item, "encrypted_content")
        ),
    )


def _is_text_or_none(item: JsonObject, key: str) -> bool:
    return item.get(key) is None or isinstance(item[key], str)


# ----------------------------------------------------------------------------------------------------------------- out


def said(text: str) -> JsonObject:
    # The one form of the model's words that needs no id.
    return {"role": "assistant", "content": text}


def render_text(block: Text, home: Native | None, out: Spelling) -> JsonObject:
    if block.refusal:
        out.report.add("text", "a refusal is told as the model's words", subject="refusal")
    return said(block.text) if home is None else rewritten(home.fragment, said(block.text), MESSAGE_KEYS)


def render_reasoning(block: Thinking, home: Native | None) -> JsonObject:
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    if home is not None:
        rest = {key: value for key, value in home.fragment.items() if key != "encrypted_content" or block.sealed}
        return {**rest, "summary": home.fragment["summary"] if isinstance(rest.get("summary"), list) else summary}
    anew: JsonObject = {"type": "reasoning", "summary": summary, "encrypted_content": block.sealed}
    return anew if block.origin.item_id is None else {"id": block.origin.item_id, **anew}


def _place(block: Block, out: Spelling) -> tuple[int, int] | None:
    """Which part of how many this is of its item."""
    home = out.home(block.native)
    match block.extra:
        case {"part": [int(index), int(count)]} if home is not None and home.intact:
            return index, count
        case _:
            return None


def joined(item: JsonObject, before: Block, block: Block, out: Spelling) -> JsonObject | None:
    """The item with one part more, where both blocks were parts of it."""
    last, place = _place(before, out), _place(block, out)
    if last is None or place is None or place != (last[0] + 1, last[1]) or block.native is None:
        return None
    fragment = block.native.fragment
    return {**item, "content": [*item["content"], *fragment["content"]]}
