"""Tool formats: what a user may choose with `tool_format`, and which wires accept each."""

from __future__ import annotations

from msgspec import Struct

from segue.errors import InputError, text_argument
from segue.models import Model
from segue.wire.base import Wire
from segue.wire.idmap import IdScheme, kimi_scheme, mistral_scheme
from segue.wire.text.registry import TEXT_FORMATS

__all__ = ["TOOL_FORMATS", "ToolFormat", "known_format", "scheme_for"]


class ToolFormat(Struct, frozen=True):
    """How tools are declared and ids are projected. `ids` is None where the wire's own scheme is used."""

    name: str
    wires: frozenset[str]
    ids: IdScheme | None = None


# MIS-01: Mistral accepts only its own id form, which every other Chat API accepts too.
_CHAT = frozenset({"openai-chat", "kimi", "deepseek", "qwen"})
# Text tool formats work on every API.
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
    """The tool format of this name; None for `auto`."""
    text_argument(tool_format, "tool_format")
    if tool_format == "auto":
        return None
    form = TOOL_FORMATS.get(tool_format)
    if form is None:
        raise InputError(
            f"unknown tool format {tool_format!r}; known formats: auto, {', '.join(TOOL_FORMATS)}", path="tool_format"
        )
    return form


def scheme_for(wire: Wire, model: Model, tool_format: str, plain: Wire) -> IdScheme:
    """The id scheme of the tool format, or the wire's own for `auto`. `base_wire` is what `wire` is a dialect of."""
    form = known_format(tool_format)
    if form is None:
        return wire.ids(model)
    if wire.name not in form.wires:
        accepted = [name for name, other in TOOL_FORMATS.items() if wire.name in other.wires]
        raise InputError(
            f"{wire.name} does not accept the tool format {tool_format!r}; it accepts {', '.join(accepted)}",
            path="tool_format",
        )
    return form.ids or plain.ids(model)
