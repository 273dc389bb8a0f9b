"""The pass that keeps or drops reasoning.

Reasoning never breaks a pair: the reasoning passes change `Thinking` blocks and options, and on other blocks only
`Native.intact`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from segue.canonical.blocks import Block, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.models import same_model
from segue.render.demands import TEXTS
from segue.render.draft import Draft, same_objects, thinks

__all__ = ["keeps_reasoning", "reasoning", "told_thinking", "unnamed"]

_NOT_OWN = "reasoning of {whose} dropped: {api} does not accept it"
_DAMAGED = "reasoning of {whose} dropped: its signature is not valid for {api}"
_DETACHED = "reasoning of {whose} dropped: the item that followed it is missing"


def reasoning(draft: Draft) -> Draft:
    """Keep reasoning that the target accepts, whole; drop the rest or render it as text."""

    def kept(message: Message) -> Message:
        if not thinks(message):
            return message
        stays = {id(block) for block in _staying(draft, message)}
        blocks: list[Block] = []
        for block in message.blocks:
            blocks += [block] if id(block) in stays else told_thinking(draft, block, _why_not(draft, block))
        return message if same_objects(blocks, message.blocks) else message.holding(tuple(blocks))

    if draft.demands.reasoning_leads:
        return draft.with_messages(_leading(draft, kept))
    return draft.with_messages(kept(message) for message in draft.messages)


def _leading(draft: Draft, kept: Callable[[Message], Message]) -> Iterator[Message]:
    """Yield messages for a target where reasoning precedes its item; without it the item is rendered without its id."""
    detached = False
    for message in draft.messages:
        if message.speaker != "ai":
            yield message
            continue
        made = kept(message)
        # OAI-RESP-08: the item after dropped reasoning may have been made with it.
        made = unnamed(made) if detached or made is not message else made
        attached = _without_detached(draft, made)
        detached = attached is not made and draft.at_home(made.blocks[-1])
        yield attached


def _without_detached(draft: Draft, message: Message) -> Message:
    """OAI-RESP-07: drop trailing reasoning with an item id: the API rejects reasoning without its following item."""
    end = len(message.blocks)
    while end and isinstance(block := message.blocks[end - 1], Thinking) and block.origin.item_id is not None:
        end -= 1
    if end == len(message.blocks):
        return message
    replaced = (made for block in message.blocks[end:] for made in told_thinking(draft, block, _DETACHED))
    return message.holding((*message.blocks[:end], *replaced))


def unnamed(message: Message) -> Message:
    """Mark the blocks of a message as not intact, so that they are rendered without the ids of stored items."""
    return message.holding(
        tuple(
            msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))
            if block.native is not None and block.native.intact and not _is_whole(block)
            else block
            for block in message.blocks
        )
    )


def _is_whole(block: Block) -> bool:
    """Whether the block can only be rendered from its original fragment."""
    hosted = (isinstance(block, ToolCall) and block.kind == "hosted") or (
        isinstance(block, ToolResponse) and block.hosted
    )
    return hosted or isinstance(block, Opaque)


def keeps_reasoning(draft: Draft, message: Message) -> bool:
    """Whether all reasoning of a message, if any, is kept."""
    return len(_staying(draft, message)) == sum(isinstance(block, Thinking) for block in message.blocks)


def _staying(draft: Draft, message: Message) -> list[Thinking]:
    """Return the reasoning of a message that the target accepts."""
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    if draft.policy.reasoning == "none":
        return []
    # A model that can't reason rejects reasoning of others, but its own body is kept unchanged.
    if not draft.demands.reasons and not (draft.home and draft.model == draft.request.model):
        return []
    if not draft.demands.reasoning_alone and not any(_says_something(block) for block in message.blocks):
        return []
    if draft.demands.reasoning == "refused":
        return []
    if draft.demands.reasoning == "none":
        stays = draft.at_home(message) and draft.policy.reasoning == "native"
        return thoughts if stays and all(_of_this_model(draft, block) for block in thoughts) else []
    own = [block for block in thoughts if _is_own(draft, block)]
    # ANT-25: all of it or none
    return [] if draft.demands.reasoning_whole and len(own) < len(thoughts) else own


def _says_something(block: Block) -> bool:
    return not isinstance(block, Thinking) and not (isinstance(block, Text) and not block.text)


def _why_not(draft: Draft, block: Block) -> str:
    return _DAMAGED if isinstance(block, Thinking) and _is_damaged(draft, block) else _NOT_OWN


def _is_damaged(draft: Draft, block: Thinking) -> bool:
    """GEM-18: a damaged signature is rejected, a missing one is not."""
    own = block.origin.provider == draft.demands.provider
    return own and bool(block.signature) and not re.fullmatch(draft.demands.own_signature, block.signature or "")


def _is_own(draft: Draft, block: Thinking) -> bool:
    if block.origin.provider != draft.demands.provider or _is_damaged(draft, block):
        return False
    if draft.demands.reasoning == "plain":
        return True
    # ANT-26: a block without its signature is rejected.
    if not block.signature and not block.sealed:
        return False
    return _of_this_model(draft, block)


def _of_this_model(draft: Draft, block: Thinking) -> bool:
    """ANT-29: reasoning may be bound to the producing model."""
    if draft.demands.reasoning_bound == "provider" or block.origin.model is None or draft.model is None:
        return True
    return same_model(block.origin.model, draft.model)


def told_thinking(draft: Draft, block: Block, why: str) -> list[Block]:
    """Return the replacement for reasoning that is not kept: its text, or nothing. Other blocks are kept."""
    if not isinstance(block, Thinking):
        return [block]
    if draft.policy.reasoning == "text" and block.text and not _is_placeholder(block):
        draft.report.add("reasoning", "reasoning rendered as text", subject=block.origin.provider)
        return [Text(TEXTS.reasoning.format(content=block.text))]
    whose = block.origin.model or block.origin.provider
    draft.report.add("reasoning", why.format(whose=whose, api=draft.demands.api), subject=whose)
    return []


def _is_placeholder(block: Thinking) -> bool:
    return block.text == TEXTS.no_reasoning
