"""The passes for order: each block in a message of its speaker, and results directly after their calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from segue.canonical.blocks import Block, Message, Thinking, ToolCall, ToolResponse
from segue.render.draft import Draft, client_calls, client_responses, group_runs, reply_speaker, split_by_speaker

_RESULT_TYPES: frozenset[type] = frozenset({ToolResponse})
_NON_USER_TYPES = frozenset({ToolCall, Thinking, ToolResponse})


def assign_speakers(draft: Draft) -> Draft:
    """Split messages so that calls and reasoning belong to the model, and results to the tools."""

    def split(message: Message) -> list[Message]:
        if message.speaker == "ai":
            return split_by_speaker(message, reply_speaker)
        return split_by_speaker(message, lambda block: _block_speaker(block, message))

    messages: list[Message] = []
    for message in _join_replies(draft):
        if _has_one_speaker(message):
            messages.append(message)
            continue
        parts = split(message)
        if len(parts) > 1 or parts[0] is not message:
            draft.report.add("moved", "calls, reasoning or results moved out of a message of another role")
        messages += map(_fix_tool_speaker, parts)
    return draft.with_messages(messages)


def _fix_tool_speaker(part: Message) -> Message:
    """Return a tool message without results as a user message."""
    if part.speaker != "tool" or any(isinstance(block, ToolResponse) for block in part.blocks):
        return part
    return part.with_blocks(part.blocks, speaker="human")


def _has_one_speaker(message: Message) -> bool:
    """Return whether all blocks clearly belong to the speaker of the message."""
    kinds = frozenset(map(type, message.blocks))
    if message.speaker != "tool":
        return kinds.isdisjoint(_RESULT_TYPES if message.speaker == "ai" else _NON_USER_TYPES)
    return kinds == _RESULT_TYPES and not any(
        block.hosted for block in message.blocks if isinstance(block, ToolResponse)
    )


def _join_replies(draft: Draft) -> Iterator[Message]:
    """Yield the messages; cross-API, those of one reply are joined (same turn key, one after the other)."""
    for run in group_runs(draft.messages, _is_same_turn):
        if len(run) == 1 or all(draft.is_native(message) for message in run):
            yield from run
            continue
        draft.report.add("moved", "messages of one reply merged")
        yield run[0].with_blocks(tuple(block for message in run for block in message.blocks))


def _is_same_turn(last: Message, message: Message) -> bool:
    return last.speaker == message.speaker == "ai" and last.turn_key is not None and last.turn_key == message.turn_key


def _block_speaker(block: Block, message: Message) -> str:
    if isinstance(block, ToolCall | Thinking) or (isinstance(block, ToolResponse) and block.hosted):
        return "ai"
    if isinstance(block, ToolResponse) or message.speaker == "tool":
        return "tool"
    return message.speaker


def order_results(draft: Draft) -> Draft:
    """Move results directly after their calls. Turns whose order is valid are not touched."""
    misplaced: dict[int, list[ToolCall]] = {}
    responses = {response.call_id: response for response in client_responses(draft)}
    if _is_ordered(draft, responses.keys()):
        return draft
    positions = {} if draft.constraints.results_adjacent else _result_positions(draft)
    for start, stop in _reply_runs(draft):
        calls_at = {
            position: calls
            for position in range(start, stop)
            if (calls := [call for call in client_calls(draft, draft.messages[position]) if call.id in responses])
        }
        expected = [call.id for calls in calls_at.values() for call in calls]
        if expected and not _is_valid_order(draft, start, stop, expected, positions):
            misplaced.update(calls_at)
    if not misplaced:
        return draft
    moving = {call.id for calls in misplaced.values() for call in calls}
    messages: list[Message] = []
    for position, message in enumerate(draft.messages):
        messages.extend(_remove_results(message, moving))
        if position in misplaced:
            results = tuple(responses[call.id] for call in misplaced[position])
            if _has_moved(draft, position, results):
                why = "tool results moved directly after their calls"
                draft.report.add("reordered", why, call_id=results[0].call_id)
            messages.append(Message("tool", results, turn_key=message.turn_key))
    return draft.with_messages(messages)


def _is_ordered(draft: Draft, answered: Collection[str]) -> bool:
    """Return whether each reply is directly followed by exactly its results, in order."""
    waiting: list[str] = []
    for message in draft.messages:
        if message.speaker == "tool" and waiting:
            result_ids = [block.call_id for block in message.blocks if type(block) is ToolResponse]
            count = len(result_ids)
            if result_ids != waiting[:count]:
                return False
            if count < len(message.blocks) and not all(
                isinstance(block, ToolResponse) for block in message.blocks[:count]
            ):
                return False
            del waiting[:count]
            if waiting and count < len(message.blocks):
                return False
        elif waiting or message.speaker == "tool":
            return False
        elif message.speaker == "ai":
            waiting = [call.id for call in client_calls(draft, message) if call.id in answered]
    return not waiting


def _reply_runs(draft: Draft) -> Iterator[tuple[int, int]]:
    """Yield position ranges of replies. Same-API neighbours are one range where the target merges them."""
    position = 0
    while position < len(draft.messages):
        message = draft.messages[position]
        stop = position + 1
        if message.speaker == "ai":
            while (
                draft.constraints.alternation == "merged"
                and draft.constraints.result_grouping != "each"
                and stop < len(draft.messages)
                and draft.messages[stop].speaker == "ai"
                and draft.is_native(draft.messages[stop])
                and draft.is_native(message)
            ):
                stop += 1
            yield position, stop
        position = stop


def _result_positions(draft: Draft) -> dict[str, int]:
    """Return the position of the message that holds the result of each call."""
    return {
        block.call_id: position
        for position, message in enumerate(draft.messages)
        for block in message.blocks
        if draft.is_client_result(block)
    }


def _is_valid_order(draft: Draft, start: int, stop: int, expected: list[str], positions: dict[str, int]) -> bool:
    """Return whether exactly these results directly follow the reply, or may come later same-API."""
    result_ids, end = _leading_results(draft, stop)
    if result_ids == expected:
        return True
    # OAI-RESP-05, OAI-RESP-06
    if positions and draft.is_native(draft.messages[start]):
        result_positions = [positions[call_id] for call_id in expected]
        return all(
            position >= stop and (position < end or draft.is_native(draft.messages[position]))
            for position in result_positions
        )
    # TPL-16
    same_api = not draft.constraints.results_in_call_order and all(map(draft.is_native, draft.messages[start:end]))
    return same_api and len(result_ids) == len(expected) and set(result_ids) == set(expected)


def _leading_results(draft: Draft, start: int) -> tuple[list[str], int]:
    """Return the call ids of the results that begin at `start`, and the position after them."""
    result_ids: list[str] = []
    for position in range(start, len(draft.messages)):
        message = draft.messages[position]
        if message.speaker != "tool":
            return result_ids, position
        heads = [block.call_id for block in message.blocks if isinstance(block, ToolResponse)]
        if not all(isinstance(block, ToolResponse) for block in message.blocks[: len(heads)]):
            return [], position
        result_ids += heads
        if len(heads) < len(message.blocks):
            return result_ids, position + 1
    return result_ids, len(draft.messages)


def _has_moved(draft: Draft, position: int, results: tuple[ToolResponse, ...]) -> bool:
    """Return whether a recorded result is moved; inserting a synthetic one does not count."""
    synthetic = {response.call_id for response in results if response.synthetic is not None}
    before, _ = _leading_results(draft, position + 1)
    return [i for i in before if i not in synthetic] != [r.call_id for r in results if r.call_id not in synthetic]


def _remove_results(message: Message, moving: set[str]) -> list[Message]:
    """Return the message without the results that are moved; an empty list where nothing is left."""
    kept = tuple(b for b in message.blocks if not (isinstance(b, ToolResponse) and b.call_id in moving))
    if len(kept) == len(message.blocks):
        return [message]
    if not kept:
        return []
    speaker = "tool" if any(isinstance(block, ToolResponse) for block in kept) else "human"
    return [message.with_blocks(kept, speaker=speaker if message.speaker == "tool" else None)]
