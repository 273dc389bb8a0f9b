"""Compression: a conversation made to fit a budget of tokens, by one of several strategies.

Pure: messages in, messages out, and a note for each that was touched. Whatever the strategy, a call and its results
stay or go together, a call that waits stays with its turn, reasoning is never edited, and pinned messages and system
text are left as they are. Run again with the same budget it changes nothing. Where the budget can't be reached, what
can be done is done, and `reached` says that it was not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from segue.canonical.blocks import Message
from segue.canonical.dense import dense
from segue.canonical.dropping import Summarise, drop_oldest, middle_out
from segue.canonical.sheet import Note, Sheet
from segue.canonical.shorten import truncate_results
from segue.canonical.tokens import Count
from segue.errors import InputError

__all__ = ["STRATEGIES", "Compressed", "Note", "Summarise", "compress"]

# Each works on the sheet until the budget is kept, and says what is left where it can't be.
STRATEGIES: dict[str, Callable[[Sheet, int, Summarise], str]] = {
    "truncate-results": lambda sheet, budget, _: truncate_results(sheet, budget),
    "drop-oldest": lambda sheet, budget, _: drop_oldest(sheet, budget),
    "middle-out": middle_out,
    "dense": lambda sheet, budget, _: dense(sheet, budget),
}


def _no_summary(_messages: Sequence[Message]) -> str:
    raise InputError("middle-out needs a function that tells in few words what messages said", path="summarise")


class Compressed(msgspec.Struct, frozen=True):
    """What became of a conversation. `tokens` is what it costs now; `reason` says why that is more than the budget."""

    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    before: int
    tokens: int
    reached: bool
    reason: str = ""


def compress(
    messages: Sequence[Message],
    strategy: str,
    budget: int,
    *,
    count: Count,
    summarise: Summarise | None = None,
    elsewhere: bool = False,
) -> Compressed:
    """The messages made to cost no more than `budget` by `count`.

    `elsewhere` says that the provider holds an earlier part: results without a call are then those of calls in it.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"{strategy!r} is no strategy; there are {', '.join(STRATEGIES)}", path="strategy")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a number of tokens was expected, not {budget!r}", path="budget")
    sheet = Sheet(messages, count, elsewhere=elsewhere)
    before = sheet.total
    rest = STRATEGIES[strategy](sheet, budget, summarise or _no_summary) if before > budget else ""
    reached = sheet.total <= budget
    return Compressed(
        messages=sheet.messages,
        notes=sheet.notes(),
        before=before,
        tokens=sheet.total,
        reached=reached,
        reason="" if reached else "; untouched: ".join(filter(None, [rest, sheet.held()])),
    )
