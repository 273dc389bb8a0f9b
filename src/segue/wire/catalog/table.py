"""The registry of shapes by provider and type, and the lookup of a payload's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from segue.errors import InputError
from segue.wire.catalog.anthropic import ANTHROPIC
from segue.wire.catalog.bedrock import BEDROCK
from segue.wire.catalog.entry import Entry, check, entries, faults, matches
from segue.wire.catalog.foundry import FOUNDRY
from segue.wire.catalog.gemini import GEMINI
from segue.wire.catalog.mistral import MISTRAL
from segue.wire.catalog.openai import OPENAI
from segue.wire.catalog.paths import has
from segue.wire.catalog.shape import Shape
from segue.wire.fields import JsonObject, object_or_none

__all__ = ["PLAIN", "SHAPES", "find", "named"]

SHAPES: Mapping[str, Mapping[str, Shape]] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "azure-foundry": FOUNDRY,
    "mistral": MISTRAL,
    "bedrock": BEDROCK,
}


class Plain(NamedTuple):
    """A provider's wire, its generic types for calls and outputs, and a function that wraps a payload in a body.

    `has_other_apis`: the provider has other APIs with types of their own, which no wire implements.
    """

    api: str
    provider: str
    call: str
    output: str
    body: Callable[[JsonObject], JsonObject]
    elsewhere: bool = False


_ASKED = {"role": "user", "content": "."}


def _item(payload: JsonObject) -> JsonObject:
    return {"input": [_ASKED, payload, _ASKED]}


def _block(payload: JsonObject) -> JsonObject:
    user = {"role": "user", "content": [{"text": "."}]}
    return {"messages": [user, {"role": "assistant", "content": [payload]}, user]}


def _message_part(payload: JsonObject) -> JsonObject:
    return {"messages": [_ASKED, {"role": "assistant", "content": [payload]}, _ASKED]}


def _part(payload: JsonObject) -> JsonObject:
    user = {"role": "user", "parts": [{"text": "."}]}
    return {"contents": [user, {"role": "model", "parts": [payload]}, user]}


PLAIN: Mapping[str, Plain] = {
    "openai": Plain("openai-responses", "openai", "FunctionToolCall", "FunctionToolCallOutput", _item),
    "azure-foundry": Plain("azure-foundry", "openai", "FunctionToolCall", "FunctionToolCallOutput", _item),
    "anthropic": Plain("anthropic", "anthropic", "ResponseToolUseBlock", "RequestToolResultBlock", _message_part),
    "gemini": Plain("gemini", "gemini", "FunctionCall", "FunctionResponse", _part, elsewhere=True),
    "mistral": Plain("mistral", "mistral", "ToolCall", "ToolMessage", _message_part, elsewhere=True),
    "bedrock": Plain("bedrock", "bedrock", "ToolUse", "ToolResult", _block),
}


def named(provider: str, wire_type: str) -> Entry:
    for entry in _of(provider):
        if entry.wire_type == wire_type:
            return entry
    raise InputError(f"{provider} has no type {wire_type!r}", path="wire_type")


def _of(provider: str) -> list[Entry]:
    if provider not in SHAPES:
        raise InputError(f"unknown provider {provider!r}; known: {', '.join(SHAPES)}", path="provider")
    return [entry for entry in entries() if entry.provider == provider]


def find(payload: JsonObject, provider: str, wire_type: str | None) -> Entry | None:
    """The type of this payload: the given one, else the best match; None if the catalog has none."""
    if wire_type is not None:
        entry = named(provider, wire_type)
        check(payload, entry)
        return entry
    matching = [entry for entry in _of(provider) if matches(payload, entry) and not _is_of_another(payload, entry)]
    if not matching:
        return None
    valid = [entry for entry in matching if next(faults(payload, entry), None) is None]
    best = min(valid or matching, key=lambda entry: _strangeness(payload, entry))
    check(payload, best)
    return best


def _is_of_another(payload: JsonObject, entry: Entry) -> bool:
    """True if the payload has a type field and the entry's type does not."""
    nameless = not entry.enveloped and all(value == "*" for value in entry.discriminator.values())
    return nameless and any(key in payload and key not in entry.fields for key in ("type", "role"))


def _strangeness(payload: JsonObject, entry: Entry) -> int:
    """The number of unknown fields, weighted, less the number of matching discriminator fields."""
    inner = payload if entry.member is None else object_or_none(payload.get(entry.member)) or {}
    unknown = len(inner.keys() - entry.fields.keys())
    known = sum(1 if value == "*" else 2 for value in entry.discriminator.values())
    output = SHAPES[entry.provider][entry.wire_type].output
    if entry.role != "call+output" or output is None:
        return 100 * unknown - known
    has_output = output.read(payload)[0] is not None or (output.path is not None and has(payload, output.path))
    return 100 * unknown - known + (-10 if has_output else 5)
