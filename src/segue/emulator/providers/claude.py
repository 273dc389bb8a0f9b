"""Signed thinking blocks of Claude, on both APIs that serve it: the prefix they are bound to, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from segue.conformance.rule import Violation
from segue.emulator.providers.provider import make_violation
from segue.emulator.signatures import FOREIGN_SIGNATURE, PromptPrefix, SignaturePayload, Signer, digest
from segue.models import Model
from segue.wire.json_values import list_or_empty, object_list, without_keys

_CACHE_KEYS = frozenset({"cache_control", "cachePoint"})


class ThinkingBlock(NamedTuple):
    """A thinking block in a body. `entries_before` is the number of conversation blocks before it."""

    path: str
    text: str
    signature: Any
    message_index: int
    entries_before: int


def _is_prefix_bound(model: Model) -> bool:
    """ANT-28: from Fable 5.1 on, a block is bound to the prompt before it."""
    return model.family == "claude" and model.at_least(5, 1)


def _flatten_blocks(messages: Iterable[Any]) -> list[Any]:
    """Return the conversation block by block, independent of message boundaries and without cache markers."""
    entries: list[Any] = []
    for message in object_list(list(messages)):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
        entries += ([message.get("role"), without_keys(block, _CACHE_KEYS)] for block in blocks)
    return entries


def make_prefix(system: Any, tools: Any, messages: Iterable[Any]) -> PromptPrefix:
    return PromptPrefix.of_prompt(_system_blocks(system), without_keys(tools, _CACHE_KEYS), _flatten_blocks(messages))


def _system_blocks(system: Any) -> Any:
    return [{"type": "text", "text": system}] if isinstance(system, str) else without_keys(system, _CACHE_KEYS)


class PromptParts(NamedTuple):
    """The prompt that the thinking blocks of a body belong to."""

    system: Any
    tools: Any
    messages: list[Any]


def check_thinking(
    thoughts: list[ThinkingBlock],
    conversation: PromptParts,
    signer: Signer,
    account: str,
    model: Model,
    *,
    lenient: bool,
) -> Iterator[Violation]:
    """ANT-25, ANT-26, ANT-28. `lenient`: blocks of another conversation are skipped (`drop_block`)."""
    latest = max((thought.message_index for thought in thoughts), default=-1)
    replies = (i for i, message in enumerate(object_list(conversation.messages)) if message.get("role") == "assistant")
    last = max(replies, default=-1)
    entries = _flatten_blocks(conversation.messages)
    signed_by_reply: dict[str, list[tuple[ThinkingBlock, SignaturePayload]]] = {}
    for thought in thoughts:
        signed_payload = signer.verify(thought.signature, account)
        newest = thought.message_index == latest == last
        if signed_payload is None:
            yield make_violation("ANT-26", thought.path, FOREIGN_SIGNATURE)
        elif signed_payload.text_digest != digest(thought.text):
            yield make_violation("ANT-25" if newest else "ANT-26", thought.path, "the text was changed")
        else:
            if newest:
                signed_by_reply.setdefault(signed_payload.reply, []).append((thought, signed_payload))
            is_bound = signed_payload.prefix is not None and _is_prefix_bound(model) and not lenient
            differs = (
                is_bound
                and signed_payload.prefix is not None
                and _find_difference(signed_payload.prefix, conversation, entries, thought)
            )
            if differs:
                yield make_violation("ANT-28", thought.path, differs)
    for blocks in signed_by_reply.values():
        places = [signed_payload.index for _, signed_payload in blocks]
        if places != list(range(blocks[0][1].total)):
            yield make_violation("ANT-25", blocks[0][0].path, "blocks of one reply are missing or were moved")


def _find_difference(
    prefix: PromptPrefix, conversation: PromptParts, entries: list[Any], thought: ThinkingBlock
) -> str | None:
    if prefix.count > thought.entries_before:
        return "messages"
    return prefix.find_difference(
        _system_blocks(conversation.system), without_keys(conversation.tools, _CACHE_KEYS), entries
    )
