"""Chooses the text extractor for a reply: the requested tool format, or the one that its model is known to leak."""

from __future__ import annotations

from collections.abc import Iterable

from segue.canonical.request import Tool
from segue.models import parse_model
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.extractor import TextExtractor
from segue.wire.text.registry import TEXT_FORMATS
from segue.wire.text.text_format import TextFormat

__all__ = ["choose_extractor"]

# Models that may write their special tokens into the text instead of making API tool calls.
_LEAKED_FORMATS = {"kimi": "kimi-text", "deepseek": "deepseek-text", "mistral": "mistral-text"}


def choose_extractor(
    wire: Wire,
    model: str | None,
    tool_format: str,
    *,
    turn_key: str,
    tools: Iterable[Tool] | None = None,
    report: Report | None = None,
    think: bool = True,
) -> TextExtractor:
    declared = DeclaredTools(tools)
    return TextExtractor(
        _choose_format(wire, model, tool_format), turn_key=turn_key, declared=declared, report=report, think=think
    )


def _choose_format(wire: Wire, model: str | None, tool_format: str) -> TextFormat | None:
    if tool_format != "auto":
        return TEXT_FORMATS.get(tool_format)
    family = parse_model(model).family if model else None
    return TEXT_FORMATS.get(_LEAKED_FORMATS.get(wire.provider) or _LEAKED_FORMATS.get(family or "") or "")
