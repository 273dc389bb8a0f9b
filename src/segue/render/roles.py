"""The passes for roles: system text, grouping of results, alternation, the first and the last message."""

from __future__ import annotations

from itertools import filterfalse, takewhile

import msgspec

from segue.canonical.blocks import Block, Media, Message, Text, Thinking, ToolCall, ToolResponse, calls_of, edited
from segue.render.demands import TEXTS
from segue.render.draft import Draft, runs, thinks

__all__ = ["BRIDGE", "bridges", "ends", "grouping", "merging", "system_text"]

BRIDGE = "added an assistant message between a tool result and the next user message"
_UNFINISHED = "added a user message at the end: the target can't continue a prefill"


def system_text(draft: Draft) -> Draft:
    """Put system text where the target reads it: leading text at the top, later text in place."""
    head = next((i for i, message in enumerate(draft.messages) if message.speaker != "system"), len(draft.messages))
    leading, rest = draft.messages[:head], draft.messages[head:]
    if draft.demands.system == "top":
        lifted = [message for message in leading if not draft.at_home(message)]
        if lifted:
            texts = [block for message in lifted for block in message.blocks if isinstance(block, Text)]
            draft = msgspec.structs.replace(draft, system=(*draft.system, *texts))
        leading = tuple(message for message in leading if draft.at_home(message))
    elif draft.system:
        joined = Text("\n\n".join(block.text for block in draft.system if block.text))
        leading = (Message("system", (joined,)), *leading) if joined.text else leading
        draft = msgspec.structs.replace(draft, system=())
    return draft.with_messages((*leading, *(_later(draft, message) for message in rest)))


def _later(draft: Draft, message: Message) -> Message:
    if message.speaker != "system" or draft.demands.later_system != "text":
        return message
    if draft.at_home(message) and draft.demands.later_system_at_home:
        return message
    return _as_words(draft, message) if message.blocks else message


def _as_words(draft: Draft, message: Message) -> Message:
    draft.report.add("text", "system text after the first message rendered as a user message", subject="system")
    blocks = tuple(
        edited(block, text=TEXTS.system.format(content=block.text)) if isinstance(block, Text) else block
        for block in message.blocks
    )
    return message.holding(blocks, speaker="human")


def grouping(draft: Draft) -> Draft:
    """Group results as the target requires; separate text from calls and media from results where it must be."""
    if draft.demands.media_apart:
        draft = draft.with_messages(part for message in draft.messages for part in _media_apart(draft, message))
    if draft.demands.calls_alone:
        draft = draft.with_messages(part for message in draft.messages for part in _words_apart(draft, message))
    match draft.demands.results:
        case "each":
            draft = draft.with_messages(part for message in draft.messages for part in _each(message))
            return draft.with_messages(_one_by_one(draft)) if draft.demands.calls_one_by_one else draft
        case "joint":
            found = runs(draft.messages, lambda last, message: _same_results(draft, last, message))
            return draft.with_messages(map(_joined, found))
        case "alone":
            found = runs(draft.messages, lambda last, message: last.speaker == message.speaker == "tool")
            return draft.with_messages(part for run in found for part in _alone(draft, run))


def _same_results(draft: Draft, last: Message, message: Message) -> bool:
    return (
        last.speaker == message.speaker == "tool"
        and not (draft.at_home(last) and draft.at_home(message))
        and all(isinstance(block, ToolResponse) for block in last.blocks)
    )


def _joined(run: list[Message]) -> Message:
    if len(run) == 1:
        return run[0]
    speaker = "tool" if any(message.speaker == "tool" for message in run) else run[0].speaker
    blocks = _results_first([block for message in run for block in message.blocks])
    return Message(speaker, blocks, turn_key=run[0].turn_key)


def _each(message: Message) -> list[Message]:
    if message.speaker != "tool" or (len(message.blocks) == 1 and isinstance(message.blocks[0], ToolResponse)):
        return [message]
    parts = [message.holding((block,)) for block in message.blocks if isinstance(block, ToolResponse)]
    others = tuple(block for block in message.blocks if not isinstance(block, ToolResponse))
    return [*parts, message.holding(others, speaker="human")] if others else parts


def _one_by_one(draft: Draft) -> list[Message]:
    """Split messages with several calls: one message per call, each followed by its result (TPL-02, TPL-12)."""
    split: list[Message] = []
    for reply, *tool_messages in runs(draft.messages, lambda _last, message: message.speaker == "tool"):
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
        split.append(reply.holding(tuple(block for block in reply.blocks if id(block) not in later)))
        split += results.pop(calls[0].id, [])
        for call in calls[1:]:
            split += [Message("ai", (call,), turn_key=reply.turn_key), *results.pop(call.id, [])]
        split += [message for messages in results.values() for message in messages]
    return split


