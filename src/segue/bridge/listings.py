"""Model lists and token counts, in the form of each API.

An API is one of the five wires: a dialect has the lists of its wire. Lists are never paged: each is one complete page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import cast

import msgspec
from msgspec import Struct

from segue.canonical.json import decode_members, encode_json, parse_json_object
from segue.canonical.request import Request
from segue.canonical.tokens import estimate_message, estimate_settings
from segue.errors import InputError, RemoteProtocolError
from segue.wire.json_values import JsonObject, object_or_none
from segue.wire.registry import find_wire

_UNKNOWN_TIME = "1970-01-01T00:00:00Z"
_GEMINI_PREFIX = "models/"
_BEDROCK_ARN = "arn:aws:bedrock:us-east-1::foundation-model/"


class ModelEntry(Struct, frozen=True):
    """A model in a list: its name for callers, its provider, and its sizes in tokens where they are known."""

    name: str
    provider: str
    title: str | None = None
    context: int | None = None
    max_output: int | None = None


# -------------------------------------------------------------------------------------------------------------- models


def render_models(api: str, entries: Iterable[ModelEntry], *, for_codex: bool = False) -> JsonObject:
    """Return the list of models for a caller of this API.

    `for_codex`: the request has the query `client_version`. Codex reads another list then, whose rows replace its own
    instructions; with an empty one it uses the models it was built with.
    """
    base = find_wire(api, argument="api").base_api
    rows = [_render_row(base, entry) for entry in entries]
    match base:
        case "anthropic":
            ids = [row["id"] for row in rows]
            return {
                "data": rows,
                "has_more": False,
                "first_id": ids[0] if ids else None,
                "last_id": ids[-1] if ids else None,
            }
        case "gemini":
            return {"models": rows}
        case "bedrock":
            return {"modelSummaries": rows}
        case _:
            return {"models": []} if for_codex else {"object": "list", "data": rows}


def render_model(api: str, entry: ModelEntry) -> JsonObject:
    """Return one model for a caller of this API."""
    base = find_wire(api, argument="api").base_api
    row = _render_row(base, entry)
    return {"modelDetails": row} if base == "bedrock" else row


def _render_row(base: str, entry: ModelEntry) -> JsonObject:
    title = entry.title or entry.name
    row: JsonObject
    match base:
        case "anthropic":
            # Claude Code reads both sizes; `created_at` is the epoch where it is unknown.
            row = {
                "type": "model",
                "id": entry.name,
                "display_name": title,
                "created_at": _UNKNOWN_TIME,
                "lifecycle": "active",
                "max_input_tokens": entry.context,
                "max_tokens": entry.max_output,
            }
        case "gemini":
            row = {
                "name": _GEMINI_PREFIX + entry.name,
                "displayName": title,
                "inputTokenLimit": entry.context,
                "outputTokenLimit": entry.max_output,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }
        case "bedrock":
            # Bedrock's lists have no sizes.
            row = {
                "modelArn": _BEDROCK_ARN + entry.name,
                "modelId": entry.name,
                "modelName": title,
                "providerName": entry.provider,
                "inputModalities": ["TEXT"],
                "outputModalities": ["TEXT"],
                "responseStreamingSupported": True,
                "inferenceTypesSupported": ["ON_DEMAND"],
                "modelLifecycle": {"status": "ACTIVE"},
            }
        case _:
            # OpenAI's own lists have no sizes: these are the keys of Groq, of OpenRouter and Moonshot, and of
            # Mistral, whose SDK needs the type and the capabilities.
            row = {
                "id": entry.name,
                "object": "model",
                "type": "base",
                "created": 0,
                "owned_by": entry.provider,
                "capabilities": {"completion_chat": True, "function_calling": True},
                "context_window": entry.context,
                "context_length": entry.context,
                "max_context_length": entry.context,
                "max_completion_tokens": entry.max_output,
            }
    return {key: value for key, value in row.items() if value is not None}


# Keys of the sizes in the lists of servers: vLLM, llama.cpp and LM Studio have their own.
_CONTEXT_KEYS = (
    *("context_window", "context_length", "max_context_length", "max_model_len", "inputTokenLimit"),
    *("max_input_tokens", "n_ctx", "loaded_context_length"),
)
_OUTPUT_KEYS = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit", "max_tokens")


def parse_models(data: bytes, provider: str) -> tuple[ModelEntry, ...]:
    """Parse a list of models of any API or server; a list of another form is empty."""
    try:
        body: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    fields = object_or_none(body)
    lists = [body] if fields is None else [fields.get(key) for key in ("data", "models", "modelSummaries")]
    rows = [row for rows in lists if isinstance(rows, list) for row in map(object_or_none, cast("list[object]", rows))]
    entries: dict[str, ModelEntry] = {}
    for row in filter(None, rows):
        name = next((row[key] for key in ("id", "modelId", "name", "model") if isinstance(row.get(key), str)), "")
        if name := name.removeprefix(_GEMINI_PREFIX):
            nested = [row, *(object_or_none(row.get(key)) or {} for key in ("top_provider", "meta"))]
            sizes = (_find_size(nested, keys) for keys in (_CONTEXT_KEYS, _OUTPUT_KEYS))
            entries.setdefault(name, ModelEntry(name, provider, None, *sizes))
    return tuple(entries.values())


def _find_size(tables: list[JsonObject], keys: tuple[str, ...]) -> int | None:
    values = (table.get(key) for table in tables for key in keys)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


# -------------------------------------------------------------------------------------------------------- token counts


class ApiCounter(Struct, frozen=True):
    """The token counter of an API: its path below the base URL, and the key of the count in its reply."""

    path: str
    count_key: str
    body_keys: frozenset[str] | None = None
    """The keys of a request that it accepts; None if it accepts all."""
    reply_fields: Mapping[str, str] = {}
    """Other fields of its reply."""


# The keys are those of the vendors' request types.
COUNTERS: Mapping[str, ApiCounter] = {
    "openai-responses": ApiCounter(
        "/responses/input_tokens",
        "input_tokens",
        frozenset(
            {
                *("conversation", "input", "instructions", "model", "parallel_tool_calls", "personality"),
                *("previous_response_id", "reasoning", "text", "tool_choice", "tools", "truncation"),
            }
        ),
        {"object": "response.input_tokens"},
    ),
    "anthropic": ApiCounter(
        "/v1/messages/count_tokens",
        "input_tokens",
        frozenset(
            {
                *("cache_control", "messages", "model", "output_config", "speed", "system", "thinking"),
                *("tool_choice", "tools"),
            }
        ),
    ),
    "gemini": ApiCounter("/v1beta/models/{model}:countTokens", "totalTokens"),
    "bedrock": ApiCounter(
        "/model/{model}/count-tokens",
        "inputTokens",
        frozenset({"additionalModelRequestFields", "messages", "system", "toolConfig"}),
    ),
}
"""The APIs with a token counter, by name; Chat Completions has none."""


def _find_counter(api: str) -> tuple[str, ApiCounter]:
    base = find_wire(api, argument="api").base_api
    if base not in COUNTERS:
        raise InputError(f"{base} has no token counter; expected one of {', '.join(COUNTERS)}", path="api")
    return base, COUNTERS[base]


def render_token_count(api: str, tokens: int) -> JsonObject:
    """Return the reply of an API's token counter."""
    _, counter = _find_counter(api)
    return {**counter.reply_fields, counter.count_key: tokens}


