"""Cuts: positions in a conversation where the messages before can be rendered without those after.

A message is *local* if it is rendered without regard to messages before the context, and *plain* if it is also rendered
as one message of its speaker.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeAlias

from msgspec import Struct

from segue.canonical.blocks import Block, Media, Message, Text, Thinking, ToolCall, ToolResponse, calls_of, responses_of

DeclaredTools: TypeAlias = frozenset[tuple[str, str]]
"""The names and kinds of tools."""


class Cut(Struct, frozen=True):
    """A position in a list of messages, and the context that stands for the messages before it."""

    position: int
    context: tuple[Message, ...]


def find_cuts(
    messages: Sequence[Message], declared: DeclaredTools | None, *, reads_first_turn: bool, drops_blank_results: bool
) -> list[Cut]:
    """Return the cuts between results or a user message and a reply, in exchanges that are plain up to there."""
    cuts: list[Cut] = []
    open_ids: set[str] = set()
    # The position of each call.
    called: dict[str, int] = {}
    early_ids: set[str] = set()
    # The calls with a result that the target does not drop.
    kept_ids = {
        block.call_id
        for message in messages
        for block in message.blocks
        if type(block) is ToolResponse and (not drops_blank_results or _has_text(block))
    }
    # The position of the user message of the exchange, None if it can't be cut; its context, once the first turn ended.
    start: int | None = None
    context: tuple[Message, ...] = ()
    last_reply: Message | None = None
    for position, message in enumerate(messages):
        if message.speaker == "human":
            start = position if _is_plain(message, declared) and _is_kept(message) else None
            context = ()
        elif not _is_plain(message, declared):
            start = None
        if start is not None and message.speaker == "ai" and messages[position - 1].speaker != "ai":
            if reads_first_turn and start < position - 1 and not context:
                context = tuple(messages[start:position])
                start = start if _is_complete(context, kept_ids) else None
            # Results of a reply before the last one are moved to it, and then two replies are neighbours.
            is_after_results = messages[position - 1].speaker == "human" or _has_results(last_reply, kept_ids)
            is_closed = is_after_results and not open_ids and not _ends_with_reasoning(last_reply)
            if start is not None and is_closed and can_follow_cut(message):
                cuts.append(Cut(position, context or (messages[start],)))
        last_reply = message if message.speaker == "ai" else last_reply
        for block in message.blocks:
            if type(block) is ToolCall and block.kind != "hosted" and not block.broken:
                called[block.id] = position
                open_ids.add(block.id)
                if block.id in early_ids:
                    # An early result would be moved across the cut.
                    cuts.clear()
            elif type(block) is ToolResponse:
                open_ids.discard(block.call_id)
                if block.call_id not in called:
                    early_ids.add(block.call_id)
                    # Without a call it becomes the user message of another exchange.
                    start = None
                else:
                    # A second result belongs to a call before the cut.
                    _drop_cuts_after(cuts, called[block.call_id])
        open_ids -= early_ids
    return cuts


def can_follow_cut(message: Message) -> bool:
    """Return whether there may be a cut before this message: it is a reply that no target drops."""
    return message.speaker == "ai" and _is_kept(message)


def has_plain_exchange(messages: Sequence[Message]) -> bool:
    """Return whether the last exchange is plain, as far as its messages show: else there is no cut at its end."""
    for message in reversed(messages):
        if not _is_plain(message, None):
            return False
        if message.speaker == "human":
            return True
    return False


def _has_text(result: ToolResponse) -> bool:
    return any(isinstance(part, Text) and part.text.strip() for part in result.content or ())


def _has_results(reply: Message | None, kept_ids: Container[str]) -> bool:
    """Return whether results follow this reply, once they stand after their calls."""
    for block in reply.blocks if reply is not None else ():
        if type(block) is ToolCall and block.kind != "hosted" and not block.broken and block.id in kept_ids:
            return True
    return False


def _drop_cuts_after(cuts: list[Cut], position: int) -> None:
    while cuts and cuts[-1].position > position:
        cuts.pop()


def _is_complete(context: Sequence[Message], kept_ids: Container[str]) -> bool:
    """Return whether the first turn of an exchange has calls, and exactly their results."""
    call_ids = sorted(call.id for message in context for call in calls_of(message))
    last_reply = next((message for message in reversed(context) if message.speaker == "ai"), None)
    result_ids = sorted(result.call_id for message in context for result in responses_of(message))
    return _has_results(last_reply, kept_ids) and call_ids == result_ids


def _is_plain(message: Message, declared: DeclaredTools | None) -> bool:
    """Return whether the message is rendered as one message of its speaker, without regard to distant messages."""
    if message.prefill or message.speaker == "system":
        return False
    return False not in [_is_plain_block(block, message.speaker, declared) for block in message.blocks]


def _is_plain_block(block: Block, speaker: str, declared: DeclaredTools | None) -> bool:
    match block:
        case Text():
            return speaker != "tool"
        case Thinking():
            return speaker == "ai"
        case Media():
            return speaker == "human" and is_local(block, declared)
        case ToolCall():
            return speaker == "ai" and is_local(block, declared)
        case ToolResponse():
            # Media in results may become a user message.
            return speaker == "tool" and not block.hosted and {*map(type, block.content or ())} <= {Text}
        case _:
            return False


def is_local(block: Block, declared: DeclaredTools | None) -> bool:
    """Return whether the block is rendered without regard to messages before the context."""
    match block:
        case Text() | Thinking():
            return True
        case Media():
            # The names of documents are made unique over all messages.
            return block.kind != "document"
        case ToolCall():
            is_client_call = block.kind != "hosted" and not block.broken and not block.origin.is_approval
            # The parents of nested calls are looked up in all messages.
            is_declared = declared is None or (block.name, block.kind) in declared
            return is_client_call and is_declared and block.origin.parent is None
        case ToolResponse():
            return not block.hosted and all(is_local(part, declared) for part in block.content or ())
        case _:
            return False


def _is_kept(message: Message) -> bool:
    """Return whether no target drops the message as empty."""
    for block in message.blocks:
        kind = type(block)
        if kind is ToolCall or kind is Media or (type(block) is Text and block.text and not block.text.isspace()):
            return True
    return False


def _ends_with_reasoning(message: Message | None) -> bool:
    """Return whether the reply ends with reasoning, or with nothing: the next one may belong to that."""
    return message is not None and (not message.blocks or isinstance(message.blocks[-1], Thinking))
