"""The pass about what reasoning goes back to its maker.

Reasoning never breaks a pair: the passes about it touch `Thinking` blocks and options, and of other blocks no more than
the promise that their fragment may go back as it is.
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

_NOT_OWN = "reasoning of {whose} can't go to {api}: left out"
_DAMAGED = "the signature of this reasoning of {whose} is none that {api} makes: left out"
_DETACHED = "reasoning of {whose} without what was made with it: left out"


def reasoning(draft: Draft) -> Draft:
    """Reasoning goes back to who made it, whole; the rest is left out or told as text."""

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
    """The messages where reasoning stands before what was made with it; without it, that goes back without its name."""
    torn = False
    for message in draft.messages:
        if message.speaker != "ai":
            yield message
            continue
        made = kept(message)
        # OAI-RESP-08: what comes after reasoning that was torn from it may have been made with it.
        made = unnamed(made) if torn or made is not message else made
        attached = _without_detached(draft, made)
        torn = attached is not made and draft.at_home(made.blocks[-1])
        yield attached


def _without_detached(draft: Draft, message: Message) -> Message:
    """OAI-RESP-07: of reasoning at the end nobody knows what was made with it. What bears no id is not looked up."""
    end = len(message.blocks)
    while end and isinstance(block := message.blocks[end - 1], Thinking) and block.origin.item_id is not None:
        end -= 1
    if end == len(message.blocks):
        return message
    told = (made for block in message.blocks[end:] for made in told_thinking(draft, block, _DETACHED))
    return message.holding((*message.blocks[:end], *told))


def unnamed(message: Message) -> Message:
    """The message with blocks that are written anew, so that they no longer claim to be what the provider keeps."""
    return message.holding(
        tuple(
            msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))
            if block.native is not None and block.native.intact and not _is_whole(block)
            else block
            for block in message.blocks
        )
    )


def _is_whole(block: Block) -> bool:
    """Whether nothing could be written in place of what the API gave."""
    hosted = (isinstance(block, ToolCall) and block.kind == "hosted") or (
        isinstance(block, ToolResponse) and block.hosted
    )
    return hosted or isinstance(block, Opaque)


def keeps_reasoning(draft: Draft, message: Message) -> bool:
    """Whether the reasoning of a message, if it has any, goes back."""
    return len(_staying(draft, message)) == sum(isinstance(block, Thinking) for block in message.blocks)


def _staying(draft: Draft, message: Message) -> list[Thinking]:
    """The reasoning of a message that may go back."""
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    if draft.policy.reasoning == "none":
        return []
    # A model that does not reason refuses what others thought, but a body that is its own stands.
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
    """GEM-18: a damaged signature is worse than none."""
    own = block.origin.provider == draft.demands.provider
    return own and bool(block.signature) and not re.fullmatch(draft.demands.own_signature, block.signature or "")


def _is_own(draft: Draft, block: Thinking) -> bool:
    if block.origin.provider != draft.demands.provider or _is_damaged(draft, block):
        return False
    if draft.demands.reasoning == "plain":
        return True
    # ANT-26: a block without its signature is refused.
    if not block.signature and not block.sealed:
        return False
    return _of_this_model(draft, block)


def _of_this_model(draft: Draft, block: Thinking) -> bool:
    """ANT-29: reasoning may be bound to the producing model."""
    if draft.demands.reasoning_bound == "provider" or block.origin.model is None or draft.model is None:
        return True
    return same_model(block.origin.model, draft.model)


def told_thinking(draft: Draft, block: Block, why: str) -> list[Block]:
    """What stands for reasoning that is not kept: its text, or nothing; any other block stays."""
    if not isinstance(block, Thinking):
        return [block]
    if draft.policy.reasoning == "text" and block.text and not _is_placeholder(block):
        draft.report.add("reasoning", "reasoning is told as text", subject=block.origin.provider)
        return [Text(TEXTS.reasoning.format(content=block.text))]
    whose = block.origin.model or block.origin.provider
    draft.report.add("reasoning", why.format(whose=whose, api=draft.demands.api), subject=whose)
    return []


def _is_placeholder(block: Thinking) -> bool:
    return block.text == TEXTS.no_reasoning
