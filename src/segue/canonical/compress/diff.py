"""The changes of a compression, computed from the messages before and after it.

The remaining messages keep their order. Each is unchanged, has a shortened result, or is a summary at the position of
the first message that it summarises.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from segue.canonical.blocks import Message, Thinking, ToolCall, ToolResponse, responses_of, text_of
from segue.canonical.compress.plan import ChangeAction, MessageChange
from segue.canonical.placeholders import SUMMARY_PATTERN
from segue.canonical.tokens import TokenCounter


def diff_messages(
    before: Sequence[Message], after: Sequence[Message], count: TokenCounter
) -> tuple[MessageChange, ...]:
    """Return the changes of the compression that led from one list to the other, with tokens by `count`."""
    before_ids = {id(message) for message in before}
    # With a new summary the missing messages were summarised, since no strategy both summarises and drops.
    removal: ChangeAction = (
        "summarised" if any(_is_summary(message) and id(message) not in before_ids for message in after) else "dropped"
    )
    changes: list[MessageChange] = []
    position = 0
    for index, old in enumerate(before):
        new = after[position] if position < len(after) else None
        if new is not None and (new is old or (id(new) not in before_ids and _is_version_of(new, old))):
            position += 1
            if calls := _changed_calls(old, new):
                changes.append(MessageChange("shortened", index, count(old), count(new), calls))
            continue
        is_summary = new is not None and id(new) not in before_ids and _is_summary(new)
        position += is_summary
        changes.append(
            MessageChange(
                removal, index, count(old), count(new) if new is not None and is_summary else 0, _all_calls(old)
            )
        )
    return tuple(changes)


def _is_summary(new: Message) -> bool:
    """Return whether a message that a compression created is a summary. Stored ones may not be marked."""
    is_unmarked = new.speaker == "human" and SUMMARY_PATTERN.match(text_of(new.blocks)) is not None
    return new.summarised > 0 or is_unmarked


def _is_version_of(new: Message, old: Message) -> bool:
    """Return whether one message is a version of another: with shorter results, or with a prefix on its reasoning."""
    result_ids = [response.call_id for response in responses_of(new)]
    if result_ids:
        return result_ids == [response.call_id for response in responses_of(old)]
    return _clear_prefix(new) == _clear_prefix(old)


def _clear_prefix(message: Message) -> Message:
    blocks = tuple(
        msgspec.structs.replace(block, prefix=None) if isinstance(block, Thinking) else block
        for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks)


def _changed_calls(old: Message, new: Message) -> tuple[str, ...]:
    """Return the calls whose results differ."""
    if new is old:
        return ()
    pairs = zip(responses_of(old), responses_of(new), strict=True)
    return tuple(dict.fromkeys(was.call_id for was, now in pairs if was != now))


def _all_calls(message: Message) -> tuple[str, ...]:
    """Return the ids of all calls and results of a message."""
    parts = (block for block in message.blocks if isinstance(block, ToolCall | ToolResponse))
    return tuple(dict.fromkeys(b.id if isinstance(b, ToolCall) else b.call_id for b in parts))
