"""Reasoning across APIs: sealed into the caller's replies, and restored from the caller's next requests.

A caller's API has a field for opaque data at each block of reasoning (`signature`, `encrypted`), at the calls (`call`),
or none. The reasoning of a reply is sealed into that field. It is also saved as an entry of the store under the id that
the caller gets for the first call: for callers without such a field, and for clients that drop it.

Positions are counted in the calls of the reply, because clients add, merge and drop texts: `2n` is after call `n` and
before the texts that follow it, `2n + 1` directly before call `n + 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import inf

import msgspec

from segue.bridge.envelopes import OpenedEnvelope, PlacedBlock, RejectedEnvelope
from segue.canonical.blocks import Block, Message, Origin, Thinking, ToolCall, calls_of
from segue.canonical.envelope import is_envelope
from segue.render.reasoning import has_reasoning_content
from segue.render.report import Report
from segue.wire.base import ReasoningPlace, Wire

SealBlocks = Callable[[Sequence[PlacedBlock]], str | None]
OpenEnvelope = Callable[[str], OpenedEnvelope | RejectedEnvelope]


class ReplySealer:
    """Seals the reasoning of one reply for the caller: a `ReasoningMapper` of `segue.reply`.

    `find_prefix` returns the digest of the prompt for models that accept reasoning only after the same prompt (ANT-28).
    """

    def __init__(self, caller: Wire, model: str, seal: SealBlocks, find_prefix: Callable[[], str | None]) -> None:
        self._place: ReasoningPlace | None = caller.reasoning_place
        self._origin = Origin(caller.provider, identity="absent")
        self._model = model
        self._seal = seal
        self._find_prefix = find_prefix
        self._calls_before = 0
        self._blocks: list[PlacedBlock] = []
        self._unplaced: list[Thinking] = []
        self._unsealed: list[PlacedBlock] = []
        self.calls: list[tuple[ToolCall, str]] = []
        """The calls of the reply, with the ids that the caller gets."""

    @property
    def blocks(self) -> Sequence[PlacedBlock]:
        """All reasoning of the reply so far."""
        return [*self._blocks, *((2 * self._calls_before, block) for block in self._unplaced)]

    @cached_property
    def _prefix(self) -> str | None:
        return self._find_prefix()

    def map_start(self, block: Thinking) -> Thinking:
        in_place = self._place in ("signature", "encrypted")
        return Thinking(origin=self._origin) if in_place else Thinking(origin=block.origin)

    def map_block(self, block: Thinking) -> Thinking | None:
        if not has_reasoning_content(block.text, block.signature, block.encrypted):
            return None
        recorded = self._record(block)
        self._unplaced.append(recorded)
        if self._place is None or self._place == "call":
            return Thinking(block.text, origin=block.origin) if block.text else None
        envelope = self._seal([(2 * self._calls_before, recorded)])
        if envelope is None:
            return Thinking(block.text, origin=self._origin) if block.text else None
        if self._place == "encrypted" or not block.text:
            return Thinking(block.text, encrypted=envelope, origin=self._origin)
        return Thinking(block.text, envelope, origin=self._origin)

    def blocks_before(self, block: Block) -> list[Block]:
        """Place the reasoning since the last block before this one, and return its envelope where a call carries it."""
        position = 2 * self._calls_before + _is_client_call(block)
        placed = [(position, thinking) for thinking in self._unplaced]
        self._unplaced = []
        self._blocks += placed
        self._unsealed += placed
        self._calls_before += _is_client_call(block)
        if self._place != "call" or not self._unsealed or not isinstance(block, ToolCall):
            return []
        envelope = self._seal(self._unsealed)
        self._unsealed = []
        return [] if envelope is None else [Thinking(signature=envelope, origin=self._origin)]

    def add_call(self, call: ToolCall, given_id: str) -> None:
        if _is_client_call(call):
            self.calls.append((call, given_id))

    def _record(self, block: Thinking) -> Thinking:
        """Return the block with the model and the prefix that it is bound to."""
        origin = block.origin
        if origin.model is None:
            origin = msgspec.structs.replace(origin, model=self._model)
        return msgspec.structs.replace(block, origin=origin, prefix=block.prefix or self._prefix)


class ReasoningRestorer:
    """Restores the reasoning of earlier replies in a caller's messages: the `restore` of a conversion.

    What it restores in a message never changes: it is remembered with the converted message.
    """

    def __init__(self, place: ReasoningPlace | None, open_envelope: OpenEnvelope) -> None:
        self._place = place
        self._open = open_envelope
        self._entries: dict[str, list[str | None]] = {}
        self.digests: dict[str, str] = {}
        """The calls whose entries were looked up, each with the digest of the conversation up to it."""
        self.size = 0
        """The size of the entries."""
        self._is_ambiguous = False
        self._oldest = inf

    def add(self, call_id: str, digest: str, entry: str | None) -> None:
        """Let an entry of the store be used for the next reply whose first call has this id."""
        self._is_ambiguous = self._is_ambiguous or call_id in self.digests
        self.size += len(entry or "")
        self.digests[call_id] = digest
        self._entries.setdefault(call_id, []).append(entry)

    def is_usable(self, oldest: float) -> bool:
        """Return whether later requests may use it too.

        Not where an id stands for several calls, which are told apart only in whole conversations, or where it restored
        reasoning that was sealed before `oldest`.
        """
        return not self._is_ambiguous and self._oldest >= oldest

    def __call__(self, messages: Sequence[Message], report: Report) -> tuple[Message, ...]:
        counts: dict[str, int] = {}
        return tuple(self._restore(one, counts, report) if one.speaker == "ai" else one for one in messages)

    def _restore(self, message: Message, counts: dict[str, int], report: Report) -> Message:
        envelopes = list(_find_envelopes(message))
        if not envelopes:
            return self._restore_entry(message, counts, report)
        opened = {id(block): self._open_reported(text, report) for block, text in envelopes}
        if self._place == "call":
            positioned = [pair for found in opened.values() if found is not None for pair in found.blocks]
            return _insert(message, positioned)
        blocks: list[Block] = []
        for block in message.blocks:
            found = opened.get(id(block))
            if id(block) not in opened:
                blocks.append(block)
            elif found is not None:
                blocks += [thinking for _, thinking in found.blocks]
        return message.with_blocks(tuple(blocks))

    def _restore_entry(self, message: Message, counts: dict[str, int], report: Report) -> Message:
        call_id = find_stored_call(message)
        if call_id is None or call_id not in self._entries:
            return message
        index = counts[call_id] = counts.get(call_id, -1) + 1
        entry = self._entries[call_id][index] if index < len(self._entries[call_id]) else None
        found = None if entry is None else self._open_reported(entry, report)
        return message if found is None else _insert(message, found.blocks)

    def _open_reported(self, envelope: str, report: Report) -> OpenedEnvelope | None:
        opened = self._open(envelope)
        if isinstance(opened, OpenedEnvelope):
            self._oldest = min(self._oldest, opened.sealed_at)
            return opened
        report.add("reasoning", f"sealed reasoning dropped: {opened.message}", subject="envelope")
        return None


def find_stored_call(message: Message) -> str | None:
    """Return the id under which the reasoning of a reply without envelopes is stored: that of its first call."""
    call_id = next((call.origin.raw_id for call in calls_of(message) if call.kind != "hosted"), None)
    return None if call_id is None or any(True for _ in _find_envelopes(message)) else call_id


def _find_envelopes(message: Message) -> Iterator[tuple[Thinking, str]]:
    for block in message.blocks:
        if isinstance(block, Thinking):
            for text in (block.signature, block.encrypted):
                if is_envelope(text):
                    yield block, text
                    break


def _is_client_call(block: Block) -> bool:
    return isinstance(block, ToolCall) and block.kind != "hosted"


def _insert(message: Message, positioned: Sequence[PlacedBlock]) -> Message:
    """Return the message with this reasoning, at its positions, in place of all that it has."""
    rest = [block for block in message.blocks if not isinstance(block, Thinking)]
    count = sum(map(_is_client_call, rest))
    last = 2 * count - 1 if count else 1

    def find_at(position: int) -> list[Thinking]:
        return [thinking for place, thinking in positioned if min(place, last) == position]

    blocks: list[Block] = [*find_at(0)]
    calls = 0
    for block in rest:
        if _is_client_call(block):
            calls += 1
            blocks += [*find_at(2 * calls - 1), block, *find_at(2 * calls)]
        else:
            blocks.append(block)
    return message.with_blocks((*blocks, *(() if count else find_at(1))))
