"""segue converts conversations with tool calls from any LLM API to any other, also in the middle of a conversation.

The public names are imported on first use, so that `import segue` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue._check import check
    from segue._conversation import Conversation
    from segue._convert import Converted, convert
    from segue._extract import Extracted, extract
    from segue._items import parse_item, render_item
    from segue._literals import Api, Profile, TextFormat, ToolFormat
    from segue._rendered import Rendered
    from segue._repair import Change, Repaired, repair
    from segue._stream import ReplyStream, assemble
    from segue._switch_cost import SwitchCost
    from segue._tools import ConvertedTools, convert_tools
    from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
    from segue.canonical.compress import CompressionResult, MessageChange
    from segue.canonical.ids import (
        canonical_tool_id,
        normalize_to_anthropic_tool_id,
        normalize_to_history_tool_id,
        normalize_to_openai_tool_id,
    )
    from segue.canonical.request import Options, Reply, Request, Tool, Usage
    from segue.coerce import Body
    from segue.conformance.rule import Verdict, Violation
    from segue.errors import (
        ConflictError,
        InputError,
        LeaseError,
        ProjectionError,
        ProviderError,
        RemoteProtocolError,
        SegueError,
        StoreError,
    )
    from segue.models import Model
    from segue.render.constraints import Policy
    from segue.render.report import Finding, Report
    from segue.runtime.complete import Completion, CompletionStream, acomplete, complete
    from segue.wire.detect_model import Detected, detect
    from segue.wire.limits import ReplyLimits
    from segue.wire.registry import Format, formats

    __version__: str

__all__ = [
    "Api",
    "Block",
    "Body",
    "Change",
    "Code",
    "Completion",
    "CompletionStream",
    "CompressionResult",
    "ConflictError",
    "Conversation",
    "Converted",
    "ConvertedTools",
    "Detected",
    "Extracted",
    "Finding",
    "Format",
    "InputError",
    "LeaseError",
    "Media",
    "Message",
    "MessageChange",
    "Model",
    "Opaque",
    "Options",
    "Policy",
    "Profile",
    "ProjectionError",
    "ProviderError",
    "RemoteProtocolError",
    "Rendered",
    "Repaired",
    "Reply",
    "ReplyLimits",
    "ReplyStream",
    "Report",
    "Request",
    "SegueError",
    "StoreError",
    "SwitchCost",
    "Text",
    "TextFormat",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolFormat",
    "ToolResponse",
    "Usage",
    "Verdict",
    "Violation",
    "__version__",
    "acomplete",
    "assemble",
    "canonical_tool_id",
    "check",
    "complete",
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
    "segue._check": "check",
    "segue._conversation": "Conversation",
    "segue._rendered": "Rendered",
    "segue._convert": "Converted convert",
    "segue._extract": "Extracted extract",
    "segue._items": "parse_item render_item",
    "segue._literals": "Api Profile TextFormat ToolFormat",
    "segue._repair": "Change Repaired repair",
    "segue._stream": "ReplyStream assemble",
    "segue._switch_cost": "SwitchCost",
    "segue._tools": "ConvertedTools convert_tools",
    "segue.canonical.blocks": "Block Code Media Message Opaque Text Thinking ToolCall ToolResponse",
    "segue.canonical.compress": "CompressionResult MessageChange",
    "segue.canonical.ids": (
        "canonical_tool_id normalize_to_anthropic_tool_id normalize_to_history_tool_id normalize_to_openai_tool_id"
    ),
    "segue.canonical.request": "Options Reply Request Tool Usage",
    "segue.coerce": "Body",
    "segue.conformance.rule": "Verdict Violation",
    "segue.errors": (
        "ConflictError InputError LeaseError ProjectionError ProviderError RemoteProtocolError SegueError StoreError"
    ),
    "segue.models": "Model",
    "segue.render.constraints": "Policy",
    "segue.render.report": "Finding Report",
    "segue.wire.detect_model": "Detected detect",
    "segue.wire.limits": "ReplyLimits",
    "segue.wire.registry": "Format formats",
    "segue.runtime.complete": "Completion CompletionStream acomplete complete",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("segue")
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'segue' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
