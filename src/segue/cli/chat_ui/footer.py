"""The line below the input: model, tokens, cache hits, cost, tool format."""

from __future__ import annotations

from segue.cli.chat_ui.number_format import format_money, format_short
from segue.cli.chat_ui.styles import Row, display_width, truncate
from segue.cli.chat_ui.usage import UsageTotals, cache_hit_percent
from segue.view.sanitize import sanitize_line

__all__ = ["format_footer"]

_SEPARATOR = "  ·  "
_INDENT = "  "


def format_footer(
    width: int,
    *,
    model: str,
    usage: UsageTotals,
    tokens: int = 0,
    context: int | None = None,
    tool_format: str = "auto",
    note: str = "",
) -> Row:
    """The parts that fit into `width`, in order of importance."""
    parts = [
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
