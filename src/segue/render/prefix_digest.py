"""The digest of everything before a place in a conversation, and the prefix that a render of bound reasoning continues.

A digest is computed block after block, so that of a longer conversation continues from an earlier one. It does not
depend on how blocks are grouped in messages. It is stored with the reasoning of a conversation: its definition must not
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Block, Code, Media, Message, Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import encode_json_sorted
from segue.canonical.layered_map import LayeredMap
from segue.canonical.request import Tool


class PrefixDigest:
    """The digest of system text, tools and messages. It is never changed: `add` returns another one."""

    __slots__ = ("_hash",)

    def __init__(self, system: Sequence[Text], tools: Sequence[Tool]) -> None:
        identity = [[block.text for block in system], [_tool_identity(tool) for tool in tools]]
        self._hash = sha256(encode_json_sorted(identity))

    @property
    def value(self) -> str:
        """The digest in hexadecimal form."""
        return self._hash.hexdigest()

    def add(self, messages: Sequence[Message], changed: frozenset[str] = frozenset()) -> tuple[list[str], PrefixDigest]:
        """Return for each message the digest of everything before it, and the digest of them all.

        `changed` are the ids of calls that are rendered with another id or tool name than the original.
        """
        after = self._hash.copy()
        digests: list[str] = []
        for message in messages:
            digests.append(after.hexdigest())
            for data in _encode_blocks(message, changed):
                after.update(data)
        added = PrefixDigest.__new__(PrefixDigest)
        added._hash = after
        return digests, added


class BoundPrefix(Struct, frozen=True):
    """The messages of earlier renders, for a target whose reasoning is bound to them.

    A render of later messages repeats some of the earlier ones first, the context.
    """

    recorded: PrefixDigest
    """The digest of the messages as recorded."""
    sent: PrefixDigest
    """The digest of the messages as sent."""
    raw_ids: LayeredMap[str, bool]
    """The raw ids of the calls."""
    is_stale: bool = False
    """Whether reasoning was dropped because its prefix has changed: all later reasoning is dropped too."""
    context_length: int = 0
    """The number of messages in the context."""
    rendered_length: int | None = 0
    """The number of messages that the context is rendered as; None if it is all that is rendered."""
    context_reasoning: tuple[Thinking, ...] = ()
    """The reasoning of the context that was kept."""

    def new_messages(self, rendered: Sequence[Message]) -> Sequence[Message]:
        """Return the rendered messages after the context."""
        return () if self.rendered_length is None else rendered[self.rendered_length :]


def _tool_identity(tool: Tool) -> list[Any]:
    return [tool.name, tool.description, tool.parameters, tool.kind]


def _encode_blocks(message: Message, changed: frozenset[str]) -> Iterator[bytes]:
    side = "ai" if message.speaker == "ai" else "user"
    if not message.blocks:
        yield encode_json_sorted([side, "nothing"])
    for block in message.blocks:
        yield encode_json_sorted([side, *_block_identity(block, changed)])


def _block_identity(block: Block, changed: frozenset[str]) -> list[Any]:
    match block:
        case Text():
            return ["text", block.text]
        case Thinking():
            return ["thinking", block.text, block.signature, block.encrypted]
        case ToolCall():
            raw_id = block.id if block.id in changed else block.origin.raw_id
            return ["call", raw_id, block.name, block.arguments, block.arguments_text]
        case ToolResponse():
            content = [_block_identity(part, changed) for part in block.content or ()]
            return ["result", block.call_id, content, block.error]
        case Opaque(native=Native(fragment=fragment)):
            return ["opaque", block.kind, fragment]
        case Media() | Code() | Opaque():
            return ["other", msgspec.to_builtins(msgspec.structs.replace(block, native=None))]
