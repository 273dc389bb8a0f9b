"""The passes about completions: which result of a call counts, what has none, and what belongs to no call."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import msgspec

from segue.canonical.blocks import Block, Message, State, Text, ToolCall, ToolResponse, one_text, state_of
from segue.canonical.jsontext import write_text
from segue.canonical.pairing import same_content
from segue.render.demands import TEXTS
from segue.render.draft import Draft, client_calls, client_responses

__all__ = ["complete", "orphans", "settle", "told_result", "words_of"]

_RANK: dict[State, int] = {"complete": 0, "error": 1, "cancelled": 2, "interrupted": 3}


def settle(draft: Draft) -> Draft:
    """One result a call: the best of several, the first among equals. Partial output is no result."""
    chosen: dict[str, ToolResponse] = {}
    crowded: set[str] = set()
    for response in client_responses(draft):
        held = chosen.get(response.call_id)
        if held is None:
            chosen[response.call_id] = response
        if held is not None or state_of(response) == "pending":
            crowded.add(response.call_id)
        if held is not None and _rank(response) < _rank(held):
            chosen[response.call_id] = response
    if not crowded:
        return draft

    def keep(_message: Message, block: Block) -> list[Block]:
        if not draft.pairs_result(block) or block.call_id not in crowded:
            return [block]
        best = chosen[block.call_id]
        if block is best and state_of(block) != "pending":
            return [block]
        why = "partial output" if block is best else _why_not(block, best)
        draft.report.add("dedupe", f"{why}: left out", call_id=block.call_id, subject=words_of(block))
        return []

    settled = draft.map_blocks(keep)
    return settled.with_messages(part for message in settled.messages for part in _tidied(message))


def _tidied(message: Message) -> list[Message]:
    """A tool message without results is a human's, or nothing."""
    if message.speaker != "tool" or any(isinstance(block, ToolResponse) for block in message.blocks):
        return [message]
    return [message.holding(message.blocks, speaker="human")] if message.blocks else []


def _rank(response: ToolResponse) -> int:
    return _RANK.get(state_of(response), len(_RANK))


def _why_not(block: ToolResponse, best: ToolResponse) -> str:
    if same_content(block, best):
        return "a repeated result"
    return f"another result, {state_of(block)}, beside one that is {state_of(best)}"


def words_of(response: ToolResponse) -> str | None:
    """What a left-out result said: it is in the report, since it is not in the body."""
    told = told_result(response, "")[0]
    return told.text.strip() if isinstance(told, Text) else None


def told_result(response: ToolResponse, label: str) -> list[Block]:
    """A result as words: the label and the text, then what is not text."""
    content = response.content or ()
    words = [block.text for block in content if isinstance(block, Text)]
    if response.structured is not msgspec.UNSET:
        words.append(write_text(response.structured))
    return [Text(one_text([label, *words])), *(block for block in content if not isinstance(block, Text))]


def orphans(draft: Draft) -> Draft:
    """A result whose call is not here is told as text, where it stood."""
    called = {block.id for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)}
    elsewhere: frozenset[str] = frozenset()
    if draft.request.continues is not None and draft.home:
        elsewhere = _answers_elsewhere(draft)
    elif draft.request.continues is not None:
        draft.report.add("dropped", f"this body goes on from {draft.request.continues}, which it does not hold")
    given = [block for message in draft.messages for block in message.blocks if isinstance(block, ToolResponse)]
    lost = {response.call_id for response in given if not _stands_alone(response)} - called - draft.loose - elsewhere
    if not lost:
        return draft

    def is_orphan(block: Block) -> bool:
        return isinstance(block, ToolResponse) and block.call_id in lost

    messages: list[Message] = []
    for message in draft.messages:
        found = any(is_orphan(block) for block in message.blocks)
        messages += _with_orphans_told(draft, message, is_orphan) if found else [message]
    return draft.with_messages(messages)


def _stands_alone(response: ToolResponse) -> bool:
    """Whether the provider gave this without a call: the item's own id is all that it can be known by (AZF-09)."""
    return response.hosted and response.origin.identity == "conflated"


def _answers_elsewhere(draft: Draft) -> frozenset[str]:
    """Results of calls that the provider may hold: each that bears an id, the first of those that bear the same."""
    found: dict[tuple[str, bool], str] = {}
    for message in draft.messages:
        for block in message.blocks:
            raw_id = block.origin.raw_id if isinstance(block, ToolResponse) else None
            if isinstance(block, ToolResponse) and raw_id and re.fullmatch(draft.demands.own_id, raw_id):
                found.setdefault((raw_id, block.hosted), block.call_id)
    return frozenset(found.values())


def _with_orphans_told(draft: Draft, message: Message, is_orphan: Callable[[Block], bool]) -> list[Message]:
    """The message with the results that have a call, then everybody's words in the order in which they stood."""
    results: list[Block] = []
    words: list[Block] = []
    told: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse) and is_orphan(block):
            (told if message.speaker == "ai" else words).extend(_orphan(draft, block))
        else:
            (results if isinstance(block, ToolResponse) and message.speaker != "ai" else words).append(block)
    speaker = "tool" if results else "ai" if message.speaker == "ai" else "human"
    parts = [message.holding((*results, *words), speaker=speaker)] if results or words else []
    return [*parts, Message("human", tuple(told))] if told else parts


def _orphan(draft: Draft, response: ToolResponse) -> list[Block]:
    tool = response.name or "a tool"
    if draft.policy.orphans == "drop":
        draft.report.add("orphan", "a result without a call: left out", call_id=response.call_id, subject=tool)
        return []
    draft.report.add("orphan", "a result without a call: told as text", call_id=response.call_id, subject=tool)
    return told_result(response, TEXTS.orphan.format(tool=draft.tool_name(response)))


def complete(draft: Draft) -> Draft:
    """Every call gets a result: a made-up one where none was recorded."""
    answered = {response.call_id for response in client_responses(draft)}
    if all(call.id in answered for message in draft.messages for call in client_calls(draft, message)):
        return draft
    last = max((i for i, message in enumerate(draft.messages) if message.speaker != "tool"), default=-1)
    messages: list[Message] = []
    for position, message in enumerate(draft.messages):
        messages.append(message)
        missing = [
            call
            for call in client_calls(draft, message)
            if call.id not in answered and (call.awaited or not draft.goes_back(call))
        ]
        kept = draft.policy.pending == "keep" and position == last
        if not missing or (kept and not _leaves_a_gap(draft, message, answered)):
            continue
        messages.append(Message("tool", tuple(_made_up(draft, call) for call in missing), turn_key=message.turn_key))
    return draft.with_messages(messages)


def _leaves_a_gap(draft: Draft, message: Message, answered: Collection[str]) -> bool:
    """Where results go by their place, one that is missing would give the next one's to its call."""
    return draft.demands.by_position and any(call.id in answered for call in client_calls(draft, message))


def _made_up(draft: Draft, call: ToolCall) -> ToolResponse:
    why = "interrupted: no result was recorded"
    draft.report.add("synthetic", why, call_id=call.id, subject=call.name)
    return call.respond(TEXTS.interrupted, error=True, outcome="interrupted", synthetic=why)
