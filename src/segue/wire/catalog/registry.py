"""The registry of shapes by provider and type, the lookup of a payload's type, and the catalog as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Origin
from segue.errors import InputError, unknown_name_error
from segue.wire.catalog.anthropic import ANTHROPIC
from segue.wire.catalog.bedrock import BEDROCK
from segue.wire.catalog.codecs import has_path
from segue.wire.catalog.entry import Entry, check_payload, find_mismatches, load_entries, matches_discriminator
from segue.wire.catalog.foundry import FOUNDRY
from segue.wire.catalog.gemini import GEMINI
from segue.wire.catalog.mistral import MISTRAL
from segue.wire.catalog.openai import OPENAI
from segue.wire.catalog.shape import PayloadShape
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.registry import WIRES

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
    """Return the type of this payload: the given one, else the best match; None if the catalog has none."""
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
    """Return whether the payload has a type field and the entry's type does not."""
    nameless = not entry.enveloped and all(value == "*" for value in entry.discriminator.values())
    return nameless and any(key in payload and key not in entry.fields for key in ("type", "role"))


def _mismatch_score(payload: JsonObject, entry: Entry) -> int:
    """Return the number of unknown fields, weighted, less the number of matching discriminator fields."""
    fields = payload if entry.member is None else object_or_none(payload.get(entry.member)) or {}
    unknown = len(fields.keys() - entry.fields.keys())
    matched = sum(1 if value == "*" else 2 for value in entry.discriminator.values())
    output = SHAPES[entry.provider][entry.wire_type].output
    if entry.role != "call+output" or output is None:
        return 100 * unknown - matched
    has_output = output.parse(payload)[0] is not None or (output.path is not None and has_path(payload, output.path))
    return 100 * unknown - matched + (-10 if has_output else 5)


# --------------------------------------------------------------------------------------------------- the table of types

RenderedAs = Literal["itself", "itself in replies", "call", "result", "call and result", "text"]


class TypeRow(Struct, frozen=True):
    """A type and how it is rendered on each wire: `itself` where the wire has the type.

    Types that are `itself in replies` are rendered in requests as on other wires.
    """

    provider: str
    wire_type: str
    surface: str
    role: str
    family: str
    identity: str
    by_wire: dict[str, RenderedAs] = msgspec.field(name="on")


def type_rows() -> tuple[TypeRow, ...]:
    return tuple(_row(entry) for entry in load_entries())


def _row(entry: Entry) -> TypeRow:
    enclosing_body = SHAPES[entry.provider][entry.wire_type].enclosing_body
    own_api = enclosing_body.api if enclosing_body is not None else None
    cross_api = _cross_api_form(entry)
    own_form = "itself in replies" if enclosing_body is not None and enclosing_body.replies_only else "itself"
    on: dict[str, RenderedAs] = {name: own_form if name == own_api else cross_api for name in WIRES}
    return TypeRow(entry.provider, entry.wire_type, entry.surface, entry.role, entry.family, entry.identity, on)


def _cross_api_form(entry: Entry) -> RenderedAs:
    shape = SHAPES[entry.provider][entry.wire_type]
    if Origin(entry.provider, family=entry.family).is_approval:
        return "text"
    if entry.role == "output":
        return "result" if entry.pairs_with else "text"
    # Calls that only the provider can run are always rendered with a result.
    has_result = shape.kind == "hosted" or entry.role == "call+output"
    return "call and result" if has_result and not entry.pairs_with else "call"
