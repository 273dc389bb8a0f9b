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
    blocks: list[Block] = []
    calls: list[ToolCall] = []
    results: list[ToolResponse] = []
    parts: list[Block] = []
    texts: list[str] = []
    has_hosted = has_failures = has_omitted = has_blanks = False
    for message in messages:
        if not message.blocks:
            has_blanks = True
        blocks += message.blocks
    for block in blocks:
        if type(block) is Text:
            texts.append(block.text)
        elif type(block) is ToolCall:
            calls.append(block)
            has_hosted = has_hosted or block.kind == "hosted"
            has_omitted = has_omitted or block.broken
        elif type(block) is ToolResponse:
            results.append(block)
            parts += block.content or ()
            has_hosted = has_hosted or block.hosted
            has_failures = has_failures or block.error or block.outcome is not None
        elif type(block) is Opaque:
            has_omitted = has_omitted or block.omit_reason is not None
    texts += [part.text for part in parts if type(part) is Text]
    return Contents(
        blocks=tuple(blocks),
        calls=tuple(calls),
        results=tuple(results),
        parts=tuple(parts),
        speakers=frozenset([message.speaker for message in messages]),
        block_types=frozenset(map(type, blocks)),
        part_types=frozenset(map(type, parts)),
        has_names=bool([None for message in messages if message.name]),
        has_hosted=has_hosted,
        has_failures=has_failures,
        has_omitted=has_omitted,
        has_blanks=has_blanks or "" in texts or any(map(str.isspace, texts)),
    )
