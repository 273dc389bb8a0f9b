"""The strategies `drop-oldest`, which drops messages, and `middle-out`, which replaces messages by summaries.

Both drop exchanges first. The user message and the newest turn of the last exchange are always kept; its older turns
are dropped last, since an agent at work may never begin a second exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

from segue.canonical.blocks import Message, Text
from segue.canonical.compress.plan import Group, Plan, find_root
from segue.canonical.placeholders import SUMMARY
from segue.errors import InputError

Summariser: TypeAlias = Callable[[Sequence[Message]], str]
"""Returns a short summary of messages."""


def drop_oldest(plan: Plan, budget: int) -> str:
    """Drop whole exchanges from the front, then whole turns of the last one."""
    for groups in _droppable_groups(plan):
        if plan.total <= budget:
            return ""
        plan.drop(groups)
    return "the last exchange alone exceeds the budget"


def _droppable_groups(plan: Plan) -> Iterator[list[Group]]:
    last = _last_exchange(plan)
    exchanges: list[list[Group]] = [[] for _ in range(last)]
    for group in plan.groups:
        if group.exchange < last and not group.is_protected:
            exchanges[group.exchange].append(group)
    yield from exchanges
    yield from ([group] for group in _older_turns(plan, last))


def _last_exchange(plan: Plan) -> int:
    return max((group.exchange for group in plan.groups), default=0)


def _older_turns(plan: Plan, exchange: int) -> list[Group]:
    """Return the groups of an exchange without user messages and the newest turn."""
    newest = plan.newest_group
    return [
        group
        for group in plan.groups
        if group.exchange == exchange and not (group.is_protected or group.is_user_message or group is newest)
    ]


def middle_out(plan: Plan, budget: int, summarise: Summariser) -> str:
    """Keep the first and the last exchange; replace each run of messages between kept ones by one summary."""
    last = _last_exchange(plan)
    summaries = [
        group
        for group in plan.groups
        if not group.is_protected and all(plan.original[p].summarised for p in group.indexes)
    ]
    middle = [group for group in plan.groups if 0 < group.exchange < last and not group.is_protected]
    longer = False
    for groups in ([*middle, *summaries], [*middle, *summaries, *_older_turns(plan, last)]):
        for indexes in _find_stretches(plan, groups):
            if plan.total <= budget:
                return ""
            longer = not _summarise_stretch(plan, indexes, summarise) or longer
    return "a summary was not shorter than its messages" if longer else "only the first and the last exchange are left"


def _find_stretches(plan: Plan, groups: Sequence[Group]) -> list[list[int]]:
    """Return indexes of whole groups with no kept message between them; stretches of summaries alone are skipped."""
    chosen = _exclude_split_groups(plan, groups)
    stretches: list[list[int]] = [[]]
    for index, message in enumerate(plan.current):
        if message is not None and index in chosen:
            stretches[-1].append(index)
        elif message is not None and stretches[-1]:
            stretches.append([])
    return [
        indexes
        for indexes in stretches
        if not all(message.summarised for message in _remaining_messages(plan, indexes))
    ]


def _exclude_split_groups(plan: Plan, groups: Sequence[Group]) -> set[int]:
    """Return the indexes of the groups without a kept message inside: a late result may follow one.

    A group that is kept splits the groups that have its messages inside, and these split others. Groups that interleave
    split each other, so they are merged, in one sweep. After that the groups are side by side or nested, and a group is
    split exactly if a message that was not chosen is inside.
    """
    owner = {i: number for number, group in enumerate(groups) for i in group.indexes if plan.current[i] is not None}
    indexes = sorted(owner)
    first = {owner[index]: index for index in reversed(indexes)}
    last = {owner[index]: index for index in indexes}
    parents = list(range(len(groups)))
    # The groups that have begun and not ended, each inside of the one before.
    nested: list[int] = []
    for index in indexes:
        root = find_root(parents, owner[index])
        if index == first[root]:
            nested.append(root)
        while nested[-1] != root:
            inner = nested.pop()
            parents[inner] = root
            last[root] = max(last[root], last[inner])
        if index == last[root]:
            nested.pop()
    kept_before = [0, *accumulate(m is not None and i not in owner for i, m in enumerate(plan.current))]
    roots = {index: find_root(parents, number) for index, number in owner.items()}
    return {index for index, root in roots.items() if kept_before[first[root]] == kept_before[last[root]]}


def _remaining_messages(plan: Plan, indexes: Iterable[int]) -> list[Message]:
    return [message for message in (plan.current[index] for index in indexes) if message is not None]


def _summarise_stretch(plan: Plan, indexes: Sequence[int], summarise: Summariser) -> bool:
    messages = _remaining_messages(plan, indexes)
    summary = summarise(messages)
    if not isinstance(summary, str) or not summary.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a summary must be a non-empty string", path="summarise")
    count = sum(message.summarised or 1 for message in messages)
    text = Text(SUMMARY.format(count=count, text=summary.strip()))
    return plan.summarise(indexes, Message("human", (text,), summarised=count))
