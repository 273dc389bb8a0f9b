"""Usage of a session by model, from its events: tokens, cache hits, cost. Includes subagents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from segue.canonical.request import Usage
from segue.runtime.events import Event, ReplyReceived

__all__ = ["PriceLookup", "UsageTotals"]

PriceLookup: TypeAlias = Callable[[str, str, Usage], float | None]
"""Maps provider, model and usage to dollars; None where no price is known."""


class UsageTotals:
    """Totals since the chat was opened, over all its conversations."""

    def __init__(self, price: PriceLookup = lambda provider, model, usage: None) -> None:
        self._price = price
        self.by_model: dict[tuple[str, str], Usage] = {}
        self.requests: dict[tuple[str, str], int] = {}
        self.costs: dict[tuple[str, str], float | None] = {}

    def on_event(self, event: Event) -> None:
        if not isinstance(event, ReplyReceived):
            return
        name = event.provider, event.model
        self.requests[name] = self.requests.get(name, 0) + 1
        if event.usage is None:
            return
        self.by_model[name] = _add_usage(self.by_model.get(name, Usage()), event.usage)
        cost, before = self._price(*name, event.usage), self.costs.get(name, 0.0)
        self.costs[name] = None if cost is None or before is None else before + cost

    @property
    def total(self) -> Usage:
        total = Usage()
        for usage in self.by_model.values():
            total = _add_usage(total, usage)
        return total

    @property
    def cost(self) -> float | None:
        """The total cost of models with a known price; None where there is none."""
        known = [cost for cost in self.costs.values() if cost is not None]
        return sum(known) if known else None

    @property
    def has_all_prices(self) -> bool:
        """Whether the price of every model is known."""
        return None not in self.costs.values()


def cache_hit_percent(usage: Usage) -> int | None:
    """The percentage of input tokens read from the prompt cache."""
    return round(100 * usage.cache_read / usage.input) if usage.input else None


def _add_usage(one: Usage, other: Usage) -> Usage:
    before, more = msgspec.structs.asdict(one), msgspec.structs.asdict(other)
    return Usage(**{name: before[name] + more[name] for name in before})
