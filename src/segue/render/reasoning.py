"""The pass that keeps or drops reasoning.

The reasoning passes never change tool calls or results, except for `Native.intact`: so they can't break a pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from segue.canonical.blocks import UNKNOWN_PROVIDER, Block, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.envelope import is_envelope
from segue.canonical.json import are_identical
from segue.models import is_other_model
from segue.render.constraints import PLACEHOLDER_SIGNATURE, TEXTS
from segue.render.draft import Draft, has_reasoning

_NOT_ACCEPTED = "reasoning of {origin} dropped: {api} does not accept it"
_UNSIGNED = "reasoning of {origin} dropped: it has no signature"
_OTHER_MODEL = "reasoning of {origin} dropped: it is valid only for the model that generated it"
_ENVELOPE = "reasoning in {origin} dropped: only the gateway or transport that sealed it can open it"
_INVALID_SIGNATURE = "reasoning of {origin} dropped: its signature is not valid for {api}"
# Texts and signatures (GEM-17) that a client sends where reasoning is required and none is available.
_PLACEHOLDER_TEXTS = ("", TEXTS.reasoning_placeholder)
_PLACEHOLDER_SIGNATURES = ("", PLACEHOLDER_SIGNATURE, "context_engineering_is_the_way_to_go")
_DETACHED = "reasoning of {origin} dropped: the item that followed it is missing"


def filter_reasoning(draft: Draft) -> Draft:
    """Keep reasoning that the target accepts, unchanged; drop other reasoning or render it as text."""

    def filter_message(message: Message) -> Message:
        if not has_reasoning(message):
            return message
        kept_ids = {id(block) for block in _find_keepable(draft, message)}
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, Thinking) and id(block) not in kept_ids:
                blocks += replace_reasoning(draft, block, _drop_reason(draft, block))
            else:
                blocks.append(block)
        return message if are_identical(blocks, message.blocks) else message.with_blocks(tuple(blocks))

    if draft.constraints.reasoning_precedes_item:
        return draft.with_messages(_filter_leading(draft, filter_message))
    return draft.with_messages([filter_message(message) for message in draft.messages])


def _filter_leading(draft: Draft, filter_message: Callable[[Message], Message]) -> Iterator[Message]:
    """Yield filtered messages for `reasoning_precedes_item`: items whose reasoning is dropped lose their ids."""
    detached = False
    for message in draft.messages:
        if message.speaker != "ai":
            yield message
            continue
        filtered = filter_message(message)
        # OAI-RESP-08: the item after dropped reasoning may have been generated with it.
        filtered = mark_rewritten(filtered) if detached or filtered is not message else filtered
        attached = _drop_detached(draft, filtered)
        detached = attached is not filtered and draft.is_native(filtered.blocks[-1])
        yield attached


def _drop_detached(draft: Draft, message: Message) -> Message:
    """Drop trailing reasoning with an item id: the API rejects reasoning without the item after it (OAI-RESP-07)."""
    end = len(message.blocks)
    while end and isinstance(block := message.blocks[end - 1], Thinking) and block.origin.item_id is not None:
        end -= 1
    if end == len(message.blocks):
        return message
    replaced = (new for block in message.blocks[end:] for new in replace_reasoning(draft, block, _DETACHED))
    return message.with_blocks((*message.blocks[:end], *replaced))


def mark_rewritten(message: Message) -> Message:
    """Mark the blocks of a message as not intact, so that they are rendered without the ids of stored items."""
    return message.with_blocks(
        tuple(
            msgspec.structs.replace(block, native=msgspec.structs.replace(block.native, intact=False))
            if block.native is not None and block.native.intact and not _is_fragment_only(block)
            else block
            for block in message.blocks
        )
    )


def _is_fragment_only(block: Block) -> bool:
    """Return whether the block can only be rendered from its original fragment."""
    hosted = (isinstance(block, ToolCall) and block.kind == "hosted") or (
        isinstance(block, ToolResponse) and block.hosted
    )
    return hosted or isinstance(block, Opaque)


def can_keep_reasoning(draft: Draft, message: Message) -> bool:
    """Return whether all reasoning of a message, if any, is kept."""
    return len(_find_keepable(draft, message)) == sum(isinstance(block, Thinking) for block in message.blocks)


def _find_keepable(draft: Draft, message: Message) -> list[Thinking]:
    """Return the reasoning of a message that the target accepts."""
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    if draft.policy.reasoning == "none":
        return []
    # A model that can't reason rejects reasoning of others, but its own body is kept unchanged.
    if not draft.constraints.can_reason and not (draft.is_same_api and draft.model == draft.request.model):
        return []
    if not draft.constraints.allows_reasoning_alone and not any(_has_content(block) for block in message.blocks):
        return []
    replay = draft.constraints.reasoning_replay
    if replay == "refused" or (replay == "newest" and not _is_newest_alone(draft, thoughts)):
        return []
    if replay in ("none", "either"):
        is_own = draft.is_native(message) and draft.policy.reasoning == "native"
        if is_own and all(not _is_sealed(block) and _is_from_model(draft, block) for block in thoughts):
            return thoughts
        if replay == "none":
            return []
    own = [block for block in thoughts if _is_from_target(draft, block)]
    # ANT-25: all signed reasoning of a message or none
    return [] if replay != "plain" and len(own) < len(thoughts) else own


def _is_newest_alone(draft: Draft, thoughts: list[Thinking]) -> bool:
    """Return whether reasoning of a same-API body has its ids, and no reply but the newest has encrypted reasoning."""
    if not draft.is_same_api or any(block.origin.item_id is None for block in thoughts):
        return False
    end = max((at + 1 for at, message in enumerate(draft.messages) if message.speaker == "ai"), default=0)
    while end and draft.messages[end - 1].speaker == "ai":
        end -= 1
    older = (block for message in draft.messages[:end] for block in message.blocks)
    return not any(isinstance(block, Thinking) and block.encrypted for block in older)


def _has_content(block: Block) -> bool:
    return not isinstance(block, Thinking) and not (isinstance(block, Text) and not block.text)


def _is_sealed(block: Thinking) -> bool:
    """Return whether the block is an envelope, which no provider accepts, whatever API the block came from."""
    return is_envelope(block.signature) or is_envelope(block.encrypted)


def _drop_reason(draft: Draft, block: Thinking) -> str:
    if _is_sealed(block):
        return _ENVELOPE
    if block.origin.provider != draft.constraints.provider:
        return _NOT_ACCEPTED
    if _has_invalid_signature(draft, block):
        return _INVALID_SIGNATURE
    if draft.constraints.reasoning_replay != "signed":
        return _NOT_ACCEPTED
    if not block.signature and not block.encrypted:
        return _UNSIGNED
    return _NOT_ACCEPTED if _is_from_model(draft, block) else _OTHER_MODEL


def _has_invalid_signature(draft: Draft, block: Thinking) -> bool:
    """Return whether the signature is damaged (GEM-18). A missing signature is not invalid."""
    own = block.origin.provider == draft.constraints.provider
    return (
        own and bool(block.signature) and not re.fullmatch(draft.constraints.signature_pattern, block.signature or "")
    )


def _is_from_target(draft: Draft, block: Thinking) -> bool:
    if _is_sealed(block):
        return False
    if block.origin.provider == UNKNOWN_PROVIDER and draft.constraints.accepts_unknown_reasoning:
        return bool(block.text)
    if block.origin.provider != draft.constraints.provider or _has_invalid_signature(draft, block):
        return False
    if draft.constraints.reasoning_replay == "plain":
        return True
    # ANT-26: a block without its signature is rejected.
    if not block.signature and not block.encrypted:
        return False
    return _is_from_model(draft, block)


def _is_from_model(draft: Draft, block: Thinking) -> bool:
    """Return whether the target's model accepts the block, where reasoning is bound to the model (ANT-29)."""
    generated_by = _model_of(draft, block)
    if draft.constraints.reasoning_binding == "provider" or generated_by is None or draft.model is None:
        return True
    return not is_other_model(generated_by, draft.model)


