"""The pass about tools that a provider ran itself: at home they stay, abroad they become calls like others or words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

import msgspec

from segue.canonical.blocks import Block, Media, Message, Opaque, Text, ToolCall, ToolResponse, calls_of
from segue.canonical.ids import raw_id_or_none
from segue.canonical.jsontext import write_text
from segue.render.completions import told_result, words_of
from segue.render.demands import TEXTS
from segue.render.draft import Draft, regrouped, said_in_reply
from segue.render.reasoning import keeps_reasoning, unnamed
from segue.render.report import Report

__all__ = ["asked_in_words", "hosted"]


def hosted(draft: Draft) -> Draft:
    """What a provider ran itself stays as it is at home; abroad policy decides what becomes of it."""
    _report_callers(draft)
    ran = any(_hosted_id(block) for message in draft.messages for block in message.blocks)
    abroad = _ran_abroad(draft) if ran else None
    if not abroad:
        return draft
    draft = _with_answers_told(draft, abroad)
    if draft.policy.hosted == "pair":
        results: dict[str, Block] = {}
        for message in draft.messages:
            for block in message.blocks:
                if isinstance(block, ToolResponse) and block.hosted:
                    results.setdefault(block.call_id, block)
        called = {block.id for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)}
        pairs = _Pairs(abroad, results, called)
        return draft.with_messages(part for message in draft.messages for part in _as_pairs(draft, message, pairs))
    return draft.map_blocks(lambda _message, block: _told(draft, block) if _hosted_id(block) in abroad else [block])


def _with_answers_told(draft: Draft, abroad: frozenset[str]) -> Draft:
    """OAI-RESP-21: what answers a request for approval can't go back if the request does not."""
    requests = [call for message in draft.messages for call in calls_of(message) if _is_request(call)]
    told = {call.origin.raw_id for call in requests if call.id in abroad}
    told -= {call.origin.raw_id for call in requests if call.id not in abroad}

    def answered(_message: Message, block: Block) -> list[Block]:
        if not isinstance(block, Opaque) or not block.origin.is_approval or block.origin.raw_id not in told:
            return [block]
        return [msgspec.structs.replace(block, native=None)]

    return draft.map_blocks(answered) if told else draft


def _report_callers(draft: Draft) -> None:
    """A call that another call made is one like any other where nobody can say so."""
    calls = [block for message in draft.messages for block in message.blocks if isinstance(block, ToolCall)]
    nested = [call for call in calls if call.origin.parent is not None and not draft.at_home(call)]
    tools = {call.origin.raw_id: call.name for call in calls} if nested else {}
    for call in nested:
        tool = draft.spell(tools[call.origin.parent]) if call.origin.parent in tools else "another call"
        draft.report.add("text", f"called by {tool}: told as a call of the model's", call_id=call.id, subject=call.name)


class _Pairs(NamedTuple):
    """The calls that go abroad, the result of each that has one, and all calls there are."""

    abroad: frozenset[str]
    results: dict[str, Block]
    called: set[str]


def _ran_abroad(draft: Draft) -> frozenset[str]:
    """The calls that a provider ran, less those that go back to it whole, once, and with nobody's words in between."""
    found: set[str] = set()
    running: set[str] = set()
    seen: set[tuple[type[Block], str]] = set()
    for message in draft.messages:
        if message.speaker != "ai" and not all(isinstance(block, ToolResponse) for block in message.blocks):
            running.clear()
        kept = not _loses_its_name(draft, message)
        for block in message.blocks:
            run_id = _hosted_id(block)
            whole = draft.goes_back(block) and kept
            # GEM-24
            whole = whole and re.fullmatch(draft.demands.own_hosted, _tool_of(block)) is not None
            # ANT-09: the result stands behind its call, before the user speaks again.
            late = draft.demands.adjacent and isinstance(block, ToolResponse) and run_id not in running
            # OAI-RESP-13, ANT-03: a call and its result may be one item, which bears one id.
            kept_as = (type(block), _kept_id(block))
            if run_id and (not whole or late or kept_as in seen):
                found.add(run_id)
            running.add(run_id)
            seen.update([kept_as] if run_id and kept_as[1] else [])
    return frozenset(found)


def _loses_its_name(draft: Draft, message: Message) -> bool:
    """OAI-RESP-08: what was made with reasoning can't go back by its id without it."""
    return draft.demands.reasoning_leads and not keeps_reasoning(draft, message)