def _words_apart(draft: Draft, message: Message) -> list[Message]:
    """Move the other content of a message with calls into a message before it (MIS-11)."""
    kept = tuple(block for block in message.blocks if isinstance(block, ToolCall | Thinking))
    calls = calls_of(message)
    if not calls or len(kept) == len(message.blocks):
        return [message]
    others = (block for block in message.blocks if not isinstance(block, ToolCall | Thinking))
    content = tuple(block for block in others if not (isinstance(block, Text) and not block.text))
    if not content:
        return [message.holding(kept)]
    why = "text beside tool calls moved into a message of its own"
    draft.report.add("moved", why, call_id=calls[0].id)
    return [message.holding(content), message.holding(kept)]


def _alone(draft: Draft, run: list[Message]) -> list[Message]:
    """Join all results of a run in one message; other content follows in a user message."""
    message = _joined(run)
    results = tuple(block for block in message.blocks if isinstance(block, ToolResponse))
    others = tuple(block for block in message.blocks if not isinstance(block, ToolResponse))
    if run[0].speaker != "tool" or (len(run) == 1 and not others):
        return run
    if all(draft.at_home(part) for part in run):
        draft.report.add("moved", "tool results moved into one message with nothing else in it")
    parts = [message.holding(results)] if results else []
    return [*parts, message.holding(others, speaker="human")] if others else parts


def _media_apart(draft: Draft, message: Message) -> list[Message]:
    """Move the content with media that can't be beside results into a user message after them."""
    if message.speaker != "tool" or not _holds_apart(draft, message):
        return [message]
    results = tuple(block for block in message.blocks if isinstance(block, ToolResponse))
    others = tuple(block for block in message.blocks if not isinstance(block, ToolResponse))
    draft.report.add("moved", "media beside tool results moved into a message of their own")
    return [message.holding(results), message.holding(others, speaker="human")]


def _holds_apart(draft: Draft, message: Message) -> bool:
    return any(isinstance(block, Media) and block.kind in draft.demands.media_apart for block in message.blocks)


def merging(draft: Draft) -> Draft:
    """Merge neighbours of one role where the target counts them as one; same-API only where it rejects them."""
    if draft.demands.alternation == "free":
        return draft
    found = list(runs(draft.messages, lambda last, message: _one_role(draft, last, message)))
    if any(len(run) > 1 and all(draft.at_home(message) for message in run) for run in found):
        draft.report.add("moved", "neighbouring messages of one role merged")
    return draft.with_messages(map(_joined, found))


def _one_role(draft: Draft, last: Message, message: Message) -> bool:
    if draft.demands.alternation != "strict" and (draft.at_home(last) or draft.at_home(message)):
        return False
    if draft.demands.results == "each":
        return last.speaker == message.speaker and last.speaker in ("human", "ai")
    return _side(draft, last) == _side(draft, message)


def _side(draft: Draft, message: Message) -> str:
    apart = draft.demands.results == "alone"
    return "user" if message.speaker == "human" or (message.speaker == "tool" and not apart) else message.speaker


def _results_first(blocks: list[Block]) -> tuple[Block, ...]:
    def is_result(block: Block) -> bool:
        return isinstance(block, ToolResponse) and not block.hosted

    return (*filter(is_result, blocks), *filterfalse(is_result, blocks))


def bridges(draft: Draft) -> Draft:
    """Insert an assistant message between results and a user message where the target requires it.

    System text after a reply becomes a user message where the target does not accept it there.
    """
    constraints = draft.demands
    if not constraints.bridge and constraints.system_after_reply and not constraints.media_apart:
        return draft
    messages: list[Message] = []
    after_results = False
    for message in draft.messages:
        before = messages[-1].speaker if messages else ""
        # BED-07: neighbours on the user's side are one message
        after_results = before == "tool" or (after_results and before == "human")
        # MIS-09
        if message.speaker == "system" and before in ("ai", "tool") and not constraints.system_after_reply:
            message = _as_words(draft, message)
        # MIS-07
        barred = after_results and _holds_apart(draft, message)
        if message.speaker == "human" and (barred or (before == "tool" and constraints.bridge)):
            draft.report.add("inserted", BRIDGE)
            messages.append(_words("ai", TEXTS.bridge))
            after_results = False
        messages.append(message)
    return draft.with_messages(messages)


def ends(draft: Draft) -> Draft:
    """Make the first and the last message valid for the target."""
    draft = _with_human(_ending(_beginning(draft)))
    _report_lost_marks(draft)
    return _marked(draft)


def _words(speaker: str, text: str) -> Message:
    return Message("ai" if speaker == "ai" else "human", (Text(text),))


def _beginning(draft: Draft) -> Draft:
    head = next((i for i, message in enumerate(draft.messages) if message.speaker != "system"), None)
    if draft.demands.first == "any" or head is None:
        return draft
    first = draft.messages[head]
    # A validator that starts counting at the second message rejects the results of calls in the first as surplus.
    checked = head == 0 and not draft.demands.first_calls and draft.request.continues is None
    bare = checked and any(draft.pairs_call(block) for block in first.blocks)
    # MIS-15
    alone = checked and len(draft.messages) == 1 and draft.demands.ending == "marked"
    free = draft.demands.first_at_home == "any" or (draft.demands.first_at_home == "named" and draft.model is not None)
    valid = draft.at_home(first) and free and not bare and not alone
    if first.speaker == "human" or valid:
        return draft
    draft.report.add("inserted", "added a user message at the beginning")
    return draft.with_messages((*draft.messages[:head], _words("human", TEXTS.head), *draft.messages[head:]))


