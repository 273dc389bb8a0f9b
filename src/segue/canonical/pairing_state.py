"""`PairingState`: what pairing must know of the messages before a border, so that those after it can be paired alone.

Messages after a border are paired as a body of their own, by the same rules. They get the ids that they have in the
whole body if

- the occurrences of equal replies are counted on from those before,
- each result has the raw id of a call among them,
- no call has a raw id that must be unique and was used before, one that is canonical already, or one of an earlier call
  or result that has no partner, several, or an early one: with one more call those may be paired in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from segue.canonical.blocks import Block, Message, ToolCall, ToolResponse, calls_of, responses_of
from segue.canonical.ids import format_turn_key, hash_tool_id, is_canonical, split_turn_key
from segue.canonical.layered_map import LayeredMap


class PairingState(Struct, frozen=True):
    """The state of an empty history; `add` returns that after more messages."""

    has_unique_ids: bool
    """Whether the API requires that no two calls have the same raw id."""
    reply_counts: LayeredMap[str, int] = msgspec.field(default_factory=LayeredMap[str, int])
    """How often each reply has occurred, by the digest in its turn key."""
    raw_ids: LayeredMap[str, bool] = msgspec.field(default_factory=LayeredMap[str, bool])
    """The raw ids of all calls, if they must be unique."""
    duplicate_or_pending: frozenset[str] = frozenset()
    """The raw ids that do not belong to exactly one result after each call."""

    def add(self, messages: Sequence[Message]) -> PairingState:
        """Return the state after these messages of the same body."""
        calls = [call for message in messages for call in calls_of(message)]
        if not calls and not any(map(responses_of, messages)):
            return self
        raw_ids = self.raw_ids
        if self.has_unique_ids:
            raw_ids = raw_ids.fork()
            for call in calls:
                if call.origin.raw_id is not None:
                    raw_ids[call.origin.raw_id] = True
        reply_counts = self.reply_counts.fork()
        for message in messages:
            if message.turn_key is not None and ToolCall in map(type, message.blocks):
                digest, occurrence = split_turn_key(message.turn_key)
                reply_counts[digest] = occurrence + 1
        ids = self.duplicate_or_pending | _find_duplicate_or_pending(messages)
        return PairingState(self.has_unique_ids, reply_counts, raw_ids, ids)

    def continue_ids(self, messages: Sequence[Message]) -> tuple[Message, ...] | None:
        """Return the messages that follow in the same body, which were paired alone, with their ids in that body.

        None if they can't be paired alone.
        """
        raw_ids: dict[str, str | None] = {}
        for message in messages:
            for block in message.blocks:
                if type(block) is ToolCall:
                    raw_id = raw_ids[block.id] = block.origin.raw_id
                    if raw_id is not None and self._is_taken(raw_id):
                        return None
            for block in message.blocks:
                if type(block) is ToolResponse and raw_ids.get(block.call_id, "") != block.origin.raw_id:
                    return None
        return self._renumber(messages)

    def _is_taken(self, raw_id: str) -> bool:
        is_repeated = self.has_unique_ids and raw_id in self.raw_ids
        return is_repeated or raw_id in self.duplicate_or_pending or is_canonical(raw_id)

    def _renumber(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        turn_keys: dict[str | None, str] = {}
        for message in messages:
            if message.turn_key is not None and ToolCall in map(type, message.blocks):
                digest, occurrence = split_turn_key(message.turn_key)
                if earlier := self.reply_counts.get(digest):
                    turn_keys[message.turn_key] = format_turn_key(digest, earlier + occurrence)
        if not turn_keys:
            return tuple(messages)
        call_ids: dict[str, str] = {}
        indexes: Counter[str] = Counter()
        for message in messages:
            if (turn_key := turn_keys.get(message.turn_key)) is not None:
                for call in calls_of(message):
                    origin = call.origin
                    call_ids[call.id] = hash_tool_id(
                        origin.provider, origin.raw_id, call.name, turn_key, indexes[turn_key]
                    )
                    indexes[turn_key] += 1
        return tuple(_replace_ids(message, call_ids, turn_keys) for message in messages)


def _replace_ids(message: Message, call_ids: Mapping[str, str], turn_keys: Mapping[str | None, str]) -> Message:
    def replace_id(block: Block) -> Block:
        if isinstance(block, ToolCall):
            return replace(block, id=call_ids.get(block.id, block.id))
        if isinstance(block, ToolResponse):
            return replace(block, call_id=call_ids.get(block.call_id, block.call_id))
        return block

    turn_key = turn_keys.get(message.turn_key, message.turn_key)
    return replace(message, blocks=tuple(map(replace_id, message.blocks)), turn_key=turn_key)


def _find_duplicate_or_pending(messages: Iterable[Message]) -> set[str]:
    """Return the raw ids that do not belong to exactly one result after each call."""
    raw_id_by_call: dict[str, str | None] = {}
    open_calls: Counter[str] = Counter()
    found: set[str] = set()
    for message in messages:
        for block in message.blocks:
            if type(block) is ToolCall:
                raw_id = raw_id_by_call[block.id] = block.origin.raw_id
                if raw_id is not None:
                    open_calls[raw_id] += 1
        for block in message.blocks:
            if type(block) is ToolResponse and (raw_id := block.origin.raw_id) is not None:
                if open_calls[raw_id] and raw_id_by_call.get(block.call_id) == raw_id:
                    open_calls[raw_id] -= 1
                else:
                    found.add(raw_id)
    return found.union([raw_id for raw_id, count in open_calls.items() if count])
