"""Budgets of clients and groups: an amount of dollars for a period, as `50/month`. Periods begin at midnight UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, cast, get_args

from msgspec import Struct

Period = Literal["day", "week", "month", "total"]
NANO = 1_000_000_000
"""Amounts are counted in billionths of a dollar, as whole numbers."""
ALERT_SHARE = 0.8
"""The part of a budget after which there is an alert."""
_AMOUNT = re.compile(r"\d{1,9}(?:\.\d{1,6})?")
_TEXTS = {"day": "a day", "week": "a week", "month": "a month", "total": "in total"}


class Budget(Struct, frozen=True):
    """An amount in billionths of a dollar, for each period; weeks begin on Monday."""

    amount: int
    period: Period

    def __str__(self) -> str:
        return f"{format_dollars(self.amount)} {_TEXTS[self.period]}"

    def find_start(self, now: datetime) -> datetime | None:
        """Return the start of the period; None for all time."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        match self.period:
            case "day":
                return day
            case "week":
                return day - timedelta(days=day.weekday())
            case "month":
                return day.replace(day=1)
            case "total":
                return None

    def find_end(self, now: datetime) -> datetime | None:
        """Return when the next period begins; None if there is none."""
        start = self.find_start(now)
        match self.period:
            case "day" | "week":
                return start and start + timedelta(days=1 if self.period == "day" else 7)
            case _:
                return start and (start + timedelta(days=31)).replace(day=1)


class BudgetLine(Struct, frozen=True):
    """A budget in its present period. `key` identifies both in the store; `ends` is in seconds since 1970."""

    key: str
    label: str
    budget: Budget
    ends: float | None

    @property
    def reset_text(self) -> str:
        return (
            "" if self.ends is None else f"; it is reset at {datetime.fromtimestamp(self.ends, UTC):%Y-%m-%d %H:%M} UTC"
        )


class BudgetState(Struct, frozen=True):
    """What is spent of a budget, and what is reserved for open requests."""

    spent: int = 0
    held: int = 0


@lru_cache(maxsize=1024)
def parse_budget(text: str) -> Budget:
    """Parse `50/month`; raise `ValueError` with what is expected."""
    amount, slash, period = text.strip().partition("/")
    if not slash or not period:
        raise ValueError(f"{text!r} is not a budget: write an amount of dollars and a period, such as 50/month")
    if period not in get_args(Period):
        raise ValueError(f"{period!r} is not a period of a budget; expected day, week, month or total")
    if amount.startswith("-"):
        raise ValueError(f"a budget can't be negative: {text!r}")
    if not _AMOUNT.fullmatch(amount):
        raise ValueError(f"{amount!r} is not an amount of dollars; write it as a number, such as 50/month or 0.5/day")
    nano = round(float(amount) * NANO)
    if not nano:
        raise ValueError(f"a budget must be above 0: {text!r}; revoke the key to refuse all requests")
    return Budget(nano, cast("Period", period))


def open_lines(scope: str, label: str, budgets: Sequence[str], now: datetime) -> list[BudgetLine]:
    """Return the budgets of a client or group in their present periods."""
    lines: list[BudgetLine] = []
    for budget in map(parse_budget, budgets):
        start, end = budget.find_start(now), budget.find_end(now)
        key = f"{scope}|{budget.period}|{start:%Y-%m-%d}" if start else f"{scope}|{budget.period}"
        lines.append(BudgetLine(key, label, budget, end.timestamp() if end else None))
    return lines


def format_dollars(nano: int) -> str:
    dollars = nano / NANO
    return f"${dollars:,.2f}" if dollars >= 0.1 or not nano else f"${dollars:.4f}"
