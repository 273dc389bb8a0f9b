"""Usage of a session by model: tokens, cache hits, cost, including subagents; and the footer that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from segue.canonical.request import Usage, UsageSum
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
        self.requests = 0
        self.total = UsageSum()
        self.by_model: dict[tuple[str, str], UsageSum] = {}

    def on_event(self, event: Event) -> None:
        if not isinstance(event, ReplyReceived):
            return
        self.requests += 1
        if event.usage is not None:
            name = event.provider, event.model
            cost = self._price(*name, event.usage)
            for total in (self.total, self.by_model.setdefault(name, UsageSum())):
                total.add(event.usage, cost)


def cache_hit_percent(usage: Usage) -> int | None:
    """Return the percentage of input tokens read from the prompt cache."""
    return round(100 * usage.cache_read / usage.input) if usage.input else None


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
    percent = cache_hit_percent(usage.total.usage)
    return f"cache {percent} %" if percent else ""


def _format_cost(usage: UsageTotals) -> str:
    cost = usage.total.known_cost
    if cost is None:
        return ""
    return format_money(cost) if usage.total.has_all_prices else f"≥ {format_money(cost)}"


def _format_tool_format(tool_format: str) -> str:
    return f"tools {tool_format}" if tool_format != "auto" else ""
