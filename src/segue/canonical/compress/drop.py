"""The strategies `drop-oldest`, which drops messages, and `middle-out`, which replaces messages by summaries.

Both drop exchanges first. The user message and the newest turn of the last exchange are always kept; its older turns
are dropped last, since an agent at work may never begin a second exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from segue.canonical.blocks import Message, Text
from segue.canonical.compress.placeholders import SUMMARY
from segue.canonical.compress.plan import Group, Plan, count_summarised
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
        if not group.is_protected and all(count_summarised(plan.original[p]) for p in group.indexes)
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
    while True:
        stretches = _find_runs(plan, {index for group in groups for index in group.indexes})
        stretch_of = {index: number for number, indexes in enumerate(stretches) for index in indexes}
        # A late result may be on the other side of a kept message: then it is kept with its call.
        whole = [
            group for group in groups if len({stretch_of[index] for index in group.indexes if index in stretch_of}) < 2
        ]
        if len(whole) == len(groups):
            return [
                indexes for indexes in stretches if not all(map(count_summarised, _remaining_messages(plan, indexes)))
            ]
        groups = whole


def _find_runs(plan: Plan, chosen: Collection[int]) -> list[list[int]]:
    runs: list[list[int]] = [[]]
    for index, message in enumerate(plan.current):
        if message is not None and index in chosen:
            runs[-1].append(index)
        elif message is not None and runs[-1]:
            runs.append([])
    return runs


def _remaining_messages(plan: Plan, indexes: Iterable[int]) -> list[Message]:
    return [message for message in (plan.current[index] for index in indexes) if message is not None]


def _summarise_stretch(plan: Plan, indexes: Sequence[int], summarise: Summariser) -> bool:
    messages = _remaining_messages(plan, indexes)
    summary = summarise(messages)
    if not isinstance(summary, str) or not summary.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a summary must be a non-empty string", path="summarise")
    count = sum(count_summarised(message) or 1 for message in messages)
    return plan.summarise(indexes, Message("human", (Text(SUMMARY.format(count=count, text=summary.strip())),)))