def _model_of(draft: Draft, block: Thinking) -> str | None:
    """Return the model that generated the block: recorded with replies only, else the one that its body names."""
    return block.origin.model or (draft.request.model if draft.policy.body_model == "exact" else None)


def replace_reasoning(draft: Draft, block: Block, why: str) -> list[Block]:
    """Return the replacement for reasoning that is not kept: its text, or nothing. Other blocks are kept."""
    if not isinstance(block, Thinking):
        return [block]
    if not has_reasoning_content(block.text, block.signature, block.encrypted):
        return []
    if draft.policy.reasoning == "text" and block.text:
        draft.report.add("reasoning", "reasoning rendered as text", subject=block.origin.provider, level="changed")
        return [Text(TEXTS.reasoning.format(content=block.text))]
    origin = _model_of(draft, block) if why is _OTHER_MODEL else None
    origin = origin or _describe_origin(block)
    draft.report.add("reasoning", why.format(origin=origin, api=draft.constraints.api), subject=origin)
    return []


def _describe_origin(block: Thinking) -> str:
    if _is_sealed(block):
        return "an envelope of segue"
    origin = block.origin.model or block.origin.provider
    return "an unknown model" if origin == UNKNOWN_PROVIDER else origin


def has_reasoning_content(text: str, signature: str | None = None, encrypted: str | None = None) -> bool:
    """Return whether a reasoning block has content: a placeholder for missing reasoning has none."""
    return encrypted is not None or text not in _PLACEHOLDER_TEXTS or (signature or "") not in _PLACEHOLDER_SIGNATURES
