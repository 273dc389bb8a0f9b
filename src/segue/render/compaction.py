"""The pass for compactions: blocks of a provider that stand for the history before them.

A compaction is a boundary only for a target that can read it. Any other target gets the history that it stands for
where the request still has that, else its readable text, else a text that says what is missing.
"""

from __future__ import annotations

from itertools import filterfalse
from typing import TypeGuard

from segue.canonical.blocks import Block, Message, Opaque, Text, Thinking
from segue.render.constraints import TEXTS
from segue.render.draft import Draft
from segue.render.report import FindingKind, Level


def replace_compactions(draft: Draft) -> Draft:
    """Keep the compactions that the target can read; replace all others by what they stand for."""
    if not any(map(_find_compactions, draft.messages)):
        return draft
    start, must_be_first = _find_start(draft), _must_be_first(draft)
    # In reverse order.
    messages: list[Message] = []
    # Whether a later compaction stands for this history already.
    is_covered = False
    for position in reversed(range(len(draft.messages))):
        message = draft.messages[position]
        if start is not None and position < start:
            if message.speaker == "system":
                messages.insert(-1 if must_be_first else len(messages), message)
        elif not _find_compactions(message):
            messages.append(message)
        else:
            kept, texts, is_covered = _replace_in(draft, position, must_be_first=must_be_first, is_covered=is_covered)
            messages += reversed(_place_kept(draft, message, kept, must_be_first=must_be_first))
            messages += [Message("human", texts)] if texts else []
    return draft.with_messages(reversed(messages))


def _replace_in(
    draft: Draft, position: int, *, must_be_first: bool, is_covered: bool
) -> tuple[tuple[Block, ...], tuple[Block, ...], bool]:
    """Return what is kept of a message, the texts in place of its compactions, and whether the history is covered."""
    message = draft.messages[position]
    texts: list[Block] = []
    kept: list[Block] = []
    for place in reversed(range(len(message.blocks))):
        block = message.blocks[place]
        if not is_compaction(block):
            kept.append(block)
        elif _can_read(draft, block) and not (is_covered and must_be_first):
            kept.append(block)
            is_covered = True
        elif is_covered:
            _report(draft, block, "dropped: a later one stands for it too", level="note")
        elif _has_history(block, draft.messages[:position], message.blocks[:place]):
            _report(draft, block, "dropped: the messages that it stands for are sent", level="changed")
        else:
            texts.append(_to_text(draft, block))
            is_covered = True
    return tuple(reversed(kept)), tuple(reversed(texts)), is_covered


def _place_kept(draft: Draft, message: Message, blocks: tuple[Block, ...], *, must_be_first: bool) -> list[Message]:
    """Return the message with these blocks, the compaction first, and not in system text (ANT-44)."""
    compactions = tuple(filter(is_compaction, blocks))
    others = tuple(filterfalse(is_compaction, blocks))
    if compactions and message.speaker == "system":
        draft.report.add("moved", "compaction moved out of a system message", subject="compaction")
        return [Message("ai", compactions), *([message.with_blocks(others)] if others else [])]
    if must_be_first and (*compactions, *others) != blocks:
        draft.report.add("moved", "compaction moved to the start of its message", subject="compaction")
        blocks = (*compactions, *others)
    if blocks != message.blocks:
        message = message.with_blocks(blocks)
    return [message] if blocks else []


def is_compaction(block: Block) -> TypeGuard[Opaque]:
    """Return whether the block stands for the history before it."""
    return isinstance(block, Opaque) and block.omit_reason == "compaction"


def _find_compactions(message: Message) -> list[Opaque]:
    return [block for block in message.blocks if is_compaction(block)]


def _can_read(draft: Draft, block: Opaque) -> bool:
    return draft.constraints.compactions != "none" and draft.is_intact(block)


def _find_start(draft: Draft) -> int | None:
    """Return where the newest compaction that the target can read stands, if what is before it is not to be sent.

    A body of the target's own API keeps what its client sent, but for what a compaction replaces (ANT-44).
    """
    readable = (
        (position, block)
        for position in reversed(range(len(draft.messages)))
        for block in reversed(_find_compactions(draft.messages[position]))
        if _can_read(draft, block)
    )
    start, newest = next(readable, (None, None))
    if newest is None or (draft.is_same_api and not replaces_messages(newest)):
        return None
    if start:
        message = f"compaction: the {f'{start:,} messages' if start > 1 else 'message'} before it not sent"
        draft.report.add("dropped", message, subject="compaction", level="changed" if draft.is_same_api else "note")
    return start


def _must_be_first(draft: Draft) -> bool:
    """Return whether a compaction must be alone and the first block; same-API, those at thresholds stay (ANT-43)."""
    if draft.constraints.compactions != "first":
        return False
    blocks = (block for message in draft.messages for block in _find_compactions(message) if _can_read(draft, block))
    return not draft.is_same_api or any(map(replaces_messages, blocks))


def replaces_messages(block: Opaque) -> bool:
    """Return whether a compaction is sent in place of the messages that it stands for."""
    return block.extra is not None and "replaces" in block.extra


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
