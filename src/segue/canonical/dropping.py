"""The strategies that drop whole stretches: `drop-oldest`, and `middle-out`, which replaces them by summaries.

Both drop exchanges first. The user message and the newest turn of the last exchange are always kept; its older turns
are dropped last, since an agent at work may never begin a second exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from segue.canonical.blocks import Message, Text
from segue.canonical.sheet import Sheet, Unit, summed
from segue.canonical.texts import SUMMARY
from segue.errors import InputError

__all__ = ["Summarise", "drop_oldest", "middle_out"]

Summarise: TypeAlias = Callable[[Sequence[Message]], str]
"""Returns a short summary of messages."""


def drop_oldest(sheet: Sheet, budget: int) -> str:
    """Drop whole exchanges from the front, then whole turns of the last one."""
    for units in _from_the_front(sheet):
        if sheet.total <= budget:
            return ""
        sheet.drop(units)
    return "the last exchange alone exceeds the budget"


def _from_the_front(sheet: Sheet) -> Iterator[list[Unit]]:
    last = _last_exchange(sheet)
    exchanges: list[list[Unit]] = [[] for _ in range(last)]
    for unit in sheet.units:
        if unit.exchange < last and not unit.held:
            exchanges[unit.exchange].append(unit)
    yield from exchanges
    yield from ([unit] for unit in _older_turns(sheet, last))


def _last_exchange(sheet: Sheet) -> int:
    return max((unit.exchange for unit in sheet.units), default=0)


def _older_turns(sheet: Sheet, exchange: int) -> list[Unit]:
    """Return the groups of an exchange without user messages and the newest turn."""
    newest = sheet.newest
    return [u for u in sheet.units if u.exchange == exchange and not (u.held or u.words or u is newest)]


def middle_out(sheet: Sheet, budget: int, summarise: Summarise) -> str:
    """Keep the first and the last exchange; replace each stretch between kept messages by one summary."""
    last = _last_exchange(sheet)
    summaries = [unit for unit in sheet.units if not unit.held and all(summed(sheet.given[p]) for p in unit.places)]
    middle = [unit for unit in sheet.units if 0 < unit.exchange < last and not unit.held]
    refused = False
    for units in ([*middle, *summaries], [*middle, *summaries, *_older_turns(sheet, last)]):
        for places in _stretches(sheet, units):
            if sheet.total <= budget:
                return ""
            refused = not _folded(sheet, places, summarise) or refused
    return "a summary was not shorter than its messages" if refused else "only the first and the last exchange are left"


def _stretches(sheet: Sheet, units: Sequence[Unit]) -> list[list[int]]:
    """Return indexes of whole groups with no kept message between them; stretches of summaries alone are skipped."""
    while True:
        stretches = _runs(sheet, {place for unit in units for place in unit.places})
        stretch_of = {place: number for number, places in enumerate(stretches) for place in places}
        # A late result may be on the other side of a kept message: then it is kept with its call.
        whole = [unit for unit in units if len({stretch_of[place] for place in unit.places if place in stretch_of}) < 2]
        if len(whole) == len(units):
            return [places for places in stretches if not all(map(summed, _said(sheet, places)))]
        units = whole


def _runs(sheet: Sheet, chosen: Collection[int]) -> list[list[int]]:
    runs: list[list[int]] = [[]]
    for place, message in enumerate(sheet.now):
        if message is not None and place in chosen:
            runs[-1].append(place)
        elif message is not None and runs[-1]:
            runs.append([])
    return runs


def _said(sheet: Sheet, places: Iterable[int]) -> list[Message]:
    return [message for message in (sheet.now[place] for place in places) if message is not None]


def _folded(sheet: Sheet, places: Sequence[int], summarise: Summarise) -> bool:
    messages = _said(sheet, places)
    summary = summarise(messages)
    if not isinstance(summary, str) or not summary.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("a summary must be a non-empty string", path="summarise")
    count = sum(summed(message) or 1 for message in messages)
    return sheet.fold(places, Message("human", (Text(SUMMARY.format(count=count, text=summary.strip())),)))
