"""`segue.detect`: wire, dialect and tool format of a model, by its name alone.

Each model family has an API in the registry. A service in the name, such as `bedrock/…` or `openrouter/…`, overrides
it; the tool format stays that of the model if the API of the service supports it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from segue.errors import require_string
from segue.models import Model, parse_model
from segue.specs.providers import load_services, providers_by_name
from segue.wire.registry import SERVERS, WIRES, api_of_family, family_of_model


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
# `us.anthropic.claude-sonnet-4-20250514-v1:0`: an optional region, a vendor and the model, separated by dots.
_BEDROCK_ID = re.compile(
    r"(?:[a-z]{2,6}(?:-gov)?\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshotai?|nvidia|openai|qwen|writer|zai)"
    r"\.[a-z].*"
)
# Words in the names of the OpenAI models that only the Responses API serves.
_RESPONSES_ONLY = frozenset({"codex", "pro", "deep", "computer"})


def detect(model: str) -> Detected:
    """Return wire, dialect and tool format of a model name; an unknown name gives `openai-chat` and `openai`."""
    require_string(model, "model")
    name = model.strip()
    parts = [part for part in name.lower().split("/") if part]
    family = family_of_model(name) or _family_of_vendor(parts[:-1])
    wire = WIRES[api_of_family(family) or _CHAT]
    base, dialect, tool_format = wire.base_api, wire.name if wire.on is not None else None, wire.tool_format
    parsed = parse_model(name)
    if parsed.line == "k3":
        # KIM-08: K3 ignores ids, so it does not need K2's form.
        tool_format = "openai"
    served = _service_api(parts)
    if served is not None:
        tool_format = "openai" if served == _CHAT and base != _CHAT else tool_format
        base, dialect = served, None
    elif family == "gpt" and _RESPONSES_ONLY & set(re.split(r"[^a-z]+", parts[-1])):
        base = "openai-responses"
    return Detected(base, dialect, tool_format, parsed)


def _family_of_vendor(parts: list[str]) -> str:
    """Return the model family of the provider that the name includes, for model names without a known family."""
    rows = providers_by_name()
    candidates = (WIRES[rows[part]["api"]].families for part in parts if part in rows and "profile" not in rows[part])
    return next((families[0] for families in candidates if families), "")


def _service_api(parts: list[str]) -> str | None:
    """Return the API of the service that the name includes."""
    if len(parts) > 1 and (parts[0] in SERVERS or parts[0] in load_services()):
        return SERVERS[parts[0]].name if parts[0] in SERVERS else load_services()[parts[0]]
    if parts and (_BEDROCK_ID.fullmatch(parts[-1]) or parts[0].startswith("arn:aws:bedrock")):
        return "bedrock"
    return None
