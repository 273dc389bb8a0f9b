"""Signed thinking blocks of Claude, on both APIs that serve it: the prefix they are bound to, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from segue.conformance.rule import Violation
from segue.emulator.json import list_or_empty, objects, without
from segue.emulator.providers.base import reject
from segue.emulator.seals import Prefix, Seal, Seals, digest
from segue.models import Model

__all__ = ["Conversation", "Thought", "binds", "flat", "misplaced", "prefix_of"]

_MARKS = frozenset({"cache_control", "cachePoint"})


class Thought(NamedTuple):
    """A thinking block in a body. `entries_before` is the number of conversation blocks before it."""

    path: str
    words: str
    signature: Any
    message: int
    before: int


def binds(model: Model) -> bool:
    """ANT-28: from Fable 5.1 on, a block is bound to the prompt before it."""
    return model.family == "claude" and model.at_least(5, 1)


def flat(messages: Iterable[Any]) -> list[Any]:
    """Returns the conversation block by block, independent of message boundaries and without cache markers."""
    entries: list[Any] = []
    for message in objects(list(messages)):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_or_empty(content)
        entries += ([message.get("role"), without(block, _MARKS)] for block in blocks)
    return entries


def prefix_of(system: Any, tools: Any, messages: Iterable[Any]) -> Prefix:
    return Prefix.of(_said(system), without(tools, _MARKS), flat(messages))


def _said(system: Any) -> Any:
    return [{"type": "text", "text": system}] if isinstance(system, str) else without(system, _MARKS)


class Conversation(NamedTuple):
    """The prompt that the thinking blocks of a body belong to."""

    system: Any
    tools: Any
    messages: list[Any]


def misplaced(
    thoughts: list[Thought], conversation: Conversation, seals: Seals, account: str, model: Model, *, lenient: bool
) -> Iterator[Violation]:
    """ANT-25, ANT-26, ANT-28. `lenient`: blocks of another conversation are skipped (`drop_block`)."""
    latest = max((thought.message for thought in thoughts), default=-1)
    replies = (i for i, message in enumerate(objects(conversation.messages)) if message.get("role") == "assistant")
    last = max(replies, default=-1)
    entries = flat(conversation.messages)
    signed_by_reply: dict[str, list[tuple[Thought, Seal]]] = {}
    for thought in thoughts:
        seal = seals.read(thought.signature, account)
        newest = thought.message == latest == last
        if seal is None:
            yield reject("ANT-26", thought.path, "the signature is not from this provider and account")
        elif seal.words != digest(thought.words):
            yield reject("ANT-25" if newest else "ANT-26", thought.path, "the text was changed")
        else:
            if newest:
                signed_by_reply.setdefault(seal.reply, []).append((thought, seal))
            moved = seal.prefix is not None and binds(model) and not lenient
            differs = moved and seal.prefix is not None and _differs(seal.prefix, conversation, entries, thought)
            if differs:
                yield reject("ANT-28", thought.path, differs)
    for blocks in signed_by_reply.values():
        places = [seal.place for _, seal in blocks]
        if places != list(range(blocks[0][1].total)):
            yield reject("ANT-25", blocks[0][0].path, "blocks of one reply are missing or were moved")


def _differs(prefix: Prefix, conversation: Conversation, entries: list[Any], thought: Thought) -> str | None:
    if prefix.count > thought.before:
        return "messages"
    return prefix.differs(_said(conversation.system), without(conversation.tools, _MARKS), entries)
