"""`BlockReader`: the base class of readers for APIs that stream keyed blocks (Anthropic, Bedrock)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar, cast

import msgspec

from segue.canonical.blocks import Block, Text, Thinking, ToolCall
from segue.canonical.request import Reply
from segue.wire.json_values import JsonObject
from segue.wire.stream.deltas import parse_input
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader

_LENGTH_REASONS = ("max_tokens", "model_context_window_exceeded")


class OpenBlock:
    """A block that has not ended. `block_index` is its index in the events, -1 before it has one.

    `kind` is its type, `takes_input` whether input deltas may belong to it. `initial_input` is input in the start
    event, `has_input` whether deltas of it followed. Input of a hosted call is collected in `input_parts`;
    `truncated_input` is the whole input where it was truncated.
    """

    __slots__ = (
        "block_index",
        "call",
        "fragment",
        "has_input",
        "initial_input",
        "input_parts",
        "key",
        "kind",
        "stopped",
        "takes_input",
        "truncated_input",
    )

    def __init__(self, key: object, fragment: JsonObject, kind: object, *, takes_input: bool) -> None:
        self.key = key
        self.fragment = fragment
        self.kind = kind
        self.takes_input = takes_input
        self.block_index = -1
        self.call: ToolCall | None = None
        self.initial_input = ""
        self.has_input = False
        self.input_parts: list[Any] = []
        self.truncated_input: str | None = None
        self.stopped = False


_OpenBlockT = TypeVar("_OpenBlockT", bound=OpenBlock)


class BlockReader(PayloadReader, Generic[_OpenBlockT]):
    """The payload reader for streams of keyed blocks (Anthropic, Bedrock).

    `open_blocks` has the open blocks by key, `open_calls` those of them that take input, `running_blocks` those that
    were not stopped; `closed_keys` has the keys of blocks that have ended.
    """

    def __init__(self, provider: str, turn_key: str) -> None:
        super().__init__(provider, turn_key)
        self.open_blocks: dict[object, _OpenBlockT] = {}
        self.open_calls: dict[object, _OpenBlockT] = {}
        self.running_blocks: dict[object, _OpenBlockT] = {}
        self._open_by_kind: dict[object, dict[object, _OpenBlockT]] = {}
        self._stopped: list[_OpenBlockT] = []
        self.closed_keys: set[object] = set()
        self.whole_reply: Reply | None = None
        self._emitted: list[_OpenBlockT] = []
        self._blocks: dict[int, Block] = {}

    # Implemented by each API's reader.

    @abstractmethod
    def stop_reason(self) -> object:
        """Return the stop reason, once it has arrived."""

    @abstractmethod
    def build_block(self, open_block: _OpenBlockT, *, ended: bool) -> Block | None:
        """Complete the fragment of a block as in an unstreamed reply, and parse it."""

    @abstractmethod
    def build_reply(self, content: list[JsonObject]) -> Reply: ...

    # Shared.

    def add_open_block(self, open_block: _OpenBlockT) -> None:
        self.open_blocks[open_block.key] = self.running_blocks[open_block.key] = open_block
        if open_block.takes_input:
            self.open_calls[open_block.key] = open_block
        if isinstance(open_block.kind, str):
            self._open_by_kind.setdefault(open_block.kind, {})[open_block.key] = open_block

    def last_open_block(self, kind: str) -> _OpenBlockT | None:
        return next(reversed(self._open_by_kind.get(kind, {}).values()), None)

    def set_block_index(self, open_block: _OpenBlockT, block_index: int) -> None:
        open_block.block_index = block_index
        self._emitted.append(open_block)

    def add_block_input(self, open_block: _OpenBlockT, text: str) -> None:
        open_block.has_input = True
        if open_block.call is not None:
            self.add_input(open_block.block_index, text)
        else:
            open_block.input_parts.append(text)

    def block_input(self, open_block: _OpenBlockT, *, ended: bool) -> object:
        """Return the complete input of a call."""
        text = "".join(open_block.input_parts) if open_block.call is None else self.finish_text(open_block.block_index)
        value, broken = parse_input(text, ended=ended)
        open_block.truncated_input = text if broken else None
        return value

    def stop_block(self, open_block: _OpenBlockT) -> None:
        if open_block.call is not None and not open_block.has_input and not open_block.initial_input:
            # The stop reason decides whether it has no arguments or was truncated before them.
            if not open_block.stopped:
                open_block.stopped = True
                del self.running_blocks[open_block.key]
                self._stopped.append(open_block)
        else:
            self.end_block(open_block)

    def end_stopped_blocks(self) -> None:
        stopped, self._stopped = self._stopped, []
        for open_block in sorted(stopped, key=lambda stopped_block: stopped_block.block_index):
            if self.open_blocks.get(open_block.key) is open_block:
                self.end_block(open_block)

    def end_block(self, open_block: _OpenBlockT, *, ended: bool = True) -> None:
        del self.open_blocks[open_block.key]
        self.running_blocks.pop(open_block.key, None)
        self.open_calls.pop(open_block.key, None)
        if isinstance(open_block.kind, str):
            del self._open_by_kind[open_block.kind][open_block.key]
        self.closed_keys.add(open_block.key)
        block = self.build_block(open_block, ended=ended)
        if block is None:
            return
        if isinstance(block, ToolCall):
            block = (
                self.assign_id(block)
                if open_block.call is None
                else msgspec.structs.replace(block, id=open_block.call.id)
            )
            if open_block.truncated_input is not None:
                block = msgspec.structs.replace(
                    block, arguments=None, arguments_text=open_block.truncated_input, broken=True
                )
        if open_block.block_index < 0:
            self.set_block_index(open_block, self.emit_whole_block(block))
        else:
            self.emit_block_end(open_block.block_index, cast("Text | Thinking | ToolCall", block))
        self._blocks[open_block.block_index] = block

    def is_at_end(self) -> bool:
        return self.done or self.stop_reason() is not None

    def end_open_blocks(self, *, finished: bool) -> None:
        """End all open blocks. If the reply hit its length limit, the last one is truncated."""
        full = self.stop_reason() in _LENGTH_REASONS
        for open_block in list(self.open_blocks.values()):
            last = open_block is next(reversed(self.open_blocks.values()))
            self.end_block(open_block, ended=finished and not (full and last))

    def finish(self) -> Reply:
        if self.whole_reply is not None:
            return self.whole_reply
        if not self.is_at_end() and self.error is None:
            self.error = ENDED_EARLY
        self.end_open_blocks(finished=self.error is None)
        reply = self.build_reply([open_block.fragment for open_block in self._emitted])
        blocks = tuple(self._blocks[index] for index in range(self.block_count))
        return self.emit_finish(msgspec.structs.replace(reply, blocks=blocks))
