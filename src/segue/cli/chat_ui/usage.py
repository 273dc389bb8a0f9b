"""Usage of a session by model: tokens, cache hits, cost, including subagents; and the footer that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from segue.canonical.request import Usage
from segue.cli.chat_ui.styles import Row, display_width, truncate
from segue.runtime.events import Event, ReplyReceived
from segue.view.format import format_money, format_short
from segue.view.sanitize import sanitize_line

_SEPARATOR = "  ·  "
_INDENT = "  "

_PriceLookup: TypeAlias = Callable[[str, str, Usage], float | None]
"""Maps provider, model and usage to dollars; None where no price is known."""


class UsageTotals:
    """Totals since the chat was opened, over all its conversations."""

    def __init__(self, price: _PriceLookup = lambda provider, model, usage: None) -> None:
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
    """Return the percentage of input tokens read from the prompt cache."""
    return round(100 * usage.cache_read / usage.input) if usage.input else None


def _add_usage(one: Usage, other: Usage) -> Usage:
    before, more = msgspec.structs.asdict(one), msgspec.structs.asdict(other)
    return Usage(**{name: before[name] + more[name] for name in before})


def format_footer(
    width: int,
    *,
    model: str,
    usage: UsageTotals,
    tokens: int = 0,
    context: int | None = None,
    tool_format: str = "auto",
    mode: str = "",
    note: str = "",
) -> Row:
    """Format the line below the input: model, mode, tokens, cache hits, cost and tool format, as far as they fit."""
    parts = [
        mode,
        note,
        _format_tokens(tokens, context),
        _format_cache_hits(usage),
        _format_cost(usage),
        _format_tool_format(tool_format),
    ]
    row = _INDENT + truncate(sanitize_line(model), max(8, width - len(_INDENT)))
    for part in filter(None, parts):
        if display_width(row) + display_width(_SEPARATOR) + display_width(part) <= width:
            row += _SEPARATOR + part
    return [("class:footer", row)]


def _format_tokens(tokens: int, context: int | None) -> str:
    if not tokens:
        return ""
    return f"{format_short(tokens)} of {format_short(context)}" if context else f"{format_short(tokens)} tokens"


def _format_cache_hits(usage: UsageTotals) -> str:
    percent = cache_hit_percent(usage.total)
    return f"cache {percent} %" if percent else ""


def _format_cost(usage: UsageTotals) -> str:
    cost = usage.cost
    if cost is None:
        return ""
    return format_money(cost) if usage.has_all_prices else f"≥ {format_money(cost)}"


def _format_tool_format(tool_format: str) -> str:
    return f"tools {tool_format}" if tool_format != "auto" else ""
