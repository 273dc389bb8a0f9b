"""Signed thinking blocks of Claude, on both APIs that serve it: the prefix they are bound to, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from segue.conformance.rule import Violation
from segue.emulator.json_values import list_or_empty, objects_in, without_keys
from segue.emulator.prompt_cache import PromptPart
from segue.emulator.providers.provider import make_violation
from segue.emulator.signatures import FOREIGN_SIGNATURE, PromptPrefix, SignaturePayload, Signer, digest
from segue.models import Model

_CACHE_KEYS = frozenset({"cache_control", "cachePoint"})


def cache_minimum(model: Model) -> int:
    """Return the least number of tokens that Claude caches, by model."""
    if model.line == "haiku" or (model.line == "opus" and model.at_least(4, 5)):
        return 4096 if model.at_least(4, 5) else 2048
    return 1024


def marked_parts(tools: Any, system: Any, messages: Iterable[Any], *, marks_all: bool = False) -> list[PromptPart]:
    """Return the prompt part by part, with the marks of both APIs: a key of the block, or a block of its own."""
    roles = [message.get("role") for message in objects_in(list(messages))]
    contents = [message.get("content") for message in objects_in(list(messages))]
    groups = [("tools", tools), ("system", system), *zip(roles, contents, strict=True)]
    parts: list[PromptPart] = []
    for label, content in groups:
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
        for block in blocks:
            keys = frozenset[str](cast("dict[str, Any]", block)) if isinstance(block, dict) else frozenset[str]()
            if "cachePoint" in keys:
                parts[-1:] = [part._replace(is_marked=True) for part in parts[-1:]]
            else:
                is_marked = "cache_control" in keys
                parts.append(PromptPart([label, without_keys(cast("Any", block), _CACHE_KEYS)], is_marked))
    if marks_all:
        parts[-1:] = [part._replace(is_marked=True) for part in parts[-1:]]
    return parts


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
    for message in objects_in(list(messages)):
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
    replies = (i for i, message in enumerate(objects_in(conversation.messages)) if message.get("role") == "assistant")
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
