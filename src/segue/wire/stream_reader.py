"""What readers of all APIs have in common: how a reply is told in events while its payloads come."""

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

# A server that puts something new into each payload is not looked at for likeness any longer.
_UNLIKE = 32
# To tell payloads apart that differ in more than their text costs too much for a few.
_ENOUGH = 8


class Reader(ABC):
    """Payloads of one reply to events. `calls` are those of the body in its order, with their canonical ids.

    What grows is kept here: `said` gives the text of an open block. Whoever begins a block ends it.
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
        """What the next payload is likely to be. Whoever tells deltas sets it, and unsets it when the block ends."""
        self.unlike = 0
        self._likely = 0
        self.name: str | None = None
        self.payload = b""
        """The payload at hand, as it is written; empty where it came decoded."""

    # What an API's own reader does.

    @abstractmethod
    def read(self, payload: JsonObject, name: str | None) -> None:
        """Takes in one payload; `name` is that of the event where the framing has names."""

    @abstractmethod
    def finish(self) -> Reply:
        """Ends what is open, tells usage and finish, and gives the reply: the one that its API would have sent at
        once, its calls under their canonical ids, `concluded`."""

    # What all readers tell it with.

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
        """All that was told of an open block."""
        return self._pieces[index].text()

    def ended(self, index: int) -> str:
        """All that was told of a block at its end: half a character without its other half is told as none."""
        half = self._half.pop(index, None)
        if half is not None:
            self._pieces[index].append("\ufffd")
            self.events.append(half[1](index, "\ufffd"))
        return self.said(index)

    def expect(self, key: str, text: str, tell: Callable[[str], object]) -> None:
        """Like the payload at hand, but for the text under this key, the next ones are likely to be."""
        self._likely += 1
        if not self.payload or self.halves or self.unlike >= _UNLIKE:
            return
        if self._likely >= _ENOUGH or not Alike.varies(self.payload):
            self.alike = Alike.of(self.payload, self.name, key, text, tell)

    def end(self, index: int, block: Text | Thinking | ToolCall) -> None:
        self.alike = None
        self._likely = 0
        if not self._pieces[index] and isinstance(block, ToolCall) and block.kind == "function" and not block.broken:
            # No arguments, of which clients want to read something.
            self.events.append(InputDelta(index, "{}"))
        del self._pieces[index]
        self.events.append(End(index, block))

    def whole(self, block: Block) -> int:
        index, self.blocks = self.blocks, self.blocks + 1
        self.events.append(Whole(index, block))
        return index

    def tell_block(self, block: Block) -> Block:
        """A block that came in one piece: what can grow is told as if it had, and a call under its canonical id."""
        if isinstance(block, ToolCall):
            block = self.named(block)
        told = events_of_block(self.blocks, block)
        self.blocks += 1
        self.events += told
        return block

    def concluded(self, reply: Reply) -> Reply:
        """Tells the end of a reply. Of one that failed it tells that, and gives what there is of it."""
        if reply.usage is not None:
            self.events.append(UsageTold(reply.usage))
        if self.failed is None:
            self.events.append(Finished(reply.finish, reply.cause, reply.stop_sequence))
            return reply
        self.events.append(Failed(self.failed))
        return _cut_off(reply, self.failed)

    def named(self, call: ToolCall) -> ToolCall:
        """The call under its canonical id: by the turn, and its place among the calls of the turn."""
        index, self._calls = self._calls, self._calls + 1
        made = canonical_tool_id(
            provider=self.provider,
            raw_id=call.origin.raw_id,
            tool_name=call.name,
            turn_key=self.turn_key,
            call_index=index,
        )
        if made in self._ids:
            # A canonical id that came back from a provider, and comes a second time.
            made = hashed_tool_id(self.provider, call.origin.raw_id, call.name, self.turn_key, index)
        self._ids.add(made)
        return msgspec.structs.replace(call, id=made)

    def tell_at_once(self, reply: Reply) -> Reply:
        """A reply that came whole though a stream was expected, told as one."""
        blocks = tuple(self.named(block) if isinstance(block, ToolCall) else block for block in reply.blocks)
        reply = msgspec.structs.replace(reply, blocks=blocks)
        self.opened = True
        self.events += events_of(reply)
        return reply

    def _joined(self, index: int, text: str, kind: type[TextDelta | ThinkingDelta | InputDelta]) -> str:
        """Text with the halves of characters that deltas were cut in put together."""
        half = self._half.pop(index, None)
        text = text if half is None else half[0] + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half[index] = text[-1], kind
            text = text[:-1]
        return mended(text)


def mended(text: str) -> str:
    """Text with the halves of characters that deltas were cut in put together."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _cut_off(reply: Reply, error: ApiError) -> Reply:
    """A reply that did not come to its end; what its API said of it is not all that there is to say."""
    native = reply.native if reply.native is None else Native(reply.native.api, reply.native.fragment, intact=False)
    return msgspec.structs.replace(reply, finish="error", cause=error.message, native=native)


def with_calls_told(reply: Reply, told: Iterable[ToolCall]) -> Reply:
    """The reply with its calls under the ids that they were told with, and broken where they are."""
    following = iter(told)
    blocks = (
        _as_told(block, next(following, block)) if isinstance(block, ToolCall) else block for block in reply.blocks
    )
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def _as_told(parsed: ToolCall, told: ToolCall) -> ToolCall:
    if not told.broken:
        return msgspec.structs.replace(parsed, id=told.id)
    return msgspec.structs.replace(parsed, id=told.id, arguments=None, arguments_text=told.arguments_text, broken=True)