def _ending(draft: Draft) -> Draft:
    constraints = draft.demands
    if not any(message.speaker != "system" for message in draft.messages):
        emptied = any(message.speaker != "system" for message in draft.request.messages)
        # Where the last message is constrained there must be one, also same-API.
        rejected = not constraints.system_last or (constraints.ending == "marked" and not draft.messages)
        required = constraints.ending != "free" and not (draft.home and constraints.no_messages)
        return _with_tail(draft) if emptied or rejected or required else draft
    position = len(draft.messages) - 1
    # An empty same-API message is ignored where neighbours of one role count as one.
    merged = constraints.alternation == "merged" and constraints.results != "each"
    while merged and position and not draft.messages[position].blocks and draft.messages[position - 1].speaker == "ai":
        position -= 1
    last = draft.messages[position]
    # DS-08
    if last.speaker == "system" and not constraints.system_last:
        return _with_tail(draft)
    if constraints.ending == "free" or last.speaker != "ai" or any(draft.pairs_call(block) for block in last.blocks):
        return draft
    if not _may_end(draft, last):
        return _with_tail(draft)
    if constraints.ending == "prefill" and not constraints.blank_ending:
        last = _trimmed(draft, last)
    if last.blocks or draft.messages[position] is last:
        return draft.with_messages((*draft.messages[:position], last, *draft.messages[position + 1 :]))
    return _ending(draft.with_messages(draft.messages[:position]))


def _may_end(draft: Draft, last: Message) -> bool:
    """Whether an assistant message may be last: as a prefill, or as a pause in hosted tools."""
    if not draft.at_home(last):
        return False
    # MIS-10, DS-08
    if draft.demands.ending == "marked":
        return last.prefill
    if not last.blocks:
        return True
    off = draft.options.reasoning is not None or draft.demands.ending == "prefill"
    # ANT-27
    if not draft.demands.reasoning_at_end and off and not draft.reasoning_on and _ends_with_thinking(draft):
        return False
    if draft.demands.pauses and _pauses(last):
        return True
    return draft.demands.ending == "prefill" and (draft.demands.prefill_while_reasoning or not draft.reasoning_on)


def _with_human(draft: Draft) -> Draft:
    """QWEN-04. Appended at the end, so that the prefix is stable when a user message follows later."""
    if not draft.demands.human_wanted or any(message.speaker == "human" for message in draft.messages):
        return draft
    return _with_tail(draft)


def _marked(draft: Draft) -> Draft:
    """Clear the prefill flag on all messages but the last (MIS-14)."""
    marked = [message.prefill and draft.at_home(message) for message in draft.messages]
    if draft.demands.ending != "marked" or not any(marked[:-1]):
        return draft
    draft.report.add("adjusted", "prefill flag dropped: only the last message may be a prefill")
    *before, last = draft.messages
    kept = (_unmarked(message) if mark else message for message, mark in zip(before, marked, strict=False))
    return draft.with_messages((*kept, last))


def _report_lost_marks(draft: Draft) -> None:
    """Report dropped prefill flags; the last one may have been reported with the message added at the end."""
    lost = sum(_is_begun_abroad(draft, message) for message in draft.request.messages)
    if lost and any(finding.message == _UNFINISHED for finding in draft.report.findings):
        lost -= 1
    if lost:
        draft.report.add("dropped", f"prefill flag dropped ({lost} messages)", fault="projection")


def _is_begun_abroad(draft: Draft, message: Message) -> bool:
    return message.prefill and not draft.at_home(message)


def _unmarked(message: Message) -> Message:
    return msgspec.structs.replace(message.holding(message.blocks), prefill=False)


def _ends_with_thinking(draft: Draft) -> bool:
    """Whether the last reply has reasoning; neighbouring messages count as one."""
    return any(map(thinks, takewhile(lambda message: message.speaker == "ai", reversed(draft.messages))))


def _pauses(message: Message) -> bool:
    block = message.blocks[-1]
    return (isinstance(block, ToolCall) and block.kind == "hosted") or (
        isinstance(block, ToolResponse) and block.hosted
    )


def _trimmed(draft: Draft, last: Message) -> Message:
    block = last.blocks[-1] if last.blocks else None
    if not isinstance(block, Text) or block.text == block.text.rstrip():
        return last
    draft.report.add("adjusted", "whitespace at the end of a prefill removed", fault="rendering")
    text = block.text.rstrip()
    return last.holding((*last.blocks[:-1], *([edited(block, text=text)] if text else [])))


def _with_tail(draft: Draft) -> Draft:
    begun = bool(draft.request.messages) and _is_begun_abroad(draft, draft.request.messages[-1])
    draft.report.add("inserted", _UNFINISHED if begun else "added a user message at the end")
    return draft.with_messages((*draft.messages, _words("human", TEXTS.tail)))
