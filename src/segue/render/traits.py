"""Traits: what occurs in a draft, and so determines which passes have work.

A draft without a trait has nothing of that kind. The reverse need not hold: a pass may find that nothing has to change
for its target. Traits are computed once, and again after a pass that changed the draft in a way that may add others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from segue.canonical.blocks import Code, Media, Message, Opaque, Speaker, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.contents import Contents
from segue.render.draft import Draft

NamedTrait: TypeAlias = Literal[
    "first or last message",  # the first is not of the user, or the last is of the model, of the system, or empty
    "blank",  # a message has no blocks but reasoning, or a text is empty or white space, also outside of the messages
    "duplicate or pending result",  # a call has several results, or a result is pending
    "declared tools",
    "earlier history",  # the request continues a state that the provider holds
    "failure",  # a result has the error flag or an outcome
    "hosted",
    "nested call",
    "number options",
    "omitted",
    "orphan",
    "prefill",
    "reasoning options",
    "response format",
    "system text",  # outside of the messages
    "tool choice",
    "unanswered call",
]
Trait: TypeAlias = NamedTrait | Speaker | type | tuple[Speaker, Speaker | type | int]
"""A speaker; a type of block, also inside results; one of the names; or a pair that begins with a speaker: two
neighbours, a block of this type in a message of this speaker, or a message of this speaker with `NO_BLOCKS` or
`SEVERAL_BLOCKS`."""

NO_BLOCKS = 0
SEVERAL_BLOCKS = 2
_SIZES = {0: NO_BLOCKS, 1: 1}
BLOCK_TYPES: tuple[type, ...] = (Text, Thinking, ToolCall, ToolResponse, Media, Code, Opaque)
SPEAKERS: tuple[Speaker, ...] = ("system", "human", "ai", "tool")


def find_traits(draft: Draft, contents: Contents) -> set[Trait]:
    """Return the traits of a draft; `contents` are those of its messages."""
    messages = draft.messages
    speakers: list[Speaker] = [message.speaker for message in messages]
    return {
        *contents.speakers,
        *contents.block_types,
        *contents.part_types,
        *pairwise(speakers),
        *[(message.speaker, _SIZES.get(len(message.blocks), SEVERAL_BLOCKS)) for message in messages],
        *[(message.speaker, type(block)) for message in messages for block in message.blocks],
        *[name for name, occurs in _named_traits(draft, contents) if occurs],
        *(_find_pairing_traits(contents) if contents.calls or contents.results else ()),
    }


def _named_traits(draft: Draft, contents: Contents) -> Iterable[tuple[NamedTrait, bool]]:
    options = draft.options
    return (
        ("first or last message", _has_bare_end(draft.messages)),
        ("blank", contents.has_blanks or _has_blank_system(draft) or _has_only_reasoning(draft, contents)),
        ("declared tools", bool(draft.tools)),
        ("earlier history", draft.request.continues is not None),
        ("failure", contents.has_failures),
        ("hosted", contents.has_hosted),
        ("number options", any(getattr(options, name) is not None for name in draft.constraints.option_ranges)),
        ("omitted", contents.has_omitted),
        ("prefill", True in [message.prefill for message in draft.request.messages]),
        ("reasoning options", options.reasoning is not None),
        ("response format", options.response_format is not None),
        ("system text", bool(draft.system)),
        ("tool choice", options.tool_choice is not None),
    )


def _has_blank_system(draft: Draft) -> bool:
    return any(not block.text or block.text.isspace() for block in draft.system)


def _has_only_reasoning(draft: Draft, contents: Contents) -> bool:
    """Return whether a message has nothing but reasoning, so that it may become empty."""
    if Thinking not in contents.block_types:
        return False
    return {Thinking} in [{*map(type, message.blocks)} for message in draft.messages]


def _has_bare_end(messages: Sequence[Message]) -> bool:
    for message in messages:
        if message.speaker != "system":
            is_user = message.speaker == "human"
            return not is_user or not messages[-1].blocks or messages[-1].speaker not in ("human", "tool")
    return True


def _find_pairing_traits(contents: Contents) -> list[NamedTrait]:
    traits: list[NamedTrait] = []
    called = {call.id for call in contents.calls}
    answered = {result.call_id for result in contents.results}
    may_be_pending = [
        None
        for result in contents.results
        if result.is_complete is False or (result.content is None and not result.is_complete)
    ]
    if [None for call in contents.calls if call.origin.parent is not None]:
        traits.append("nested call")
    if not called <= answered:
        traits.append("unanswered call")
    if not answered <= called:
        traits.append("orphan")
    if len(answered) < len(contents.results) or may_be_pending:
        traits.append("duplicate or pending result")
    return traits
