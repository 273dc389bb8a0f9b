"""Payload reader for streams of keyed blocks (Anthropic, Bedrock): open blocks, their end, and the reply."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar, cast

import msgspec

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.wire.fields import JsonObject
from segue.wire.stream_pieces import input_value
from segue.wire.stream_reader import ENDED_EARLY, Reader

__all__ = ["BlockReader", "Slot"]

_FULL = ("max_tokens", "model_context_window_exceeded")


class Slot:
    """A block that has not ended. `block_index` is its index in the events, -1 before it has one.

    `initial_input` is input in the start event, `has_input` whether deltas of it followed. Input of a hosted call is
    collected in `input_parts`; `truncated_input` is the whole input where it was truncated.
    """

    __slots__ = ("begun", "call", "cut", "fragment", "given", "key", "pieces", "place", "stopped")

    def __init__(self, key: object, fragment: JsonObject) -> None:
        self.key = key
        self.fragment = fragment
        self.place = -1
        self.call: ToolCall | None = None
        self.given = ""
        self.begun = False
        self.pieces: list[Any] = []
        self.cut: str | None = None
        self.stopped = False


S = TypeVar("S", bound=Slot)


class BlockReader(Reader, Generic[S]):
    """`open_blocks` has the open blocks by key, `closed_keys` the keys of those that have ended."""

    def __init__(self, provider: str, turn_key: str) -> None:
        super().__init__(provider, turn_key)
        self.slots: dict[object, S] = {}
        self.closed: set[object] = set()
        self.at_once: Reply | None = None
        self._told: list[S] = []
        self._blocks: dict[int, Block] = {}

    # Implemented by each API's reader.

    @abstractmethod
    def stop_reason(self) -> object:
        """The stop reason, once it has arrived."""

    @abstractmethod
    def block_of(self, slot: S, *, ended: bool) -> Block | None:
        """Completes the fragment of a block as in an unstreamed reply, and parses it."""

    @abstractmethod
    def reply_of(self, content: list[JsonObject]) -> Reply: ...

    # Shared.

    def place(self, slot: S, place: int) -> None:
        slot.place = place
        self._told.append(slot)

    def take_input(self, slot: S, text: str) -> None:
        slot.begun = True
        if slot.call is not None:
            self.input(slot.place, text)
        else:
            slot.pieces.append(text)

    def input_of(self, slot: S, *, ended: bool) -> object:
        """The complete input of a call."""
        text = "".join(slot.pieces) if slot.call is None else self.ended(slot.place)
        value, broken = input_value(text, ended=ended)
        slot.cut = text if broken else None
        return value

    def stop_slot(self, slot: S) -> None:
        if slot.call is not None and not slot.begun and not slot.given:
            # The stop reason decides whether it has no arguments or was truncated before them.
            slot.stopped = True
        else:
            self.end_slot(slot)

    def end_stopped(self) -> None:
        for slot in [slot for slot in self.slots.values() if slot.stopped]:
            self.end_slot(slot)

    def end_slot(self, slot: S, *, ended: bool = True) -> None:
        del self.slots[slot.key]
        self.closed.add(slot.key)
        block = self.block_of(slot, ended=ended)
        if block is None:
            return
        if isinstance(block, ToolCall):
            block = self.named(block) if slot.call is None else msgspec.structs.replace(block, id=slot.call.id)
            if slot.cut is not None:
                block = msgspec.structs.replace(block, arguments=None, arguments_text=slot.cut, broken=True)
        if slot.place < 0:
            self.place(slot, self.whole(block))
        else:
            self.end(slot.place, cast("Text | Thinking | ToolCall", block))
        self._blocks[slot.place] = block

    def at_end(self) -> bool:
        return self.done or self.stop_reason() is not None

    def end_slots(self, *, finished: bool) -> None:
        """Ends all open blocks. If the reply hit its length limit, the last one is truncated."""
        full = self.stop_reason() in _FULL
        for slot in list(self.slots.values()):
            last = slot is next(reversed(self.slots.values()))
            self.end_slot(slot, ended=finished and not (full and last))

    def finish(self) -> Reply:
        if self.at_once is not None:
            return self.at_once
        if not self.at_end() and self.failed is None:
            self.failed = ENDED_EARLY
        self.end_slots(finished=self.failed is None)
        reply = self.reply_of([slot.fragment for slot in self._told])
        blocks = tuple(self._blocks[place] for place in range(self.blocks))
        return self.concluded(msgspec.structs.replace(reply, blocks=blocks))