def _hosted_id(block: Block) -> str:
    """The id of a call that a provider ran, from either side of it."""
    if isinstance(block, ToolCall) and block.kind == "hosted":
        return block.id
    return block.call_id if isinstance(block, ToolResponse) and block.hosted else ""


def _kept_id(block: Block) -> str:
    """The id under which a provider keeps what it ran: the item's own, or the one that call and result meet on."""
    if not isinstance(block, ToolCall | ToolResponse):
        return ""
    return raw_id_or_none(block.origin.item_id) or block.origin.raw_id or ""


def _tool_of(block: Block) -> str:
    return (block.name or "") if isinstance(block, ToolCall | ToolResponse) else ""


def _as_pairs(draft: Draft, message: Message, pairs: _Pairs) -> list[Message]:
    """The message with its provider-run calls as calls like any other; cut after each result.

    What asks for leave is no call, and what nothing called no result: they are told.
    """
    abroad, results, called = pairs
    if not any(_hosted_id(block) in abroad for block in message.blocks):
        return [message]
    if _loses_its_name(draft, message):
        message = unnamed(message)
    blocks: list[Block] = []
    given: Block | None = None
    for block in message.blocks:
        shown = given if isinstance(block, Media) else None
        given = block if isinstance(block, ToolResponse) and block.hosted else shown
        if isinstance(shown, ToolResponse) and blocks and _answers(blocks[-1], shown.call_id):
            # GEM-24: a picture that code drew stands behind its result.
            blocks[-1] = _with_shown(blocks[-1], block)
        elif _hosted_id(block) not in abroad:
            blocks.append(block)
        elif _is_request(block) or _hosted_id(block) not in called:
            blocks += _told(draft, block)
        elif isinstance(block, ToolCall):
            call = msgspec.structs.replace(block, kind="function", native=None)
            draft.report.add("text", "a tool run by the provider is told as a call", call_id=call.id, subject=call.name)
            blocks.append(call)
            if call.id not in results:
                blocks.append(call.respond(TEXTS.undisclosed, synthetic="output not disclosed"))
        elif isinstance(block, ToolResponse) and results[block.call_id] is block:
            blocks.append(msgspec.structs.replace(block, hosted=False, native=None))
        elif isinstance(block, ToolResponse):
            draft.report.add("dedupe", "a repeated result: left out", call_id=block.call_id, subject=words_of(block))
    return regrouped(message.holding(tuple(blocks)), said_in_reply)


def _answers(block: Block, call_id: str) -> bool:
    return isinstance(block, ToolResponse) and block.call_id == call_id and not block.hosted


def _with_shown(response: Block, shown: Block) -> Block:
    if not isinstance(response, ToolResponse):
        return response
    return msgspec.structs.replace(response, content=(*(response.content or ()), shown))


def asked_in_words(blocks: Iterable[Block], report: Report) -> list[Block]:
    """The blocks of a reply that goes abroad, with requests for approval in words."""
    return [_request_told(block, block.name, report) if _is_request(block) else block for block in blocks]


def _is_request(block: Block) -> TypeGuard[ToolCall]:
    return isinstance(block, ToolCall) and block.origin.is_approval


def _request_told(call: ToolCall, tool: str, report: Report) -> Text:
    report.add("text", "a request for approval is told as text", call_id=call.id, subject=call.name)
    arguments = call.arguments_text or write_text(call.arguments)
    return Text(TEXTS.approval_asked.format(tool=tool, arguments=arguments))


def _told(draft: Draft, block: Block) -> list[Block]:
    """In words, or not at all, as policy has it; either is reported."""
    tool = _tool_of(block)
    if draft.policy.hosted == "drop":
        draft.report.add("dropped", "a tool run by the provider: left out", call_id=_hosted_id(block), subject=tool)
        return []
    if _is_request(block):
        return [_request_told(block, draft.spell(block.name), draft.report)]
    draft.report.add("text", "a tool run by the provider is told as text", call_id=_hosted_id(block), subject=tool)
    if isinstance(block, ToolCall):
        arguments = block.arguments_text or write_text(block.arguments)
        return [Text(TEXTS.hosted_call.format(tool=draft.spell(block.name), arguments=arguments))]
    if isinstance(block, ToolResponse):
        return told_result(block, TEXTS.hosted_result.format(tool=draft.tool_name(block), content="").rstrip())
    return [block]
