"""Tool formats: what a user may choose with `tool_format`, and which wires accept each."""

from __future__ import annotations

from msgspec import Struct

from segue.errors import InputError, require_string, unknown_name
from segue.models import Model
from segue.wire.base import Wire
from segue.wire.ids import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["TOOL_FORMATS", "ToolFormat", "find_tool_format", "id_scheme_for"]


class ToolFormat(Struct, frozen=True):
    """How tools are declared and ids are projected. `ids` is None where the wire's own scheme is used."""

    name: str
    wires: frozenset[str]
    ids: IdScheme | None = None


# MIS-01: Mistral accepts only its own id form, which every other Chat API accepts too.
_CHAT_WIRES = frozenset({"openai-chat", "kimi", "deepseek", "qwen"})
# Text tool formats work on every API.
_ALL_WIRES = _CHAT_WIRES | {"openai-responses", "anthropic", "gemini", "bedrock", "azure-foundry", "mistral"}
_TEXT_ID_SCHEMES = {"kimi-text": kimi_scheme(), "mistral-text": mistral_scheme()}

TOOL_FORMATS: dict[str, ToolFormat] = {
    form.name: form
    for form in (
        ToolFormat("openai", _CHAT_WIRES | {"openai-responses", "azure-foundry"}),
        ToolFormat("anthropic", frozenset({"anthropic", "bedrock"})),
        ToolFormat("gemini", frozenset({"gemini"})),
        ToolFormat("bedrock", frozenset({"bedrock"})),
        ToolFormat("mistral", _CHAT_WIRES | {"mistral", "bedrock"}, mistral_scheme()),
        ToolFormat("kimi", _CHAT_WIRES, kimi_scheme()),
        ToolFormat("deepseek", _CHAT_WIRES),
        ToolFormat("qwen", _CHAT_WIRES),
        *(ToolFormat(name, _ALL_WIRES, _TEXT_ID_SCHEMES.get(name)) for name in TEXT_FORMATS),
    )
}


def find_tool_format(tool_format: str) -> ToolFormat | None:
    """The tool format of this name; None for `auto`."""
    require_string(tool_format, "tool_format")
    if tool_format == "auto":
        return None
    form = TOOL_FORMATS.get(tool_format)
    if form is None:
        raise unknown_name("tool format", tool_format, ("auto", *TOOL_FORMATS), path="tool_format")
    return form


def id_scheme_for(wire: Wire, model: Model, tool_format: str, base_wire: Wire) -> IdScheme:
    """The id scheme of the tool format, or the wire's own for `auto`. `base_wire` is what `wire` is a dialect of."""
    form = find_tool_format(tool_format)
    if form is None:
        return wire.ids(model)
    if wire.name not in form.wires:
        accepted = [name for name, other in TOOL_FORMATS.items() if wire.name in other.wires]
        raise InputError(
            f"{wire.name} does not accept the tool format {tool_format!r}; it accepts {', '.join(accepted)}",
            path="tool_format",
        )
    return form.ids or base_wire.ids(model)
