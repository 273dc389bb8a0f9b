"""All wires and dialects by name. The command line, the tests and the docs iterate this table."""

from __future__ import annotations

from msgspec import Struct

from segue.errors import require_string, unknown_name
from segue.wire.anthropic import ANTHROPIC
from segue.wire.base import Wire
from segue.wire.bedrock import BEDROCK
from segue.wire.dialects.deepseek import DEEPSEEK
from segue.wire.dialects.foundry import AZURE_FOUNDRY
from segue.wire.dialects.kimi import KIMI
from segue.wire.dialects.mistral import MISTRAL
from segue.wire.dialects.qwen import QWEN
from segue.wire.gemini import GEMINI
from segue.wire.openai_chat import OPENAI_CHAT
from segue.wire.openai_responses import OPENAI_RESPONSES
from segue.wire.text.registry import FORMATS

__all__ = ["WIRES", "Format", "find_wire", "formats"]

_ALL_WIRES = (
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    ANTHROPIC,
    GEMINI,
    BEDROCK,
    AZURE_FOUNDRY,
    MISTRAL,
    KIMI,
    DEEPSEEK,
    QWEN,
)
WIRES: dict[str, Wire] = {wire.name: wire for wire in _ALL_WIRES}


def find_wire(name: str, *, argument: str) -> Wire:
    require_string(name, argument)
    wire = WIRES.get(name)
    if wire is None:
        raise unknown_name("API", name, WIRES, path=argument)
    return wire


class Format(Struct, frozen=True):
    """A row of the registry, as users see it. `on` is the wire that a dialect is a variant of.

    A `text` format is not an API: `tool_format` selects it on any API, and it has no default model.
    """

    name: str
    kind: str
    on: str | None
    provider: str
    default_model: str
    tool_format: str
    title: str


def formats() -> tuple[Format, ...]:
    """Every API that segue implements, and every text tool format."""
    names = Format.__struct_fields__
    wires = [Format(*(getattr(wire, name) for name in names)) for wire in WIRES.values()]
    return (*wires, *(Format(form.name, "text", None, form.provider, "", form.name, form.title) for form in FORMATS))
