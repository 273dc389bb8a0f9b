"""Stream events of a reply, the same for every API.

`ReplyStart` comes first. A streamed block has a `BlockStart`, deltas, and a `BlockEnd` with the finished block; one
that arrives complete is a `WholeBlock`. Blocks are numbered in the order of their start, and several may be open at
once. All blocks have ended before `Finished` or `Failed`, which comes last and once.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Native, Text, Thinking, ToolCall
from segue.canonical.json import encode_json_text
from segue.canonical.request import Finish, Reply, Usage
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject


class ReplyStart(Struct, gc=False):
    """The reply begins. `native` holds the API's own fields of the reply.

    `opening` holds the fields that were sent at the start, where the stream changes those of `native` later.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    native: Native | None = None
    opening: JsonObject | None = None


class BlockStart(Struct, gc=False):
    """A text, reasoning or tool-call block begins, with the fields that are known at its start.

    A call has its canonical id, its complete name, its kind and its origin. `native` holds its other fields.
    """

    index: int
    block: Text | Thinking | ToolCall


class TextDelta(Struct, gc=False):
    """More text. `extras` are unmodelled fields of the delta (`logprobs`)."""

    index: int
    text: str
    extras: JsonObject | None = None


class ThinkingDelta(Struct, gc=False):
    index: int
    text: str


class InputDelta(Struct, gc=False):
    """More of the arguments text of a tool call."""

    index: int
    text: str


class BlockEnd(Struct, gc=False):
    """The finished block. A truncated call is `broken`."""

    index: int
    block: Text | Thinking | ToolCall


class WholeBlock(Struct, gc=False):
    """A block that is not streamed: an image, a hosted tool call, unknown content."""

    index: int
    block: Block


class UsageUpdate(Struct, gc=False):
    usage: Usage


class Finished(Struct, gc=False):
    finish: Finish
    raw_finish: str | None = None
    stop_sequence: str | None = None


class Failed(Struct, gc=False):
    """The reply failed: an error of the provider, or a stream that ended early."""

    error: ApiError


Delta: TypeAlias = TextDelta | ThinkingDelta | InputDelta
Event: TypeAlias = ReplyStart | BlockStart | Delta | BlockEnd | WholeBlock | UsageUpdate | Finished | Failed


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of a call as streamed text."""
    if call.arguments_text is not None:
        return call.arguments_text
    return (
        call.arguments
        if call.kind == "custom" and isinstance(call.arguments, str)
        else encode_json_text(call.arguments)
    )


_StreamedBlock = TypeVar("_StreamedBlock", Text, Thinking, ToolCall)


def _without_content(block: _StreamedBlock, **changes: Any) -> _StreamedBlock:
    """Return the block with its content removed; its other native fields are kept."""
    native = block.native if block.native is None else Native(block.native.api, block.native.fragment, intact=False)
    return msgspec.structs.replace(block, native=native, **changes)


def reply_events(reply: Reply) -> list[Event]:
    """Return the stream events of a complete reply."""
    events: list[Event] = [ReplyStart(reply.id, reply.model, reply.created, reply.native)]
    for index, block in enumerate(reply.blocks):
        events += block_events(index, block)
    if reply.usage is not None:
        events.append(UsageUpdate(reply.usage))
    events.append(Finished(reply.finish, reply.raw_finish, reply.stop_sequence))
    return events


def block_events(index: int, block: Block) -> list[Event]:
    """Return the stream events of a complete block."""
    if isinstance(block, Text):
        deltas: list[Event] = [TextDelta(index, block.text)] if block.text else []
        return [BlockStart(index, _without_content(block, text="")), *deltas, BlockEnd(index, block)]
    if isinstance(block, Thinking):
        start = BlockStart(index, _without_content(block, text="", signature=None, encrypted=None))
        deltas = [ThinkingDelta(index, block.text)] if block.text else []
        return [start, *deltas, BlockEnd(index, block)]
    if isinstance(block, ToolCall) and block.kind != "hosted":
        start = BlockStart(index, _without_content(block, arguments={}, arguments_text=None))
        return [start, InputDelta(index, arguments_text(block)), BlockEnd(index, block)]
    return [WholeBlock(index, block)]
