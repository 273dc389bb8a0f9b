"""The passes for roles: system text, grouping of results, alternation, the first and the last message."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse, takewhile
from operator import eq

import msgspec

from segue.canonical.blocks import Block, Message, Opaque, Text, Thinking, ToolCall, ToolResponse, calls_of, edit_block
from segue.canonical.json import are_identical
from segue.errors import format_count
from segue.render.compaction import is_compaction
from segue.render.constraints import TEXTS
from segue.render.draft import Draft, client_calls, group_runs, has_reasoning

FILLER_INSERTED = "added an assistant message between a tool result and a user message: the target requires one"
_USER_APPENDED = "added a user message at the end: the target requires one"
_PREFILL_NOT_CONTINUED = "added a user message at the end: the target can't continue a prefill"


def place_system_text(draft: Draft) -> Draft:
    """Put system text where the target reads it: leading text at the top, later text in place."""
    head = next((i for i, message in enumerate(draft.messages) if message.speaker != "system"), len(draft.messages))
    leading, rest = draft.messages[:head], draft.messages[head:]
    if draft.constraints.system_position == "top":
        lifted = [message for message in leading if not draft.is_native(message)]
        if lifted:
            texts = [block for message in lifted for block in message.blocks if isinstance(block, Text)]
            draft = msgspec.structs.replace(draft, system=(*draft.system, *texts))
        leading = tuple(message for message in leading if draft.is_native(message))
    elif draft.system:
        joined = Text("\n\n".join(block.text for block in draft.system if block.text))
        leading = (Message("system", (joined,)), *leading) if joined.text else leading
        draft = msgspec.structs.replace(draft, system=())
    if not draft.constraints.allows_system:
        why = "system text rendered as a user message: the model accepts none"
        leading = tuple(_system_to_user(draft, message, why) if message.blocks else message for message in leading)
    if draft.constraints.later_system == "text" and "system" in [message.speaker for message in rest]:
        rest = tuple(placed for message in rest for placed in _place_later_system(draft, message))
    return draft.with_messages((*leading, *rest))


def _place_later_system(draft: Draft, message: Message) -> list[Message]:
    if message.speaker != "system" or (draft.is_native(message) and draft.constraints.later_system_same_api):
        return [message]
    changes = tuple(block for block in message.blocks if _is_tool_change(draft, block))
    others = tuple(block for block in message.blocks if not _is_tool_change(draft, block))
    placed = [message.with_blocks(changes)] if changes or not others else []
    return [*placed, _system_to_user(draft, message.with_blocks(others))] if others else placed


def _is_tool_change(draft: Draft, block: Block) -> bool:
    return isinstance(block, Opaque) and block.kind in draft.constraints.tool_changes


def _system_to_user(
    draft: Draft, message: Message, why: str = "system text after the first message rendered as a user message"
) -> Message:
    draft.report.add("text", why, subject="system")
    blocks = tuple(
        edit_block(block, text=TEXTS.system.format(content=block.text)) if isinstance(block, Text) else block
        for block in message.blocks
    )
    return message.with_blocks(blocks, speaker="human")


def group_results(draft: Draft) -> Draft:
    """Group results as the target requires; separate text from calls and media from results where required."""
    if draft.constraints.calls_without_text:
        draft = draft.with_messages(part for message in draft.messages for part in _separate_text(draft, message))
    if draft.constraints.calls_last:
        draft = draft.with_messages(_move_calls_last(draft, message) for message in draft.messages)
    match draft.constraints.result_grouping:
        case "each":
            draft = draft.with_messages([part for message in draft.messages for part in _split_results(message)])
            return draft.with_messages(_split_calls(draft)) if draft.constraints.one_call_per_message else draft
        case "joint":
            runs = group_runs(draft.messages, lambda last, message: _can_join_results(draft, last, message))
            return draft.with_messages(map(_join_messages, runs))
        case "alone":
            runs = group_runs(draft.messages, lambda last, message: last.speaker == message.speaker == "tool")
            return draft.with_messages(part for run in runs for part in _join_results_alone(draft, run))


def _can_join_results(draft: Draft, last: Message, message: Message) -> bool:
    return (
        last.speaker == message.speaker == "tool"
        and not (draft.is_native(last) and draft.is_native(message))
        and all(isinstance(block, ToolResponse) for block in last.blocks)
    )


def _join_messages(run: list[Message]) -> Message:
    if len(run) == 1:
        return run[0]
    speaker = "tool" if any(message.speaker == "tool" for message in run) else run[0].speaker
    blocks = _results_first([block for message in run for block in message.blocks])
    return Message(speaker, blocks, turn_key=run[0].turn_key)


def _split_results(message: Message) -> Sequence[Message]:
    if message.speaker != "tool" or (len(message.blocks) == 1 and isinstance(message.blocks[0], ToolResponse)):
        return (message,)
    parts = [message.with_blocks((block,)) for block in message.blocks if isinstance(block, ToolResponse)]
    others = tuple(block for block in message.blocks if not isinstance(block, ToolResponse))
    return [*parts, message.with_blocks(others, speaker="human")] if others else parts


def _split_calls(draft: Draft) -> list[Message]:
    """Split messages with several calls: one message per call, each followed by its result (TPL-02, TPL-12)."""
    split: list[Message] = []
    for reply, *tool_messages in group_runs(draft.messages, lambda _last, message: message.speaker == "tool"):
        calls = [block for block in reply.blocks if isinstance(block, ToolCall) and block.kind != "hosted"]
        if len(calls) < 2:
            split += [reply, *tool_messages]
            continue
        why = "calls of one message moved into messages of their own: the target accepts one call per message"
        draft.report.add("moved", why, call_id=calls[0].id)
        results: dict[str, list[Message]] = {}
        for message in tool_messages:
            for block in message.blocks:
                if isinstance(block, ToolResponse):
                    results.setdefault(block.call_id, []).append(message)
        later = {id(call) for call in calls[1:]}
        split.append(reply.with_blocks(tuple(block for block in reply.blocks if id(block) not in later)))
        split += results.pop(calls[0].id, [])
        for call in calls[1:]:
            split += [Message("ai", (call,), turn_key=reply.turn_key), *results.pop(call.id, [])]
        split += [message for messages in results.values() for message in messages]
    return split


def _separate_text(draft: Draft, message: Message) -> list[Message]:
    """Move the other content of a message with calls into a message before it (MIS-11)."""
    kept = tuple(block for block in message.blocks if isinstance(block, ToolCall | Thinking))
    calls = calls_of(message)
    if not calls or len(kept) == len(message.blocks):
        return [message]
    others = (block for block in message.blocks if not isinstance(block, ToolCall | Thinking))
    content = tuple(block for block in others if not (isinstance(block, Text) and not block.text))
    if not content:
        return [message.with_blocks(kept)]
    why = "text next to tool calls moved into a message of its own"
    draft.report.add("moved", why, call_id=calls[0].id)
    return [message.with_blocks(content), message.with_blocks(kept)]


def _move_calls_last(draft: Draft, message: Message) -> Message:
    """Move the calls of a message behind its other content (DS-11)."""
    calls = [block for block in message.blocks if draft.is_client_call(block)]
    others = [block for block in message.blocks if not draft.is_client_call(block)]
    ordered = (*others, *calls)
    if are_identical(ordered, message.blocks):
        return message
    draft.report.add("moved", "tool calls moved behind the other content of their message", call_id=calls[0].id)
    return message.with_blocks(ordered)


def _join_results_alone(draft: Draft, run: list[Message]) -> list[Message]:
    """Join all results of a run in one message; other content follows in a user message."""
    if run[0].speaker != "tool":
        return run
    message = _join_messages(run)
    results = tuple(block for block in message.blocks if isinstance(block, ToolResponse))
    others = tuple(block for block in message.blocks if not isinstance(block, ToolResponse))
    if len(run) == 1 and not others:
        return run
    if all(draft.is_native(part) for part in run):
        draft.report.add("moved", "tool results moved into one message with nothing else in it")
    parts = [message.with_blocks(results)] if results else []
    return [*parts, message.with_blocks(others, speaker="human")] if others else parts


def merge_neighbours(draft: Draft) -> Draft:
    """Merge neighbours of one role where the target counts them as one; same-API only where it rejects them."""
    if draft.constraints.alternation == "free":
        return draft
    if draft.constraints.calls_in_one_message:
        draft = _join_split_calls(draft)
    roles = [_message_role(draft, message) for message in draft.messages]
    if not any(map(eq, roles, roles[1:])):
        return draft
    runs = list(group_runs(draft.messages, lambda last, message: _can_merge(draft, last, message)))
    if any(len(run) > 1 and all(draft.is_native(message) for message in run) for run in runs):
        draft.report.add("moved", "consecutive messages of one role merged")
    return draft.with_messages(map(_join_messages, runs))


def _join_split_calls(draft: Draft) -> Draft:
    """Merge consecutive messages of the model from the first to the last that has calls, where several have."""
    messages: list[Message] = []
    for run in group_runs(draft.messages, lambda last, message: last.speaker == message.speaker == "ai"):
        with_calls = [index for index, message in enumerate(run) if client_calls(draft, message)]
        if len(with_calls) < 2:
            messages += run
            continue
        first, last = with_calls[0], with_calls[-1] + 1
        draft.report.add("moved", "calls of one reply in several messages merged into one message")
        messages += [*run[:first], _join_messages(run[first:last]), *run[last:]]
    return draft.with_messages(messages)


def _can_merge(draft: Draft, last: Message, message: Message) -> bool:
    if draft.constraints.alternation != "strict" and (draft.is_native(last) or draft.is_native(message)):
        return False
    if draft.constraints.result_grouping == "each":
        return last.speaker == message.speaker and last.speaker in ("human", "ai")
    return _message_role(draft, last) == _message_role(draft, message)


def _message_role(draft: Draft, message: Message) -> str:
    separate = draft.constraints.result_grouping == "alone"
    return "user" if message.speaker == "human" or (message.speaker == "tool" and not separate) else message.speaker


def _results_first(blocks: list[Block]) -> tuple[Block, ...]:
    def is_result(block: Block) -> bool:
        return isinstance(block, ToolResponse) and not block.hosted

    return (*filter(is_result, blocks), *filterfalse(is_result, blocks))


def insert_fillers(draft: Draft) -> Draft:
    """Insert an assistant message between results and a user message where the target requires it.

    System text after a reply becomes a user message where the target does not accept it there.
    """
    constraints = draft.constraints
    if not constraints.filler_after_results and constraints.allows_system_after_reply:
        return draft
    messages: list[Message] = []
    for message in draft.messages:
        before = messages[-1].speaker if messages else ""
        # MIS-09
        if message.speaker == "system" and before in ("ai", "tool") and not constraints.allows_system_after_reply:
            message = _system_to_user(draft, message)
        # MIS-07
        if message.speaker == "human" and before == "tool" and constraints.filler_after_results:
            draft.report.add("inserted", FILLER_INSERTED)
            messages.append(_text_message("ai", TEXTS.filler))
        messages.append(message)
    return draft.with_messages(messages)


def fix_ends(draft: Draft) -> Draft:
    """Make the first and the last message valid for the target."""
    draft = _ensure_user_message(_fix_ending(_fix_beginning(draft)))
    _report_dropped_prefills(draft)
    return _clear_inner_prefills(draft)


def _text_message(speaker: str, text: str) -> Message:
    return Message("ai" if speaker == "ai" else "human", (Text(text),))


def _fix_beginning(draft: Draft) -> Draft:
    head = next((i for i, message in enumerate(draft.messages) if message.speaker != "system"), None)
    if draft.constraints.first_speaker == "any" or head is None:
        return draft
    first = draft.messages[head]
    # A validator that starts counting at the second message rejects the results of calls in the first as surplus.
    checked = head == 0 and not draft.constraints.first_can_call and draft.request.continues is None
    bare = checked and any(draft.is_client_call(block) for block in first.blocks)
    # MIS-15
    alone = checked and len(draft.messages) == 1 and draft.constraints.ending == "marked"
    free = draft.constraints.first_speaker_same_api == "any"
    valid = draft.is_native(first) and free and not bare and not alone
    if first.speaker == "human" or valid:
        return draft
    draft.report.add("inserted", "added a user message at the beginning: the target requires one")
    return draft.with_messages(
        (*draft.messages[:head], _text_message("human", TEXTS.first_user_message), *draft.messages[head:])
    )


def _fix_ending(draft: Draft) -> Draft:
    constraints = draft.constraints
    if not any(message.speaker != "system" for message in draft.messages):
        emptied = any(message.speaker != "system" for message in draft.request.messages)
        # Where the last message is constrained there must be one, also same-API.
        rejected = not constraints.allows_system_last or (constraints.ending == "marked" and not draft.messages)
        required = constraints.ending != "free" and not (draft.is_same_api and constraints.allows_no_messages)
        return _append_tail(draft) if emptied or rejected or required else draft
    position = len(draft.messages) - 1
    # An empty same-API message is ignored where neighbours of one role count as one.
    merged = constraints.alternation == "merged" and constraints.result_grouping != "each"
    while merged and position and not draft.messages[position].blocks and draft.messages[position - 1].speaker == "ai":
        position -= 1
    last = draft.messages[position]
    # DS-08
    if last.speaker == "system" and not constraints.allows_system_last:
        return _append_tail(draft)
    if (
        constraints.ending == "free"
        or _is_summarized(draft)
        or last.speaker != "ai"
        or any(draft.is_client_call(block) for block in last.blocks)
    ):
        return draft
    if not _can_end_with(draft, last):
        return _append_tail(draft)
    if constraints.ending == "prefill" and not constraints.allows_blank_ending:
        last = _trim_ending(draft, last)
    if last.blocks or draft.messages[position] is last:
        return draft.with_messages((*draft.messages[:position], last, *draft.messages[position + 1 :]))
    return _fix_ending(draft.with_messages(draft.messages[:position]))


def _can_end_with(draft: Draft, last: Message) -> bool:
    """Return whether an assistant message may be last: as a prefill, or as a pause in hosted tools."""
    if not draft.is_native(last):
        return False
    # MIS-10, DS-08
    if draft.constraints.ending == "marked":
        return last.prefill
    if not last.blocks:
        return True
    off = draft.options.reasoning is not None or draft.constraints.ending == "prefill"
    # ANT-27
    if not draft.constraints.allows_reasoning_at_end and off and not draft.reasoning_on and _ends_with_reasoning(draft):
        return False
    if draft.constraints.allows_pause and _is_paused(last):
        return True
    return draft.constraints.ending == "prefill" and (
        draft.constraints.allows_prefill_while_reasoning or not draft.reasoning_on
    )


def _is_summarized(draft: Draft) -> bool:
    """Return whether this is a request for a summary, and there is content to summarize (ANT-47, ANT-49)."""
    blocks = (block for message in draft.messages for block in message.blocks)
    is_requested = draft.request.summarizes and draft.is_same_api
    return is_requested and any(not isinstance(block, Opaque) or block.omit_reason != "notice" for block in blocks)


def _ensure_user_message(draft: Draft) -> Draft:
    """Append a user message if there is none (QWEN-04): at the end, so that the prefix is stable."""
    if not draft.constraints.needs_user_message or any(message.speaker == "human" for message in draft.messages):
        return draft
    return _append_tail(draft)


def _clear_inner_prefills(draft: Draft) -> Draft:
    """Clear the prefill flag on all messages but the last (MIS-14)."""
    if draft.constraints.ending != "marked":
        return draft
    marked = [message.prefill and draft.is_native(message) for message in draft.messages]
    if not any(marked[:-1]):
        return draft
    draft.report.add("adjusted", "prefill flag dropped: only the last message may be a prefill", level="note")
    *before, last = draft.messages
    kept = (_clear_prefill(message) if mark else message for message, mark in zip(before, marked, strict=False))
    return draft.with_messages((*kept, last))


def _report_dropped_prefills(draft: Draft) -> None:
    """Report dropped prefill flags; the last one may have been reported with the message added at the end."""
    dropped_count = [
        _is_cross_api_prefill(draft, message) for message in draft.request.messages if message.prefill
    ].count(True)
    if dropped_count and any(finding.message == _PREFILL_NOT_CONTINUED for finding in draft.report.findings):
        dropped_count -= 1
    if dropped_count:
        draft.report.add(
            "dropped",
            f"prefill flag of {format_count(dropped_count, 'message')} dropped: not supported",
            fault="projection",
        )


def _is_cross_api_prefill(draft: Draft, message: Message) -> bool:
    return message.prefill and not draft.is_native(message)


def _clear_prefill(message: Message) -> Message:
    return msgspec.structs.replace(message.with_blocks(message.blocks), prefill=False)


def _ends_with_reasoning(draft: Draft) -> bool:
    """Return whether the last reply has reasoning; neighbouring messages count as one."""
    return any(map(has_reasoning, takewhile(lambda message: message.speaker == "ai", reversed(draft.messages))))


def _is_paused(message: Message) -> bool:
    block = message.blocks[-1]
    return (isinstance(block, ToolCall) and block.kind == "hosted") or (
        (isinstance(block, ToolResponse) and block.hosted) or is_compaction(block)
    )


def _trim_ending(draft: Draft, last: Message) -> Message:
    block = last.blocks[-1] if last.blocks else None
    if not isinstance(block, Text) or block.text == block.text.rstrip():
        return last
    draft.report.add("adjusted", "whitespace at the end of a prefill removed", fault="rendering")
    text = block.text.rstrip()
    return last.with_blocks((*last.blocks[:-1], *([edit_block(block, text=text)] if text else [])))


def _append_tail(draft: Draft) -> Draft:
    has_prefill = bool(draft.request.messages) and _is_cross_api_prefill(draft, draft.request.messages[-1])
    draft.report.add("inserted", _PREFILL_NOT_CONTINUED if has_prefill else _USER_APPENDED)
    return draft.with_messages((*draft.messages, _text_message("human", TEXTS.last_user_message)))
