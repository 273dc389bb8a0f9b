"""The passes for tool results: choose one result per call, convert orphans to text, add missing results."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import msgspec

from segue.canonical.blocks import Block, Message, State, Text, ToolCall, ToolResponse, join_texts, state_of
from segue.canonical.codec import encode_value
from segue.canonical.json import encode_json_sorted, encode_json_text
from segue.canonical.pairing import has_same_content
from segue.render.constraints import TEXTS
from segue.render.draft import Draft, client_calls, client_responses

_STATE_RANK: dict[State, int] = {"complete": 0, "error": 1, "denied": 2, "cancelled": 3, "interrupted": 4}


def choose_results(draft: Draft) -> Draft:
    """Keep one result per call: a complete one before an error, the first among equals. Partial output is dropped."""
    chosen: dict[str, ToolResponse] = {}
    duplicate_or_pending_ids: set[str] = set()
    for response in client_responses(draft):
        current = chosen.get(response.call_id)
        if current is None:
            chosen[response.call_id] = response
        if current is not None or state_of(response) == "pending":
            duplicate_or_pending_ids.add(response.call_id)
        if current is not None and _rank(response) < _rank(current):
            chosen[response.call_id] = response
    if not duplicate_or_pending_ids:
        return draft

    def keep(_message: Message, block: Block) -> list[Block]:
        if not draft.is_client_result(block) or block.call_id not in duplicate_or_pending_ids:
            return [block]
        best = chosen[block.call_id]
        if block is best and state_of(block) != "pending":
            return [block]
        description = "partial output" if block is best else _describe_duplicate(block, best)
        level = "note" if block is not best and has_same_content(block, best) else "lost"
        message = f"{description} dropped"
        draft.report.add("dedupe", message, call_id=block.call_id, subject=result_text(block), level=level)
        return []

    changed = draft.map_blocks(keep)
    return changed.with_messages(part for message in changed.messages for part in _drop_empty_tool_message(message))


def _drop_empty_tool_message(message: Message) -> list[Message]:
    """Return a tool message without results as a user message; drop it if it is empty."""
    if message.speaker != "tool" or any(isinstance(block, ToolResponse) for block in message.blocks):
        return [message]
    return [message.with_blocks(message.blocks, speaker="human")] if message.blocks else []


def _rank(response: ToolResponse) -> int:
    return _STATE_RANK.get(state_of(response), len(_STATE_RANK))


def _describe_duplicate(block: ToolResponse, best: ToolResponse) -> str:
    if has_same_content(block, best):
        return "identical second result"
    return f"second result of a call ({state_of(block)}; the one kept is {state_of(best)})"


def result_text(response: ToolResponse) -> str | None:
    """Return the text of a dropped result for the report."""
    first = result_to_text(response, "")[0]
    return first.text.strip() if isinstance(first, Text) else None


def result_to_text(response: ToolResponse, label: str) -> list[Block]:
    """Return a result as text blocks: the label and the text, then all other content."""
    content = response.content or ()
    texts = [block.text for block in content if isinstance(block, Text)]
    if response.structured is not msgspec.UNSET:
        texts.append(encode_json_text(response.structured))
    return [Text(join_texts([label, *texts])), *(block for block in content if not isinstance(block, Text))]


def convert_orphans(draft: Draft) -> Draft:
    """Render results without a call as text, in place; a result that was given before by the same raw id is dropped."""
    called = {block.id for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)}
    provider_held: frozenset[str] = frozenset()
    if draft.request.continues is not None and draft.is_same_api:
        provider_held = _results_of_provider_state(draft)
    elif draft.request.continues is not None:
        why = f"earlier history missing: the body refers to it only by {draft.request.continues}"
        draft.report.add("dropped", why)
    results = [block for message in draft.messages for block in message.blocks if isinstance(block, ToolResponse)]
    orphan_ids = (
        {response.call_id for response in results if not _has_no_call(response)}
        - called
        - draft.unpaired_ids
        - provider_held
    )
    if not orphan_ids:
        return draft

    def is_orphan(block: Block) -> bool:
        return isinstance(block, ToolResponse) and block.call_id in orphan_ids

    repeated = _find_repeated(results, orphan_ids)
    messages: list[Message] = []
    for message in draft.messages:
        has_orphan = any(is_orphan(block) for block in message.blocks)
        messages += _convert_orphans_in(draft, message, is_orphan, repeated) if has_orphan else [message]
    return draft.with_messages(messages)


def _find_repeated(results: Collection[ToolResponse], orphan_ids: Collection[str]) -> set[int]:
    """Return the identities of orphans whose raw id and content another result has: a paired one, or an earlier one."""
    raw_ids = {response.origin.raw_id for response in results if response.call_id in orphan_ids}
    named = [response for response in results if response.origin.raw_id and response.origin.raw_id in raw_ids]
    seen = {_content_key(response) for response in named if response.call_id not in orphan_ids}
    repeated: set[int] = set()
    for response in named:
        if response.call_id in orphan_ids:
            key = _content_key(response)
            if key in seen:
                repeated.add(id(response))
            seen.add(key)
    return repeated


def _content_key(response: ToolResponse) -> bytes:
    """Return the raw id and the content that `has_same_content` compares, as a key."""
    content = [
        block.text if isinstance(block, Text) else encode_value(msgspec.structs.replace(block, native=None))
        for block in response.content or ()
    ]
    structured = [] if response.structured is msgspec.UNSET else [response.structured]
    return encode_json_sorted([response.origin.raw_id, response.error, response.outcome, structured, content])


def _has_no_call(response: ToolResponse) -> bool:
    """Return whether this is a type of result that the provider sends without a call (AZF-09)."""
    return response.hosted and response.origin.identity == "conflated"


def _results_of_provider_state(draft: Draft) -> frozenset[str]:
    """Return the call ids of results whose call the provider may hold: the first result of each valid raw id."""
    call_ids: dict[tuple[str, bool], str] = {}
    for message in draft.messages:
        for block in message.blocks:
            raw_id = block.origin.raw_id if isinstance(block, ToolResponse) else None
            if isinstance(block, ToolResponse) and raw_id and re.fullmatch(draft.constraints.id_pattern, raw_id):
                call_ids.setdefault((raw_id, block.hosted), block.call_id)
    return frozenset(call_ids.values())


def _convert_orphans_in(
    draft: Draft, message: Message, is_orphan: Callable[[Block], bool], repeated: Collection[int]
) -> list[Message]:
    """Return the message with its paired results first, then all other content in order; orphans become text."""
    results: list[Block] = []
    others: list[Block] = []
    after: list[Block] = []
    for block in message.blocks:
        if isinstance(block, ToolResponse) and id(block) in repeated:
            draft.report.add("dedupe", "identical second result dropped", call_id=block.call_id, level="note")
        elif isinstance(block, ToolResponse) and is_orphan(block):
            (after if message.speaker == "ai" else others).extend(_orphan_to_text(draft, block))
        else:
            (results if isinstance(block, ToolResponse) and message.speaker != "ai" else others).append(block)
    speaker = "tool" if results else "ai" if message.speaker == "ai" else "human"
    parts = [message.with_blocks((*results, *others), speaker=speaker)] if results or others else []
    return [*parts, Message("human", tuple(after))] if after else parts


def _orphan_to_text(draft: Draft, response: ToolResponse) -> list[Block]:
    tool = response.name or "a tool"
    if draft.policy.orphans == "drop":
        message = "tool result without a call dropped"
        draft.report.add("orphan", message, call_id=response.call_id, subject=tool, level="lost")
        return []
    draft.report.add("orphan", "tool result without a call rendered as text", call_id=response.call_id, subject=tool)
    return result_to_text(response, TEXTS.orphan.format(tool=draft.tool_name(response)))


def complete_calls(draft: Draft) -> Draft:
    """Add a synthetic result to every call without one."""
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
            if call.id not in answered and (call.awaited or not draft.is_intact(call))
        ]
        kept = draft.policy.pending == "keep" and position == last
        if not missing or (kept and not _shifts_positions(draft, message, answered)):
            continue
        messages.append(
            Message("tool", tuple(_make_synthetic(draft, call) for call in missing), turn_key=message.turn_key)
        )
    return draft.with_messages(messages)


def _shifts_positions(draft: Draft, message: Message, answered: Collection[str]) -> bool:
    """Return whether a missing result would shift the pairing of the others, where the target pairs by position."""
    return draft.constraints.pairs_by_position and any(call.id in answered for call in client_calls(draft, message))


# Stored with the result.
_STILL_RUNNING = "still running: there is no result yet"


def _make_synthetic(draft: Draft, call: ToolCall) -> ToolResponse:
    # Where the provider holds earlier items, it may hold the result too: whether the call still runs is not known.
    if not call.awaited and draft.request.continues is None:
        message = "added the result that it is still running for a call in the background"
        draft.report.add("synthetic", message, call_id=call.id, subject=call.name)
        return call.respond(TEXTS.running, synthetic=_STILL_RUNNING)
    message = "added an error result for a tool call without a result"
    draft.report.add("synthetic", message, call_id=call.id, subject=call.name)
    return call.respond(TEXTS.interrupted, error=True, outcome="interrupted", synthetic=TEXTS.no_result)
