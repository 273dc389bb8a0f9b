"""The pass for compactions: blocks of a provider that stand for the history before them.

A compaction is a boundary only for a target that can read it. Any other target gets the history that it stands for
where the request still has that, else its readable text, else a text that says what is missing.
"""

from __future__ import annotations

from typing import TypeGuard

from segue.canonical.blocks import Block, Message, Opaque, Text, Thinking
from segue.render.constraints import TEXTS
from segue.render.draft import Draft
from segue.render.report import FindingKind, Level


def replace_compactions(draft: Draft) -> Draft:
    """Keep the compactions that the target can read; replace all others by what they stand for."""
    newest = next((at for at in reversed(range(len(draft.messages))) if _find_compactions(draft.messages[at])), None)
    if newest is None:
        return draft
    start = _find_start(draft)
    messages: list[Message] = []
    # Whether a later compaction stands for this history already.
    is_covered = False
    for position in reversed(range(len(draft.messages))):
        message = draft.messages[position]
        if start is not None and position < start:
            break
        compactions = _find_compactions(message)
        if not compactions:
            messages.append(message)
            continue
        texts: list[Block] = []
        kept: list[Block] = []
        for place in reversed(range(len(message.blocks))):
            block = message.blocks[place]
            if not is_compaction(block):
                kept.append(block)
            elif _can_read(draft, block) and not (is_covered and draft.constraints.compactions == "first"):
                kept.append(block)
                is_covered = True
            elif is_covered:
                _report(draft, block, "dropped: a later one stands for it too", level="note")
            elif _has_history(block, draft.messages[:position], message.blocks[:place]):
                _report(draft, block, "dropped: the messages that it stands for are sent", level="changed")
            else:
                texts.append(_to_text(draft, block))
                is_covered = True
        blocks = tuple(reversed(kept))
        if draft.constraints.compactions == "first":
            blocks = _move_first(draft, blocks)
        if blocks != message.blocks:
            message = message.with_blocks(blocks)
        messages += [message] if blocks else []
        messages += [Message("human", tuple(reversed(texts)))] if texts else []
    return draft.with_messages(reversed(messages))


def is_compaction(block: Block) -> TypeGuard[Opaque]:
    """Return whether the block stands for the history before it."""
    return isinstance(block, Opaque) and block.omit_reason == "compaction"


def _find_compactions(message: Message) -> list[Opaque]:
    return [block for block in message.blocks if is_compaction(block)]


def _can_read(draft: Draft, block: Opaque) -> bool:
    return draft.constraints.compactions != "none" and draft.is_intact(block)


def _find_start(draft: Draft) -> int | None:
    """Return where the newest compaction that the target can read stands, if what is before it need not be sent.

    A body of the target's own API keeps what its client sent.
    """
    if draft.is_same_api:
        return None
    readable = (
        position
        for position in reversed(range(len(draft.messages)))
        if any(_can_read(draft, block) for block in _find_compactions(draft.messages[position]))
    )
    start = next(readable, None)
    if start:
        draft.report.add(
            "dropped",
            f"compaction: the {f'{start:,} messages' if start > 1 else 'message'} before it not sent",
            subject="compaction",
            level="note",
        )
    return start


def _move_first(draft: Draft, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with the compaction before all others, the only place where such an API accepts it."""
    ordered = tuple(sorted(blocks, key=lambda block: not is_compaction(block)))
    if ordered != blocks:
        draft.report.add("moved", "compaction moved to the start of its message", subject="compaction")
    return ordered


def _has_history(block: Opaque, messages: tuple[Message, ...], before: tuple[Block, ...]) -> bool:
    """Return whether the history that a compaction stands for is before it: it is recorded so, or has replies.

    Clients keep some of the user's messages when they drop the rest.
    """
    if block.extra and "messages" in block.extra:
        return bool(messages or before)
    return _has_replies(messages, before)


def _has_replies(messages: tuple[Message, ...], before: tuple[Block, ...]) -> bool:
    replies = [block for message in messages if message.speaker in ("ai", "tool") for block in message.blocks]
    return any(not isinstance(block, Thinking | Opaque) for block in (*replies, *before))


def _to_text(draft: Draft, block: Opaque) -> Text:
    """Return what a target gets for a compaction whose history is gone."""
    if block.text:
        _report(draft, block, "rendered as text: the messages that it stands for are not in this request")
        return Text(TEXTS.summary.format(content=block.text))
    _report(
        draft,
        block,
        f"dropped: only the provider that made it can read it, and {_describe_lost(block)} is not in this request",
        level="lost",
    )
    return Text(TEXTS.lost_history)


def _describe_lost(block: Opaque) -> str:
    size = (block.extra or {}).get("size", 0)
    return f"an unknown number of messages ({size:,} characters of encrypted content)"


def _report(draft: Draft, block: Opaque, why: str, *, level: Level = "changed") -> None:
    kind: FindingKind = "dropped" if why.startswith("dropped") else "text"
    draft.report.add(kind, f"{block.kind} {why}", subject=block.kind, level=level)
