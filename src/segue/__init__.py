"""segue: convert a tool-using conversation from any LLM API to any other, mid-conversation.

Public names are imported on first use, so `import segue` is fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue._check import check
    from segue._conversation import Conversation, Rendered
    from segue._convert import Converted, convert
    from segue._extract import Extracted, extract
    from segue._items import parse_item, render_item
    from segue._repair import Change, Repaired, repair
    from segue._stream import ReplyStream, assemble
    from segue._tools import ConvertedTools, convert_tools
    from segue.canonical.ids import (
        canonical_tool_id,
        normalize_to_anthropic_tool_id,
        normalize_to_history_tool_id,
        normalize_to_openai_tool_id,
    )
    from segue.canonical.request import Reply
    from segue.conformance.rule import Verdict, Violation
    from segue.errors import InputError, ProjectionError, RemoteProtocolError, SegueError
    from segue.render.report import Report
    from segue.wire.detect_model import Detected, detect
    from segue.wire.registry import Format, formats

__all__ = [
    "Change",
    "Conversation",
    "Converted",
    "ConvertedTools",
    "Detected",
    "Extracted",
    "Format",
    "InputError",
    "ProjectionError",
    "RemoteProtocolError",
    "Rendered",
    "Repaired",
    "Reply",
    "ReplyStream",
    "Report",
    "SegueError",
    "Verdict",
    "Violation",
    "assemble",
    "canonical_tool_id",
    "check",
    "convert",
    "convert_tools",
    "detect",
    "extract",
    "formats",
    "normalize_to_anthropic_tool_id",
    "normalize_to_history_tool_id",
    "normalize_to_openai_tool_id",
    "parse_item",
    "render_item",
    "repair",
]

_MODULES = {
    "segue.canonical.ids": (
        "canonical_tool_id",
        "normalize_to_anthropic_tool_id",
        "normalize_to_history_tool_id",
        "normalize_to_openai_tool_id",
    ),
    "segue.canonical.request": ("Reply",),
    "segue._check": ("check",),
    "segue.conformance.rule": ("Verdict", "Violation"),
    "segue._conversation": ("Conversation", "Rendered"),
    "segue._convert": ("Converted", "convert"),
    "segue._tools": ("ConvertedTools", "convert_tools"),
    "segue.errors": ("InputError", "ProjectionError", "RemoteProtocolError", "SegueError"),
    "segue._extract": ("Extracted", "extract"),
    "segue._items": ("parse_item", "render_item"),
    "segue.render.report": ("Report",),
    "segue._repair": ("Change", "Repaired", "repair"),
    "segue._stream": ("ReplyStream", "assemble"),
    "segue.wire.detect_model": ("Detected", "detect"),
    "segue.wire.registry": ("Format", "formats"),
}
_MODULE_OF = {name: room for room, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'segue' has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps the functions `convert` and `repair`: importing the modules of these names would replace them."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
