"""The strategies that drop whole stretches: `drop-oldest`, and `middle-out`, which replaces them by summaries.

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

__all__ = ["Summariser", "drop_oldest", "middle_out"]

Summariser: TypeAlias = Callable[[Sequence[Message]], str]
"""Returns a short summary of messages."""


def drop_oldest(sheet: Plan, budget: int) -> str:
    """Drop whole exchanges from the front, then whole turns of the last one."""
    for units in _droppable_groups(sheet):
        if sheet.total <= budget:
            return ""
        sheet.drop(units)
    return "the last exchange alone exceeds the budget"


def _droppable_groups(sheet: Plan) -> Iterator[list[Group]]:
    last = _last_exchange(sheet)
    exchanges: list[list[Group]] = [[] for _ in range(last)]
    for unit in sheet.groups:
        if unit.exchange < last and not unit.is_protected:
            exchanges[unit.exchange].append(unit)
    yield from exchanges
    yield from ([unit] for unit in _older_turns(sheet, last))


def _last_exchange(sheet: Plan) -> int:
    return max((unit.exchange for unit in sheet.groups), default=0)


def _older_turns(sheet: Plan, exchange: int) -> list[Group]:
    """Return the groups of an exchange without user messages and the newest turn."""
    newest = sheet.newest_group
    return [
        u for u in sheet.groups if u.exchange == exchange and not (u.is_protected or u.is_user_message or u is newest)
    ]


def middle_out(sheet: Plan, budget: int, summarise: Summariser) -> str:
    """Keep the first and the last exchange; replace each stretch between kept messages by one summary."""
    last = _last_exchange(sheet)
    summaries = [
        unit
        for unit in sheet.groups
        if not unit.is_protected and all(count_summarised(sheet.original[p]) for p in unit.indexes)
    ]
    middle = [unit for unit in sheet.groups if 0 < unit.exchange < last and not unit.is_protected]
    refused = False
    for units in ([*middle, *summaries], [*middle, *summaries, *_older_turns(sheet, last)]):
        for places in _find_stretches(sheet, units):
            if sheet.total <= budget:
                return ""
            refused = not _summarise_stretch(sheet, places, summarise) or refused
    return "a summary was not shorter than its messages" if refused else "only the first and the last exchange are left"


def _find_stretches(sheet: Plan, units: Sequence[Group]) -> list[list[int]]:
    """Return indexes of whole groups with no kept message between them; stretches of summaries alone are skipped."""
    while True:
        stretches = _find_runs(sheet, {place for unit in units for place in unit.indexes})
        stretch_of = {place: number for number, places in enumerate(stretches) for place in places}
        # A late result may be on the other side of a kept message: then it is kept with its call.
        whole = [
            unit for unit in units if len({stretch_of[place] for place in unit.indexes if place in stretch_of}) < 2
        ]
        if len(whole) == len(units):
            return [
                places for places in stretches if not all(map(count_summarised, _remaining_messages(sheet, places)))
            ]
        units = whole


def _find_runs(sheet: Plan, chosen: Collection[int]) -> list[list[int]]:
    runs: list[list[int]] = [[]]
    for place, message in enumerate(sheet.current):
        if message is not None and place in chosen:
            runs[-1].append(place)
        elif message is not None and runs[-1]:
            runs.append([])
    return runs


def _remaining_messages(sheet: Plan, places: Iterable[int]) -> list[Message]:
    return [message for message in (sheet.current[place] for place in places) if message is not None]


def _summarise_stretch(sheet: Plan, places: Sequence[int], summarise: Summariser) -> bool:
    messages = _remaining_messages(sheet, places)
    summary = summarise(messages)
    if not isinstance(summary, str) or not summary.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a summary must be a non-empty string", path="summarise")
    count = sum(count_summarised(message) or 1 for message in messages)
    return sheet.summarise(places, Message("human", (Text(SUMMARY.format(count=count, text=summary.strip())),)))
