"""The line below the input: model, tokens, cache hits, cost, tool format."""

from __future__ import annotations

from segue.cli.chatting.figures import money, short
from segue.cli.chatting.looks import Row, columns, cut
from segue.cli.chatting.meter import Meter, hits
from segue.view.clean import harmless_line

__all__ = ["footer"]

_BETWEEN = "  ·  "
_INDENT = "  "


def footer(
    width: int,
    *,
    model: str,
    meter: Meter,
    holds: int = 0,
    context: int | None = None,
    tool_format: str = "auto",
    note: str = "",
) -> Row:
    """The parts that fit into `width`, in order of importance."""
    parts = [note, _tokens(holds, context), _cached(meter), _cost(meter), _tools(tool_format)]
    row = _INDENT + cut(harmless_line(model), max(8, width - len(_INDENT)))
    for part in filter(None, parts):
        if columns(row) + columns(_BETWEEN) + columns(part) <= width:
            row += _BETWEEN + part
    return [("class:footer", row)]


def _tokens(holds: int, context: int | None) -> str:
    if not holds:
        return ""
    return f"{short(holds)} of {short(context)}" if context else f"{short(holds)} tokens"


def _cached(meter: Meter) -> str:
    percent = hits(meter.total)
    return f"cache {percent} %" if percent else ""


def _cost(meter: Meter) -> str:
    cost = meter.cost
    if cost is None:
        return ""
    return money(cost) if meter.complete else f"≥ {money(cost)}"


def _tools(tool_format: str) -> str:
    return f"tools {tool_format}" if tool_format != "auto" else ""
