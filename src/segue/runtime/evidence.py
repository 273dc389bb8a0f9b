"""Evidence of an incomplete reply: the reply as it is recorded, with only the head and the tail of what is long."""

from __future__ import annotations

from typing import Any

import msgspec

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.json import encode_json, encode_json_text
from segue.canonical.request import Reply

_MAX_BYTES = 1 << 18
# Characters of a text, and blocks of a reply, that are kept at each end.
_KEPT_TEXT = 1 << 13
_KEPT_BLOCKS = 8


def shorten_evidence(reply: Reply) -> Reply:
    """Return the reply, or the head and the tail of each text and of the blocks if it takes more than 256 kB."""
    if len(encode_json(reply)) <= _MAX_BYTES:
        return reply
    blocks = reply.blocks
    if len(blocks) > 2 * _KEPT_BLOCKS:
        omitted = Text(f"[{len(blocks) - 2 * _KEPT_BLOCKS} blocks omitted]")
        blocks = (*blocks[:_KEPT_BLOCKS], omitted, *blocks[-_KEPT_BLOCKS:])
    return msgspec.structs.replace(reply, blocks=tuple(map(_shorten_block, blocks)), native=None, extra=None)


def _shorten_block(block: Block) -> Block:
    match block:
        case Text():
            return Text(_shorten(block.text), block.refusal)
        case Thinking():
            return Thinking(_shorten(block.text), origin=block.origin)
        case ToolCall():
            text = encode_json_text(block.arguments) if block.arguments_text is None else block.arguments_text
            shortened = _shorten(text)
            kept: dict[str, Any] = {} if shortened == text else {"arguments": None, "arguments_text": shortened}
            return msgspec.structs.replace(block, native=None, **kept)
        case _:
            size = len(encode_json(block))
            return block if size <= 2 * _KEPT_TEXT else Text(f"[{type(block).__name__} of {size} bytes omitted]")


def _shorten(text: str) -> str:
    if len(text) <= 2 * _KEPT_TEXT:
        return text
    omitted = len(text) - 2 * _KEPT_TEXT
    return f"{text[:_KEPT_TEXT]}[{omitted} characters omitted]{text[-_KEPT_TEXT:]}"
