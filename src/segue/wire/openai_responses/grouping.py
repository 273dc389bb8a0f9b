"""Groups consecutive model items into one reply.

The provider checks that each reasoning item is followed by the items that the model made after it. So if an item id or
the reasoning of a reply is invalid, the reply is sent without item ids and reasoning: its blocks are not intact.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from segue.canonical.blocks import Block, Message, Native, Opaque, Thinking, ToolCall, ToolResponse
from segue.wire.openai_responses.call_types import CALL_TYPES
from segue.wire.openai_responses.context import ParseContext

__all__ = ["ReplyGroup", "is_reference", "strip_ids_and_reasoning"]


class ReplyGroup:
    """The items of one reply. One invalid item id invalidates those of all others."""

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._blocks: list[Block] = []
        self._valid_ids = True

    def add(self, blocks: Iterable[Block], valid_id: bool) -> None:
        new_blocks = list(blocks)
        self._blocks += new_blocks
        has_unsigned_reasoning = any(
            isinstance(block, Thinking) and not (block.signature or block.encrypted) for block in new_blocks
        )
        self._valid_ids = self._valid_ids and valid_id and not has_unsigned_reasoning

    def has_reasoning(self, item_id: str) -> bool:
        """Whether the reply has the reasoning item with this id."""
        return any(isinstance(block, Thinking) and block.origin.item_id == item_id for block in self._blocks)

    def close(self) -> list[Message]:
        if not self._blocks:
            return []
        blocks = self._blocks if self._valid_ids else [strip_ids_and_reasoning(block) for block in self._blocks]
        blocks = _drop_trailing_references(blocks)
        message = Message("ai", tuple(blocks), native=self._context.native({}))
        self._blocks, self._valid_ids = [], True
        return [message]


def _drop_trailing_references(blocks: list[Block]) -> list[Block]:
    """OAI-RESP-07: a reference to reasoning must not be the last item of a reply."""
    end = len(blocks)
    while end and is_reference(block := blocks[end - 1]):
        if block.native is not None and block.native.intact and not str(block.native.fragment["id"]).startswith("rs"):
            break
        end -= 1
    return [*blocks[:end], *(_mark_not_intact(block) for block in blocks[end:])]


def is_reference(block: Block) -> bool:
    return isinstance(block, Opaque) and block.kind == "item_reference"


def _mark_not_intact(block: Block) -> Block:
    if block.native is None:
        return block
    return msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))


def strip_ids_and_reasoning(block: Block) -> Block:
    """OAI-RESP-07, OAI-RESP-08: the block without item id and reasoning content, which are only valid together."""
    if isinstance(block, Thinking):
        return msgspec.structs.replace(block, signature=None, encrypted=None)
    if block.native is None or (isinstance(block, ToolCall) and block.kind == "hosted"):
        return block
    if isinstance(block, Opaque) or (isinstance(block, ToolResponse) and block.hosted):
        return block
    if isinstance(block, ToolCall) and block.native.intact and block.native.fragment.get("type") in CALL_TYPES:
        # Its output has the matching type, so the type is kept; only the id is removed.
        without_id = {key: value for key, value in block.native.fragment.items() if key != "id"}
        return msgspec.structs.replace(block, native=Native(block.native.api, without_id))
    return _mark_not_intact(block)
