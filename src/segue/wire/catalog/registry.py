"""The registry of shapes by provider and type, and the lookup of a payload's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from segue.errors import InputError, unknown_name_error
from segue.wire.catalog.anthropic import ANTHROPIC
from segue.wire.catalog.bedrock import BEDROCK
from segue.wire.catalog.entry import Entry, check_payload, find_mismatches, load_entries, matches_discriminator
from segue.wire.catalog.foundry import FOUNDRY
from segue.wire.catalog.gemini import GEMINI
from segue.wire.catalog.mistral import MISTRAL
from segue.wire.catalog.openai import OPENAI
from segue.wire.catalog.paths import has_path
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, object_or_none

__all__ = ["GENERIC_TYPES", "SHAPES", "find_entry", "get_entry"]

SHAPES: Mapping[str, Mapping[str, PayloadShape]] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "azure-foundry": FOUNDRY,
    "mistral": MISTRAL,
    "bedrock": BEDROCK,
}


class GenericTypes(NamedTuple):
    """A provider's wire, its generic types for calls and outputs, and a function that wraps a payload in a body.

    `has_other_apis`: the provider has other APIs with types of their own, which no wire implements.
    """

    api: str
    provider: str
    call: str
    output: str
    body: Callable[[JsonObject], JsonObject]
    has_other_apis: bool = False


_USER_MESSAGE = {"role": "user", "content": "."}


def _item_body(payload: JsonObject) -> JsonObject:
    return {"input": [_USER_MESSAGE, payload, _USER_MESSAGE]}


def _bedrock_body(payload: JsonObject) -> JsonObject:
    user = {"role": "user", "content": [{"text": "."}]}
    return {"messages": [user, {"role": "assistant", "content": [payload]}, user]}


def _message_body(payload: JsonObject) -> JsonObject:
    return {"messages": [_USER_MESSAGE, {"role": "assistant", "content": [payload]}, _USER_MESSAGE]}


def _gemini_body(payload: JsonObject) -> JsonObject:
    user = {"role": "user", "parts": [{"text": "."}]}
    return {"contents": [user, {"role": "model", "parts": [payload]}, user]}


GENERIC_TYPES: Mapping[str, GenericTypes] = {
    "openai": GenericTypes("openai-responses", "openai", "FunctionToolCall", "FunctionToolCallOutput", _item_body),
    "azure-foundry": GenericTypes("azure-foundry", "openai", "FunctionToolCall", "FunctionToolCallOutput", _item_body),
    "anthropic": GenericTypes(
        "anthropic", "anthropic", "ResponseToolUseBlock", "RequestToolResultBlock", _message_body
    ),
    "gemini": GenericTypes("gemini", "gemini", "FunctionCall", "FunctionResponse", _gemini_body, has_other_apis=True),
    "mistral": GenericTypes("mistral", "mistral", "ToolCall", "ToolMessage", _message_body, has_other_apis=True),
    "bedrock": GenericTypes("bedrock", "bedrock", "ToolUse", "ToolResult", _bedrock_body),
}


def get_entry(provider: str, wire_type: str) -> Entry:
    for entry in _provider_entries(provider):
        if entry.wire_type == wire_type:
            return entry
    raise InputError(f"{provider} has no type {wire_type!r}", path="wire_type")


def _provider_entries(provider: str) -> list[Entry]:
    if provider not in SHAPES:
        raise unknown_name_error("provider", provider, SHAPES, path="provider")
    return [entry for entry in load_entries() if entry.provider == provider]


def find_entry(payload: JsonObject, provider: str, wire_type: str | None) -> Entry | None:
    """The type of this payload: the given one, else the best match; None if the catalog has none."""
    if wire_type is not None:
        entry = get_entry(provider, wire_type)
        check_payload(payload, entry)
        return entry
    matching = [
        entry
        for entry in _provider_entries(provider)
        if matches_discriminator(payload, entry) and not _belongs_to_other_type(payload, entry)
    ]
    if not matching:
        return None
    valid = [entry for entry in matching if next(find_mismatches(payload, entry), None) is None]
    best = min(valid or matching, key=lambda entry: _mismatch_score(payload, entry))
    check_payload(payload, best)
    return best


def _belongs_to_other_type(payload: JsonObject, entry: Entry) -> bool:
    """True if the payload has a type field and the entry's type does not."""
    nameless = not entry.enveloped and all(value == "*" for value in entry.discriminator.values())
    return nameless and any(key in payload and key not in entry.fields for key in ("type", "role"))


def _mismatch_score(payload: JsonObject, entry: Entry) -> int:
    """The number of unknown fields, weighted, less the number of matching discriminator fields."""
    fields = payload if entry.member is None else object_or_none(payload.get(entry.member)) or {}
    unknown = len(fields.keys() - entry.fields.keys())
    matched = sum(1 if value == "*" else 2 for value in entry.discriminator.values())
    output = SHAPES[entry.provider][entry.wire_type].output
    if entry.role != "call+output" or output is None:
        return 100 * unknown - matched
    has_output = output.parse(payload)[0] is not None or (output.path is not None and has_path(payload, output.path))
    return 100 * unknown - matched + (-10 if has_output else 5)
