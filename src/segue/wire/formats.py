"""Tool formats: what a user may override, and on which wires each is lawful."""

from __future__ import annotations

from msgspec import Struct

from segue.errors import InputError, text_argument
from segue.models import Model
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["TOOL_FORMATS", "ToolFormat", "known_format", "scheme_for"]


class ToolFormat(Struct, frozen=True):
    """A way to declare tools and to spell ids. `ids` is None where the wire's own scheme holds."""

    name: str
    wires: frozenset[str]
    ids: IdScheme | None = None


# MIS-01: Mistral takes no ids but its own; those are good for everybody.
_CHAT = frozenset({"openai-chat", "kimi", "deepseek", "qwen"})
# In words tools can be told to anybody.
_ANYWHERE = _CHAT | {"openai-responses", "anthropic", "gemini", "bedrock", "azure-foundry", "mistral"}
_TEXT_IDS = {"kimi-text": kimi_scheme(), "mistral-text": mistral_scheme()}

TOOL_FORMATS: dict[str, ToolFormat] = {
    form.name: form
    for form in (
        ToolFormat("openai", _CHAT | {"openai-responses", "azure-foundry"}),
        ToolFormat("anthropic", frozenset({"anthropic", "bedrock"})),
        ToolFormat("gemini", frozenset({"gemini"})),
        ToolFormat("bedrock", frozenset({"bedrock"})),
        ToolFormat("mistral", _CHAT | {"mistral", "bedrock"}, mistral_scheme()),
        ToolFormat("kimi", _CHAT, kimi_scheme()),
        ToolFormat("deepseek", _CHAT),
        ToolFormat("qwen", _CHAT),
        *(ToolFormat(name, _ANYWHERE, _TEXT_IDS.get(name)) for name in TEXT_FORMATS),
    )
}


def known_format(tool_format: str) -> ToolFormat | None:
    """The tool format of this name; None is `auto`."""
    text_argument(tool_format, "tool_format")
    if tool_format == "auto":
        return None
    form = TOOL_FORMATS.get(tool_format)
    if form is None:
        raise InputError(
            f"{tool_format!r} is not a known tool format; known are auto, {', '.join(TOOL_FORMATS)}", path="tool_format"
        )
    return form


def scheme_for(wire: Wire, model: Model, tool_format: str, plain: Wire) -> IdScheme:
    """The id scheme to use: the user's choice where there is one. `plain` is the wire that dialects are spoken on."""
    form = known_format(tool_format)
    if form is None:
        return wire.ids(model)
    if wire.name not in form.wires:
        fitting = [name for name, other in TOOL_FORMATS.items() if wire.name in other.wires]
        raise InputError(
            f"{wire.name} does not take the tool format {tool_format!r}; it takes {', '.join(fitting)}",
            path="tool_format",
        )
    return form.ids or plain.ids(model)
