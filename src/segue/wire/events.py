"""What happens while a reply arrives, in words that every API shares.

`Opened` comes first. A block that grows has a `Start`, its deltas, and an `End` that holds the finished block; one that
came in one piece is a `Whole`. Blocks are numbered in the order in which they begin, and several may be open at once.
Everything that began has ended when `Finished` or `Failed` comes, which is last and comes once.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.jsontext import write_text
from segue.canonical.request import Finish, Reply, Usage
from segue.wire.base import ApiError, JsonObject

__all__ = [
    "Delta",
    "End",
    "Event",
    "Failed",
    "Finished",
    "InputDelta",
    "Opened",
    "Start",
    "TextDelta",
    "ThinkingDelta",
    "UsageTold",
    "Whole",
    "arguments_text",
    "events_of",
    "events_of_block",
]


class Opened(Struct, gc=False):
    """A reply begins. `native` is what its own API said around it."""

    id: str | None = None
    model: str | None = None
    created: int | None = None
    native: Native | None = None


class Start(Struct, gc=False):
    """A text, reasoning or a call begins; of the block only what is known from the first is there.

    A call has its canonical id, its whole name, its kind and its origin. `native` holds what was said beside.
    """

    index: int
    block: Text | Thinking | ToolCall


class TextDelta(Struct, gc=False):
    """More words. `beside` is what the API said beside them that has no other word (`logprobs`)."""

    index: int
    text: str
    beside: JsonObject | None = None


class ThinkingDelta(Struct, gc=False):
    index: int
    text: str


class InputDelta(Struct, gc=False):
    """More of the text of a call's arguments."""

    index: int
    text: str


class End(Struct, gc=False):
    """The finished block. A call that was cut off is `broken`."""

    index: int
    block: Text | Thinking | ToolCall


class Whole(Struct, gc=False):
    """A block without a beginning: a picture, what the provider ran by itself, anything unknown."""

    index: int
    block: Block


class UsageTold(Struct, gc=False):
    usage: Usage


class Finished(Struct, gc=False):
    finish: Finish
    cause: str | None = None
    stop_sequence: str | None = None


class Failed(Struct, gc=False):
    """The reply broke off: an error of the provider, or a stream without an end."""

    error: ApiError


Delta: TypeAlias = TextDelta | ThinkingDelta | InputDelta
Event: TypeAlias = Opened | Start | Delta | End | Whole | UsageTold | Finished | Failed


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as a stream tells them."""
    if call.arguments_text is not None:
        return call.arguments_text
    return call.arguments if call.kind == "custom" and isinstance(call.arguments, str) else write_text(call.arguments)


Growing = TypeVar("Growing", Text, Thinking, ToolCall)


def _begun(block: Growing, **changes: Any) -> Growing:
    """A block before it has grown. What its API says beside the content is known from the first."""
    native = block.native if block.native is None else Native(block.native.api, block.native.fragment, intact=False)
    return msgspec.structs.replace(block, native=native, **changes)


def events_of(reply: Reply) -> list[Event]:
    """A reply that came at once, as if it had been streamed."""
    events: list[Event] = [Opened(reply.id, reply.model, reply.created, reply.native)]
    for index, block in enumerate(reply.blocks):
        events += events_of_block(index, block)
    if reply.usage is not None:
        events.append(UsageTold(reply.usage))
    events.append(Finished(reply.finish, reply.cause, reply.stop_sequence))
    return events


def events_of_block(index: int, block: Block) -> list[Event]:
    """A block that is there already, as if it had grown."""
    if isinstance(block, Text):
        told: list[Event] = [TextDelta(index, block.text)] if block.text else []
        return [Start(index, _begun(block, text="")), *told, End(index, block)]
    if isinstance(block, Thinking):
        begun = Start(index, _begun(block, text="", signature=None, sealed=None))
        told = [ThinkingDelta(index, block.text)] if block.text else []
        return [begun, *told, End(index, block)]
    if isinstance(block, ToolCall) and block.kind != "hosted":
        begun = Start(index, _begun(block, arguments={}, arguments_text=None))
        return [begun, InputDelta(index, arguments_text(block)), End(index, block)]
    return [Whole(index, block)]
