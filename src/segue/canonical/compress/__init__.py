"""Compression of a conversation to a token budget, by one of several strategies.

`compress` is a pure function. With every strategy, a call and its results are kept or dropped together, a pending call
is kept with its turn, reasoning is never edited, and pinned messages and system text are unchanged. A note that refers
to another result is true of the compressed messages. A second run with the same budget changes nothing. Where the
budget can't be reached, the messages are compressed as far as possible and `reached` is False.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from segue.canonical.blocks import Message
from segue.canonical.compress.dense import compress_dense
from segue.canonical.compress.drop import Summariser, drop_oldest, middle_out
from segue.canonical.compress.plan import MessageChange, Plan
from segue.canonical.compress.shorten import truncate_results
from segue.canonical.tokens import TokenCounter
from segue.errors import InputError

# Each function edits the plan until it is within the budget; if that is not possible, it returns the reason.
STRATEGIES: dict[str, Callable[[Plan, int, Summariser], str]] = {
    "truncate-results": lambda plan, budget, _: truncate_results(plan, budget),
    "drop-oldest": lambda plan, budget, _: drop_oldest(plan, budget),
    "middle-out": middle_out,
    "dense": lambda plan, budget, _: compress_dense(plan, budget),
}


def _reject_missing_summariser(_messages: Sequence[Message]) -> str:
    raise InputError("middle-out needs a function that summarises messages", path="summarise")


class CompressionResult(msgspec.Struct, frozen=True):
    """The compressed conversation. `before` and `tokens` are its token counts before and after.

    `reached` is False if `tokens` exceeds the budget; then `reason` explains why. `places` are the indexes that the
    remaining messages had before; a summary has that of the first message that it summarises.
    """

    messages: tuple[Message, ...]
    changes: tuple[MessageChange, ...]
    before: int
    tokens: int
    reached: bool
    reason: str = ""
    places: tuple[int, ...] = ()


def compress(
    messages: Sequence[Message],
    strategy: str,
    budget: int,
    *,
    count: TokenCounter,
    summarise: Summariser | None = None,
    has_provider_state: bool = False,
    fixed: int = 0,
) -> CompressionResult:
    """Compress the messages until `count` is within `budget`.

    With `has_provider_state` the provider holds an earlier part of the conversation, and results without a call belong
    to calls in it. `fixed` are the tokens of system text and tools, which count too.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"unknown strategy {strategy!r}; expected one of {', '.join(STRATEGIES)}", path="strategy")
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a number of tokens was expected, not {budget!r}", path="budget")
    plan = Plan(messages, count, has_provider_state=has_provider_state)
    before, available = plan.total, budget - fixed
    reason = ""
    is_changed = True
    # A counter of messages may count more after a change than before it, so the strategy runs until nothing changes.
    while is_changed and plan.total > available:
        edit_count = plan.edit_count
        reason = STRATEGIES[strategy](plan, available, summarise or _reject_missing_summariser)
        is_changed = plan.settle_notes() or (strategy != "middle-out" and plan.edit_count > edit_count)
    reached = plan.total <= available
    return CompressionResult(
        messages=plan.messages,
        changes=plan.changes(),
        before=before + fixed,
        tokens=plan.total + fixed,
        reached=reached,
        reason="" if reached else "; not touched: ".join(filter(None, [reason, plan.describe_protected(fixed)])),
        places=plan.places,
    )
