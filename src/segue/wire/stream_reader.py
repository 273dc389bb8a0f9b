"""The base class of all payload readers: parses decoded payloads of one reply into events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import msgspec

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id, hash_tool_id
from segue.canonical.request import Reply
from segue.wire.base import ApiError, JsonObject
from segue.wire.delta_template import DeltaTemplate
from segue.wire.events import (
    BlockEnd,
    BlockStart,
    Event,
    Failed,
    Finished,
    InputDelta,
    ReplyStart,
    TextDelta,
    ThinkingDelta,
    UsageUpdate,
    WholeBlock,
    block_events,
    reply_events,
)
from segue.wire.stream_deltas import TextBuffer

__all__ = ["ENDED_EARLY", "PayloadReader", "join_surrogates", "with_streamed_calls"]

ENDED_EARLY = ApiError(0, "the stream ended before the reply did", kind="stream_ended")

# After this many misses no delta template is tried any more.
_MAX_TEMPLATE_MISSES = 32
# A template with variable fields costs too much for shorter runs of deltas.
_MIN_VARIABLE_RUN = 8


class PayloadReader(ABC):
    """Parses payloads of one reply into events. It accumulates the text of open blocks (`text_so_far`).

    A subclass ends every block that it starts.
    """

    def __init__(self, provider: str, turn_key: str) -> None:
        self.provider = provider
        self.turn_key = turn_key
        self.events: list[Event] = []
        self.reply_started = False
        self.error: ApiError | None = None
        self.done = False
        self.block_count = 0
        self._call_count = 0
        self._ids: set[str] = set()
        self._texts: dict[int, TextBuffer] = {}
        self._pending_surrogates: dict[int, tuple[str, type[TextDelta | ThinkingDelta | InputDelta]]] = {}
        self.has_split_surrogates = False
        self.delta_template: DeltaTemplate | None = None
        """Template for the next payload; set while deltas of one block arrive, cleared when the block ends."""
        self.template_misses = 0
        self._delta_run = 0
        self.event_name: str | None = None
        self.payload = b""
        """The current payload undecoded; empty if it was fed decoded."""

    # Implemented by each API's reader.

    @abstractmethod
    def read(self, payload: JsonObject, name: str | None) -> None:
        """Parses one payload; `name` is the name of the event where the framing has names."""

    @abstractmethod
    def finish(self) -> Reply:
        """Ends open blocks, emits usage and finish with `emit_finish`, and returns the reply.

        The reply equals the one that the API would have sent without streaming; its calls have their canonical ids.
        """

    # Emitting events.

    def emit_reply_start(
        self, id: str | None, model: str | None, created: int | None = None, native: Native | None = None
    ) -> None:
        if not self.reply_started:
            self.reply_started = True
            self.events.append(ReplyStart(id, model, created, native))

    def emit_block_start(self, block: Text | Thinking | ToolCall) -> int:
        index, self.block_count = self.block_count, self.block_count + 1
        self._texts[index] = TextBuffer()
        self.events.append(BlockStart(index, block))
        return index

    def add_text(self, index: int, text: str, extras: JsonObject | None = None) -> None:
        text = self._join_surrogates(index, text, TextDelta) if self.has_split_surrogates else text
        if text or extras:
            self._texts[index].append(text)
            self.events.append(TextDelta(index, text, extras))

    def add_thinking(self, index: int, text: str) -> None:
        text = self._join_surrogates(index, text, ThinkingDelta) if self.has_split_surrogates else text
        if text:
            self._texts[index].append(text)
            self.events.append(ThinkingDelta(index, text))

    def add_input(self, index: int, text: str) -> None:
        text = self._join_surrogates(index, text, InputDelta) if self.has_split_surrogates else text
        if text:
            self._texts[index].append(text)
            self.events.append(InputDelta(index, text))

    def text_so_far(self, index: int) -> str:
        """The text of an open block so far."""
        return self._texts[index].text()

    def finish_text(self, index: int) -> str:
        """The complete text of a block at its end; an unpaired surrogate becomes U+FFFD."""
        half = self._pending_surrogates.pop(index, None)
        if half is not None:
            self._texts[index].append("\ufffd")
            self.events.append(half[1](index, "\ufffd"))
        return self.text_so_far(index)

    def set_delta_template(self, key: str, text: str, emit: Callable[[str], object]) -> None:
        """Sets a template: the next payloads probably equal the current one except for the text under `key`."""
        self._delta_run += 1
        if not self.payload or self.has_split_surrogates or self.template_misses >= _MAX_TEMPLATE_MISSES:
            return
        if self._delta_run >= _MIN_VARIABLE_RUN or not DeltaTemplate.has_variable_fields(self.payload):
            self.delta_template = DeltaTemplate.from_payload(self.payload, self.event_name, key, text, emit)

    def emit_block_end(self, index: int, block: Text | Thinking | ToolCall) -> None:
        self.delta_template = None
        self._delta_run = 0
        if not self._texts[index] and isinstance(block, ToolCall) and block.kind == "function" and not block.broken:
            # A call without arguments: clients expect at least one delta.
            self.events.append(InputDelta(index, "{}"))
        del self._texts[index]
        self.events.append(BlockEnd(index, block))

    def emit_whole_block(self, block: Block) -> int:
        index, self.block_count = self.block_count, self.block_count + 1
        self.events.append(WholeBlock(index, block))
        return index

    def emit_block(self, block: Block) -> Block:
        """Emits the events of a complete block, a call with its canonical id, and returns the block."""
        if isinstance(block, ToolCall):
            block = self.assign_id(block)
        events = block_events(self.block_count, block)
        self.block_count += 1
        self.events += events
        return block

    def emit_finish(self, reply: Reply) -> Reply:
        """Emits usage and the end of the reply; for a failed reply, emits the error and returns its partial reply."""
        if reply.usage is not None:
            self.events.append(UsageUpdate(reply.usage))
        if self.error is None:
            self.events.append(Finished(reply.finish, reply.raw_finish, reply.stop_sequence))
            return reply
        self.events.append(Failed(self.error))
        return _mark_failed(reply, self.error)

    def assign_id(self, call: ToolCall) -> ToolCall:
        """The call with its canonical id, made from the turn key and its index among the calls of the turn."""
        index, self._call_count = self._call_count, self._call_count + 1
        call_id = canonical_tool_id(
            provider=self.provider,
            raw_id=call.origin.raw_id,
            tool_name=call.name,
            turn_key=self.turn_key,
            call_index=index,
        )
        if call_id in self._ids:
            # The provider returned a canonical id twice in this reply.
            call_id = hash_tool_id(self.provider, call.origin.raw_id, call.name, self.turn_key, index)
        self._ids.add(call_id)
        return msgspec.structs.replace(call, id=call_id)

    def emit_reply(self, reply: Reply) -> Reply:
        """Emits the events of a reply that arrived complete although a stream was requested."""
        blocks = tuple(self.assign_id(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        reply = msgspec.structs.replace(reply, blocks=blocks)
        self.reply_started = True
        self.events += reply_events(reply)
        return reply

    def _join_surrogates(self, index: int, text: str, kind: type[TextDelta | ThinkingDelta | InputDelta]) -> str:
        """The text with surrogate pairs joined that were split between deltas."""
        half = self._pending_surrogates.pop(index, None)
        text = text if half is None else half[0] + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._pending_surrogates[index] = text[-1], kind
            text = text[:-1]
        return join_surrogates(text)


def join_surrogates(text: str) -> str:
    """The text with split surrogate pairs joined; unpaired ones become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _mark_failed(reply: Reply, error: ApiError) -> Reply:
    """The reply with finish `error`; its native fragment no longer counts as intact."""
    native = reply.native if reply.native is None else Native(reply.native.api, reply.native.fragment, intact=False)
    return msgspec.structs.replace(reply, finish="error", raw_finish=error.message, native=native)


def with_streamed_calls(reply: Reply, streamed: Iterable[ToolCall]) -> Reply:
    """The reply with the ids of its streamed calls; a call that was truncated in the stream is `broken`."""
    following = iter(streamed)
    blocks = (
        _merge_streamed_call(block, next(following, block)) if isinstance(block, ToolCall) else block
        for block in reply.blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def _merge_streamed_call(parsed: ToolCall, streamed: ToolCall) -> ToolCall:
    if not streamed.broken:
        return msgspec.structs.replace(parsed, id=streamed.id)
    text = streamed.arguments_text
    return msgspec.structs.replace(parsed, id=streamed.id, arguments=None, arguments_text=text, broken=True)
