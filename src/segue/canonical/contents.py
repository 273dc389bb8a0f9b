"""`Contents`: all blocks of a list of messages in order, and a summary of what occurs among them.

Most conversations have no media, no hosted tools and no failed results. Code for such content reads the summary, which
one walk computes for all, and does not walk the messages itself where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from segue.canonical.blocks import Block, Message, Opaque, Speaker, Text, ToolCall, ToolResponse


class Contents(Struct, frozen=True, gc=False):
    """What occurs in a list of messages.

    `parts` are the blocks inside results. `block_types` and `part_types` are the types of `blocks` and of `parts`.
    """

    blocks: tuple[Block, ...]
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResponse, ...]
    parts: tuple[Block, ...]
    speakers: frozenset[Speaker]
    block_types: frozenset[type]
    part_types: frozenset[type]
    has_names: bool
    """Whether a message has a name."""
    has_hosted: bool
    """Whether a call or a result is of a hosted tool."""
    has_failures: bool
    """Whether a result has the error flag or an outcome."""
    has_omitted: bool
    """Whether a block is no part of the conversation: a call that was cut off, or an `Opaque` with `omit_reason`."""
    has_blanks: bool
    """Whether a message has no blocks, or a text, also inside a result, is empty or white space."""

    def has_type(self, *types: type) -> bool:
        """Return whether a block of one of these types occurs, in a message or inside a result."""
        return not self.block_types.isdisjoint(types) or not self.part_types.isdisjoint(types)


def summarize(messages: Sequence[Message]) -> Contents:
    """Return the contents of these messages."""
    blocks = [block for message in messages for block in message.blocks]
    block_types = frozenset(map(type, blocks))
    calls = [block for block in blocks if type(block) is ToolCall] if ToolCall in block_types else []
    results = [block for block in blocks if type(block) is ToolResponse] if ToolResponse in block_types else []
    parts = [part for result in results for part in result.content or ()]
    texts = [block.text for block in (*blocks, *parts) if type(block) is Text]
    return Contents(
        blocks=tuple(blocks),
        calls=tuple(calls),
        results=tuple(results),
        parts=tuple(parts),
        speakers=frozenset([message.speaker for message in messages]),
        block_types=block_types,
        part_types=frozenset(map(type, parts)),
        has_names=bool([None for message in messages if message.name]),
        has_hosted=bool(
            [None for call in calls if call.kind == "hosted"] or [None for result in results if result.hosted]
        ),
        has_failures=bool([None for result in results if result.error or result.outcome is not None]),
        has_omitted=bool([None for call in calls if call.broken])
        or (
            Opaque in block_types
            and any(isinstance(block, Opaque) and block.omit_reason is not None for block in blocks)
        ),
        has_blanks="" in texts or any(map(str.isspace, texts)) or bool([None for m in messages if not m.blocks]),
    )
