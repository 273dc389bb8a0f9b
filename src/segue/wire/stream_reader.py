"""The payload reader of all APIs: turns decoded payloads of one reply into events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import msgspec

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.ids import canonical_tool_id, hashed_tool_id
from segue.canonical.request import Reply
from segue.wire.alike import Alike
from segue.wire.base import ApiError, JsonObject
from segue.wire.events import (
    End,
    Event,
    Failed,
    Finished,
    InputDelta,
    Opened,
    Start,
    TextDelta,
    ThinkingDelta,
    UsageTold,
    Whole,
    events_of,
    events_of_block,
)
from segue.wire.stream_pieces import GrowingText

__all__ = ["ENDED_EARLY", "Reader", "mended", "with_calls_told"]

ENDED_EARLY = ApiError(0, "the stream ended before the reply did", kind="stream_ended")

# After this many misses no delta template is tried any more.
_UNLIKE = 32
# A template with variable fields costs too much for shorter runs of deltas.
_ENOUGH = 8


class Reader(ABC):
    """Turns payloads of one reply into events. It accumulates the text of open blocks (`text_so_far`).

    A subclass ends every block that it starts.
    """

    def __init__(self, provider: str, turn_key: str) -> None:
        self.provider = provider
        self.turn_key = turn_key
        self.events: list[Event] = []
        self.opened = False
        self.failed: ApiError | None = None
        self.done = False
        self.blocks = 0
        self._calls = 0
        self._ids: set[str] = set()
        self._pieces: dict[int, GrowingText] = {}
        self._half: dict[int, tuple[str, type[TextDelta | ThinkingDelta | InputDelta]]] = {}
        self.halves = False
        self.alike: Alike | None = None
        """Template for the next payload; set while deltas of one block arrive, cleared when the block ends."""
        self.unlike = 0
        self._likely = 0
        self.name: str | None = None
        self.payload = b""
        """The current payload undecoded; empty where it was fed decoded."""

    # Implemented by each API's reader.

    @abstractmethod
    def read(self, payload: JsonObject, name: str | None) -> None:
        """Parses one payload; `name` is the name of the event where the framing has names."""

    @abstractmethod
    def finish(self) -> Reply:
        """Ends open blocks, emits usage and finish, and returns the reply as the API would have sent it unstreamed, its
        calls with their canonical ids, through `emit_finish`."""

    # Emitting events.

    def open(self, id: str | None, model: str | None, created: int | None = None, native: Native | None = None) -> None:
        if not self.opened:
            self.opened = True
            self.events.append(Opened(id, model, created, native))

    def start(self, block: Text | Thinking | ToolCall) -> int:
        index, self.blocks = self.blocks, self.blocks + 1
        self._pieces[index] = GrowingText()
        self.events.append(Start(index, block))
        return index

    def text(self, index: int, text: str, beside: JsonObject | None = None) -> None:
        text = self._joined(index, text, TextDelta) if self.halves else text
        if text or beside:
            self._pieces[index].append(text)
            self.events.append(TextDelta(index, text, beside))

    def thinking(self, index: int, text: str) -> None:
        text = self._joined(index, text, ThinkingDelta) if self.halves else text
        if text:
            self._pieces[index].append(text)
            self.events.append(ThinkingDelta(index, text))

    def input(self, index: int, text: str) -> None:
        text = self._joined(index, text, InputDelta) if self.halves else text
        if text:
            self._pieces[index].append(text)
            self.events.append(InputDelta(index, text))

    def said(self, index: int) -> str:
        """The text of an open block so far."""
        return self._pieces[index].text()

    def ended(self, index: int) -> str:
        """The complete text of a block at its end; an unpaired surrogate becomes U+FFFD."""
        half = self._half.pop(index, None)
        if half is not None:
            self._pieces[index].append("\ufffd")
            self.events.append(half[1](index, "\ufffd"))
        return self.said(index)

    def expect(self, key: str, text: str, emit: Callable[[str], object]) -> None:
        """Sets a template: the next payloads probably equal the current one except for the text under `key`."""
        self._likely += 1
        if not self.payload or self.halves or self.unlike >= _UNLIKE:
            return
        if self._likely >= _ENOUGH or not Alike.varies(self.payload):
            self.alike = Alike.of(self.payload, self.name, key, text, emit)

    def end(self, index: int, block: Text | Thinking | ToolCall) -> None:
        self.alike = None
        self._likely = 0
        if not self._pieces[index] and isinstance(block, ToolCall) and block.kind == "function" and not block.broken:
            # A call without arguments: clients expect at least one delta.
            self.events.append(InputDelta(index, "{}"))
        del self._pieces[index]
        self.events.append(End(index, block))

    def whole(self, block: Block) -> int:
        index, self.blocks = self.blocks, self.blocks + 1
        self.events.append(Whole(index, block))
        return index

    def tell_block(self, block: Block) -> Block:
        """Emits the events of a complete block, a call with its canonical id, and returns the block."""
        if isinstance(block, ToolCall):
            block = self.named(block)
        events = events_of_block(self.blocks, block)
        self.blocks += 1
        self.events += events
        return block

    def concluded(self, reply: Reply) -> Reply:
        """Emits usage and the end of the reply; of a failed reply emits the error and returns what arrived of it."""
        if reply.usage is not None:
            self.events.append(UsageTold(reply.usage))
        if self.failed is None:
            self.events.append(Finished(reply.finish, reply.cause, reply.stop_sequence))
            return reply
        self.events.append(Failed(self.failed))
        return _cut_off(reply, self.failed)

    def named(self, call: ToolCall) -> ToolCall:
        """The call with its canonical id, made from the turn key and its index among the calls of the turn."""
        index, self._calls = self._calls, self._calls + 1
        call_id = canonical_tool_id(
            provider=self.provider,
            raw_id=call.origin.raw_id,
            tool_name=call.name,
            turn_key=self.turn_key,
            call_index=index,
        )
        if call_id in self._ids:
            # A provider returned a canonical id that this reply has already.
            call_id = hashed_tool_id(self.provider, call.origin.raw_id, call.name, self.turn_key, index)
        self._ids.add(call_id)
        return msgspec.structs.replace(call, id=call_id)

    def tell_at_once(self, reply: Reply) -> Reply:
        """Emits the events of a reply that arrived complete although a stream was requested."""
        blocks = tuple(self.named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        reply = msgspec.structs.replace(reply, blocks=blocks)
        self.opened = True
        self.events += events_of(reply)
        return reply

    def _joined(self, index: int, text: str, kind: type[TextDelta | ThinkingDelta | InputDelta]) -> str:
        """The text with surrogate pairs joined that were split between deltas."""
        half = self._half.pop(index, None)
        text = text if half is None else half[0] + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half[index] = text[-1], kind
            text = text[:-1]
        return mended(text)


def mended(text: str) -> str:
    """The text with split surrogate pairs joined; unpaired ones become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _cut_off(reply: Reply, error: ApiError) -> Reply:
    """The reply with finish `error`; its native fragment no longer counts as intact."""
    native = reply.native if reply.native is None else Native(reply.native.api, reply.native.fragment, intact=False)
    return msgspec.structs.replace(reply, finish="error", cause=error.message, native=native)


def with_calls_told(reply: Reply, streamed: Iterable[ToolCall]) -> Reply:
    """The reply with the ids of its streamed calls, and `broken` where a streamed call is."""
    following = iter(streamed)
    blocks = (
        _as_told(block, next(following, block)) if isinstance(block, ToolCall) else block for block in reply.blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def _as_told(parsed: ToolCall, streamed: ToolCall) -> ToolCall:
    if not streamed.broken:
        return msgspec.structs.replace(parsed, id=streamed.id)
    text = streamed.arguments_text
    return msgspec.structs.replace(parsed, id=streamed.id, arguments=None, arguments_text=text, broken=True)
