"""Chooses the text extractor for a reply: the requested tool format, or the one that its model is known to leak."""

from __future__ import annotations

from collections.abc import Iterable

from segue.canonical.request import Tool
from segue.models import identify
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.text.base import TextFormat
from segue.wire.text.hearing import Hearing
from segue.wire.text.registry import TEXT_FORMATS
from segue.wire.text.typed import Declared

__all__ = ["hearing_of"]

# Models that may write their special tokens into the text instead of making API tool calls.
_LEAKED_BY = {"kimi": "kimi-text", "deepseek": "deepseek-text", "mistral": "mistral-text"}


def hearing_of(
    wire: Wire,
    model: str | None,
    tool_format: str,
    *,
    turn_key: str,
    tools: Iterable[Tool] | None = None,
    report: Report | None = None,
    think: bool = True,
) -> Hearing:
    declared = Declared(tools)
    return Hearing(_form_of(wire, model, tool_format), turn_key=turn_key, declared=declared, report=report, think=think)


def _form_of(wire: Wire, model: str | None, tool_format: str) -> TextFormat | None:
    if tool_format != "auto":
        return TEXT_FORMATS.get(tool_format)
    family = identify(model).family if model else None
    return TEXT_FORMATS.get(_LEAKED_BY.get(wire.provider) or _LEAKED_BY.get(family or "") or "")