def parse_token_count(api: str, data: bytes) -> int:
    """Return the count in the reply of an API's token counter."""
    _, counter = _find_counter(api)
    try:
        return msgspec.json.decode(decode_members(data)[counter.count_key], type=int)
    except (msgspec.DecodeError, KeyError):
        raise RemoteProtocolError(f"the reply of the token counter has no number {counter.count_key!r}") from None


def count_body(api: str, data: bytes, model: str) -> bytes:
    """Return the body for an API's token counter, from the body of a request to this model."""
    base, counter = _find_counter(api)
    members = decode_members(data)
    if counter.body_keys is not None:
        members = {key: value for key, value in members.items() if key in counter.body_keys}
    match base:
        case "gemini":
            name = model if "/" in model else _GEMINI_PREFIX + model
            return encode_json({"generateContentRequest": {**members, "model": name}})
        case "bedrock":
            return encode_json({"input": {"converse": members}})
        case _:
            return encode_json({**members, "model": model})


def parse_count_request(api: str, data: bytes) -> JsonObject:
    """Return the request whose tokens a caller counts, from the body that was sent to the API's token counter.

    Its conversation may be any part of one: Gemini CLI counts a single function response. It is not repaired.
    """
    base, _ = _find_counter(api)
    body, _ = parse_json_object(data)
    if base == "gemini":
        return object_or_none(body.get("generateContentRequest", body.get("generate_content_request"))) or body
    if base == "bedrock":
        request = object_or_none((object_or_none(body.get("input")) or {}).get("converse"))
        if request is None:
            raise InputError("a request for Converse was expected", path="input.converse")
        return request
    return body


def estimate_tokens(request: Request) -> int:
    """Estimate the tokens of a request by its characters, for providers without a token counter."""
    return ceil(estimate_settings(request) + sum(map(estimate_message, request.messages)))
