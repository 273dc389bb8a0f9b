"""Limits on the number of messages and tool calls of a caller's body: the cost of a conversion depends on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from segue.bridge.caller import Caller

# An item of a body that is valid has more bytes.
_MIN_ITEM_BYTES = 16
_CALL_TYPES = ("tool_use", "_call")


class BodyLimits(Struct, frozen=True):
    """The most messages (on the Responses API items) and tool calls that a body may have."""

    messages: int = 100_000
    calls: int = 100_000


class _Part(Struct):
    """An item, or a block of one: the fields of any API that are calls or have some."""

    type: Any = None
    tool_calls: Raw = Raw()
    function_call: Raw = Raw()
    tool_use: Raw = msgspec.field(default_factory=Raw, name="toolUse")
    function: Raw = msgspec.field(default_factory=Raw, name="functionCall")
    content: Raw = Raw()
    parts: Raw = Raw()

    def count_calls(self) -> int:
        is_call = isinstance(self.type, str) and self.type.endswith(_CALL_TYPES)
        named = (self.tool_use, self.function, self.function_call)
        return len(_split(self.tool_calls)) + (is_call or any(memoryview(value).nbytes for value in named))

    def iter_parts(self) -> Iterator[_Part]:
        yield self
        for blocks in (self.content, self.parts):
            yield from _decode_parts(blocks)


def find_size_error(caller: Caller, limits: BodyLimits) -> str | None:
    """Return why a body has too many messages or calls; None if it has not."""
    items = caller.members.get(caller.wire.conversation_key)
    fewest = min(limits.messages, limits.calls)
    if items is None or len(caller.body) <= _MIN_ITEM_BYTES * fewest or caller.body.count(b"{") <= fewest:
        return None
    messages = len(_split(items))
    if messages > limits.messages:
        return f"the body has {messages:,} messages; the limit is {limits.messages:,}"
    calls = sum(part.count_calls() for item in _decode_parts(items) for part in item.iter_parts())
    if calls > limits.calls:
        return f"the body has {calls:,} tool calls; the limit is {limits.calls:,}"
    return None


def _split(data: Raw) -> list[Raw]:
    """Return the items of a list; none of any other value."""
    try:
        return msgspec.json.decode(data, type=list[Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []


def _decode_parts(data: Raw) -> Iterator[_Part]:
    for item in _split(data):
        try:
            yield msgspec.json.decode(item, type=_Part)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
