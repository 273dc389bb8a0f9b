"""`segue.detect`: wire, dialect and tool format of a model, by its name alone.

A table has them for each family. A name that includes its service, such as `bedrock/…` or `openrouter/…`, overrides
the family's own API; the tool format is the model's where that API supports it. The table may name APIs that segue does
not implement yet.
"""

from __future__ import annotations

import re

from msgspec import Struct

from segue.errors import require_string
from segue.models import Model, identify

__all__ = ["Detected", "detect"]


class Detected(Struct, frozen=True):
    """The result of `detect`. `dialect` is None for the wire itself; `model` is the parsed name."""

    wire: str
    dialect: str | None
    tool_format: str
    model: Model

    @property
    def target(self) -> str:
        """The target to convert to: the dialect where there is one, else the wire."""
        return self.dialect or self.wire


_CHAT = "openai-chat"
# Family → wire, dialect, tool format. Any other or unknown family is openai-chat with openai tools.
_FAMILIES: dict[str, tuple[str, str | None, str]] = {
    "gpt": (_CHAT, None, "openai"),
    "claude": ("anthropic", None, "anthropic"),
    "gemini": ("gemini", None, "gemini"),
    "mistral": (_CHAT, "mistral", "mistral"),
    "kimi": (_CHAT, "kimi", "kimi"),
    "deepseek": (_CHAT, "deepseek", "deepseek"),
    "qwen": (_CHAT, "qwen", "qwen"),
}
_DEFAULT = (_CHAT, None, "openai")
# Service in front of a model name (`service/model`) → its wire.
_SERVICES: dict[str, str] = {
    "azure": _CHAT,
    "azure-foundry": "azure-foundry",
    "azure_ai": "azure-foundry",
    "foundry": "azure-foundry",
    "bedrock": "bedrock",
    "cerebras": _CHAT,
    "deepinfra": _CHAT,
    "fireworks": _CHAT,
    "fireworks_ai": _CHAT,
    "groq": _CHAT,
    "huggingface": _CHAT,
    "lmstudio": _CHAT,
    "ollama": _CHAT,
    "openrouter": _CHAT,
    "together": _CHAT,
    "together_ai": _CHAT,
    "vllm": _CHAT,
}
# Vendor in front of a model name → family, for model names without a known family.
_VENDORS: dict[str, str] = {
    "anthropic": "claude",
    "alibaba": "qwen",
    "dashscope": "qwen",
    "deepseek": "deepseek",
    "deepseek-ai": "deepseek",
    "gemini": "gemini",
    "google": "gemini",
    "kimi": "kimi",
    "mistral": "mistral",
    "mistralai": "mistral",
    "moonshot": "kimi",
    "moonshotai": "kimi",
    "openai": "gpt",
    "qwen": "qwen",
}
# `us.anthropic.claude-sonnet-4-20250514-v1:0`: a vendor with a dot, perhaps a region before it.
_BEDROCK_ID = re.compile(
    r"(?:[a-z]{2,6}(?:-gov)?\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshotai?|nvidia|openai|qwen|writer|zai)"
    r"\.[a-z].*"
)
# Models of OpenAI that only the Responses API serves.
_RESPONSES_ONLY = frozenset({"codex", "pro", "deep", "computer"})


def detect(model: str) -> Detected:
    """Wire, dialect and tool format of a model name; an unknown name gives `openai-chat` and `openai`."""
    require_string(model, "model")
    parts = [part for part in model.strip().lower().split("/") if part]
    known = identify(model.strip())
    family = known.family or next((_VENDORS[part] for part in parts[:-1] if part in _VENDORS), "")
    wire, dialect, tool_format = _FAMILIES.get(family, _DEFAULT)
    if known.line == "k3":
        # KIM-08: K3 ignores ids, so it does not need K2's form.
        tool_format = "openai"
    served = _service_wire(parts)
    if served is not None:
        tool_format = "openai" if served == _CHAT and wire != _CHAT else tool_format
        wire, dialect = served, None
    elif family == "gpt" and _RESPONSES_ONLY & set(re.split(r"[^a-z]+", parts[-1])):
        wire = "openai-responses"
    return Detected(wire, dialect, tool_format, known)


def _service_wire(parts: list[str]) -> str | None:
    """The wire of the service that the name includes."""
    if len(parts) > 1 and parts[0] in _SERVICES:
        return _SERVICES[parts[0]]
    if parts and (_BEDROCK_ID.fullmatch(parts[-1]) or parts[0].startswith("arn:aws:bedrock")):
        return "bedrock"
    return None
