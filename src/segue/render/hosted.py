"""The pass for hosted tools: same-API they are kept, cross-API they become ordinary calls and results, or text.

That text stands in a user message before the reply: models imitate what they find in their own messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

import msgspec

from segue.canonical.blocks import Block, Media, Message, Opaque, Text, ToolCall, ToolResponse, calls_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.json import encode_json_text
from segue.render.constraints import TEXTS
from segue.render.draft import Draft, reply_speaker, split_by_speaker
from segue.render.reasoning import can_keep_reasoning, mark_rewritten
from segue.render.report import Report
from segue.render.results import result_text, result_to_text


def convert_hosted(draft: Draft) -> Draft:
    """Keep valid hosted tool calls same-API; convert all others as `Policy.hosted` requires."""
    _report_nested_calls(draft)
    has_hosted = any(_hosted_id(block) for message in draft.messages for block in message.blocks)
    to_convert = _find_converted(draft) if has_hosted else None
    if not to_convert:
        return draft
    draft = _convert_approval_answers(draft, to_convert)
    if draft.policy.hosted == "pair":
        results: dict[str, Block] = {}
        for message in draft.messages:
            for block in message.blocks:
                if isinstance(block, ToolResponse) and block.hosted:
                    results.setdefault(block.call_id, block)
        called = {block.id for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)}
        pairs = _Pairs(to_convert, results, called)
        return draft.with_messages(
            part for message in draft.messages for part in _split_into_pairs(draft, message, pairs)
        )
    return draft.with_messages(part for message in draft.messages for part in _move_texts(draft, message, to_convert))


def _move_texts(draft: Draft, message: Message, to_convert: frozenset[str]) -> list[Message]:
    """Render the hosted calls and results of the message as text before it."""
    hosted = [block for block in message.blocks if _hosted_id(block) in to_convert]
    if not hosted:
        return [message]
    texts = [text for block in hosted for text in _hosted_to_text(draft, block)]
    others = tuple(block for block in message.blocks if _hosted_id(block) not in to_convert)
    return _precede(texts, [message.with_blocks(others)] if others else [])


def _precede(texts: list[Block], messages: list[Message]) -> list[Message]:
    return [Message("human", tuple(texts)), *messages] if texts else messages


def _convert_approval_answers(draft: Draft, to_convert: frozenset[str]) -> Draft:
    """Clear `native` of approval answers whose request is converted: alone they are rejected (OAI-RESP-21)."""
    requests = [call for message in draft.messages for call in calls_of(message) if _is_approval_request(call)]
    converted = {call.origin.raw_id for call in requests if call.id in to_convert}
    converted -= {call.origin.raw_id for call in requests if call.id not in to_convert}

    def clear_native(_message: Message, block: Block) -> list[Block]:
        if not isinstance(block, Opaque) or not block.origin.is_approval or block.origin.raw_id not in converted:
            return [block]
        return [msgspec.structs.replace(block, native=None)]

    return draft.map_blocks(clear_native) if converted else draft


def _report_nested_calls(draft: Draft) -> None:
    """Report nested calls (made by another call) that are rendered as calls of the model."""
    calls = [block for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)]
    nested = [call for call in calls if call.origin.parent is not None and not draft.is_native(call)]
    tools = {call.origin.raw_id: call.name for call in calls} if nested else {}
    for call in nested:
        tool = draft.project_name(tools[call.origin.parent]) if call.origin.parent in tools else "another call"
        why = f"call made by {tool} rendered as a call of the model"
        draft.report.add("text", why, call_id=call.id, subject=call.name)


class _Pairs(NamedTuple):
    """The calls to convert, the result of each that has one, and all calls."""

    converted: frozenset[str]
    results: dict[str, Block]
    called: set[str]


def _find_converted(draft: Draft) -> frozenset[str]:
    """Return the ids of hosted calls that the target rejects unchanged: cross-API, edited, repeated or separated."""
    converted: set[str] = set()
    open_ids: set[str] = set()
    seen: set[tuple[type[Block], str]] = set()
    answered = {
        block.call_id for message in draft.messages for block in message.blocks if isinstance(block, ToolResponse)
    }
    for message in draft.messages:
        if message.speaker != "ai" and not all(isinstance(block, ToolResponse) for block in message.blocks):
            # ANT-09: only at the end may a call be open.
            converted |= open_ids - answered - {""} if draft.constraints.hosted_needs_result else set()
            open_ids.clear()
        keeps_item_id = not _loses_item_id(draft, message)
        for block in message.blocks:
            hosted_id = _hosted_id(block)
            intact = draft.is_intact(block) and keeps_item_id
            # GEM-24
            intact = intact and re.fullmatch(draft.constraints.hosted_pattern, _tool_name(block)) is not None
            # ANT-09: the result follows its call, before the next user message.
            late = draft.constraints.results_adjacent and isinstance(block, ToolResponse) and hosted_id not in open_ids
            # OAI-RESP-13, ANT-03: a call and its result may be one item with one id.
            item_key = (type(block), _provider_item_id(block))
            if hosted_id and (not intact or late or item_key in seen):
                converted.add(hosted_id)
            open_ids.add(hosted_id)
            if isinstance(block, ToolCall) and not block.awaited:
                answered.add(hosted_id)
            seen.update([item_key] if hosted_id and item_key[1] else [])
    is_continued = draft.messages and draft.is_native(draft.messages[-1]) and not draft.request.summarizes
    if draft.constraints.hosted_needs_result and draft.messages and not is_continued:
        # A user message will follow: only a reply of the target's own API may be continued. ANT-48: or a summary.
        converted |= open_ids - answered - {""}
    return frozenset(converted)


def _loses_item_id(draft: Draft, message: Message) -> bool:
    """Return whether the items of a message lose their ids, since reasoning they belong to is dropped (OAI-RESP-08)."""
    return draft.constraints.reasoning_precedes_item and not can_keep_reasoning(draft, message)


def _hosted_id(block: Block) -> str:
    """Return the call id of a hosted call or result; `""` for other blocks."""
    if isinstance(block, ToolCall) and block.kind == "hosted":
        return block.id
    return block.call_id if isinstance(block, ToolResponse) and block.hosted else ""


def _provider_item_id(block: Block) -> str:
    """Return the id under which the provider stores the item: its own, or the one that pairs call and result."""
    if not isinstance(block, ToolCall | ToolResponse):
        return ""
    return raw_id_or_none(block.origin.item_id) or block.origin.raw_id or ""


def _tool_name(block: Block) -> str:
    return (block.name or "") if isinstance(block, ToolCall | ToolResponse) else ""


def _split_into_pairs(draft: Draft, message: Message, pairs: _Pairs) -> list[Message]:
    """Convert the hosted calls of the message to ordinary calls and results, split by speaker.

    Approval requests and results without a call become text before the message.
    """
    to_convert, results, called = pairs
    if not any(_hosted_id(block) in to_convert for block in message.blocks):
        return [message]
    if _loses_item_id(draft, message):
        message = mark_rewritten(message)
    blocks: list[Block] = []
    texts: list[Block] = []
    last_result: Block | None = None
    for block in message.blocks:
        media_result = last_result if isinstance(block, Media) else None
        last_result = block if isinstance(block, ToolResponse) and block.hosted else media_result
        if isinstance(media_result, ToolResponse) and blocks and _is_result_of(blocks[-1], media_result.call_id):
            # GEM-24: an image made by code execution follows its result.
            blocks[-1] = _append_media(blocks[-1], block)
        elif _hosted_id(block) not in to_convert:
            blocks.append(block)
        elif _is_approval_request(block) or _hosted_id(block) not in called:
            texts += _hosted_to_text(draft, block)
        elif isinstance(block, ToolCall):
            call = msgspec.structs.replace(block, kind="function", native=None)
            draft.report.add("text", "hosted tool call rendered as a tool call", call_id=call.id, subject=call.name)
            blocks.append(call)
            if call.id not in results:
                blocks.append(call.respond(TEXTS.undisclosed, synthetic="output not disclosed"))
        elif isinstance(block, ToolResponse) and results[block.call_id] is block:
            blocks.append(msgspec.structs.replace(block, hosted=False, native=None))
        elif isinstance(block, ToolResponse):
            why = "second result of a hosted tool call dropped"
            draft.report.add("dedupe", why, call_id=block.call_id, subject=result_text(block))
    parts = split_by_speaker(message.with_blocks(tuple(blocks)), reply_speaker) if blocks else []
    return _precede(texts, parts)


def _is_result_of(block: Block, call_id: str) -> bool:
    return isinstance(block, ToolResponse) and block.call_id == call_id and not block.hosted


def _append_media(response: Block, media: Block) -> Block:
    if not isinstance(response, ToolResponse):
        return response
    return msgspec.structs.replace(response, content=(*(response.content or ()), media))


def approvals_to_text(blocks: Iterable[Block], report: Report) -> list[Block]:
    """Return the blocks of a cross-API reply with approval requests as text."""
    return [_approval_to_text(block, block.name, report) if _is_approval_request(block) else block for block in blocks]


def _is_approval_request(block: Block) -> TypeGuard[ToolCall]:
    return isinstance(block, ToolCall) and block.origin.is_approval


def _approval_to_text(call: ToolCall, tool: str, report: Report) -> Text:
    report.add("text", "approval request rendered as text", call_id=call.id, subject=call.name)
    arguments = call.arguments_text or encode_json_text(call.arguments)
    return Text(TEXTS.approval_requested.format(tool=tool, arguments=arguments))


def _hosted_to_text(draft: Draft, block: Block) -> list[Block]:
    """Render a hosted call or result as text, or drop it, as `Policy.hosted` requires."""
    tool = _tool_name(block)
    if draft.policy.hosted == "drop":
        draft.report.add("dropped", "hosted tool call dropped", call_id=_hosted_id(block), subject=tool)
        return []
    if _is_approval_request(block):
        return [_approval_to_text(block, draft.project_name(block.name), draft.report)]
    draft.report.add("text", "hosted tool call rendered as text", call_id=_hosted_id(block), subject=tool)
    if isinstance(block, ToolCall):
        arguments = block.arguments_text or encode_json_text(block.arguments)
        return [Text(TEXTS.hosted_call.format(tool=draft.project_name(block.name), arguments=arguments))]
    if isinstance(block, ToolResponse):
        return result_to_text(block, TEXTS.hosted_result.format(tool=draft.tool_name(block), content="").rstrip())
    return [block]
