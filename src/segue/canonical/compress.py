"""Compression of a conversation to a token budget, by one of several strategies.

Pure: messages in, messages out, and a `MessageChange` for each message touched. Whatever the strategy, a call and its
results are kept or dropped together, a pending call is kept with its turn, reasoning is never edited, and pinned
messages and system text are unchanged. Run again with the same budget it changes nothing. Where the budget can't be
reached, the messages are compressed as far as possible and `reached` is False.
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

# Each edits the plan until it is within the budget, and returns a reason where that is not possible.
STRATEGIES: dict[str, Callable[[Sheet, int, Summarise], str]] = {
    "truncate-results": lambda sheet, budget, _: truncate_results(sheet, budget),
    "drop-oldest": lambda sheet, budget, _: drop_oldest(sheet, budget),
    "middle-out": middle_out,
    "dense": lambda sheet, budget, _: dense(sheet, budget),
}


def _no_summary(_messages: Sequence[Message]) -> str:
    raise InputError("middle-out needs a function that summarises messages", path="summarise")


class Compressed(msgspec.Struct, frozen=True):
    """The compressed conversation. `tokens` is its cost now; `reason` explains why that exceeds the budget."""

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
    """Compress the messages until `count` is within `budget`.

    With `has_provider_state` the provider holds an earlier part of the conversation, and results without a call belong
    to calls in it.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}", path="strategy")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a number of tokens was expected, not {budget!r}", path="budget")
    sheet = Sheet(messages, count, elsewhere=elsewhere)
    before = sheet.total
    reason = STRATEGIES[strategy](sheet, budget, summarise or _no_summary) if before > budget else ""
    reached = sheet.total <= budget
    return Compressed(
        messages=sheet.messages,
        notes=sheet.notes(),
        before=before,
        tokens=sheet.total,
        reached=reached,
        reason="" if reached else "; not touched: ".join(filter(None, [reason, sheet.held()])),
    )
