"""The vendors' own types as judges: a body is validated against what the SDK says a request is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from anthropic.types import message_create_params as plain
from anthropic.types.beta import message_create_params as beta
from google.genai import types as gemini
from mistralai.client.models import ChatCompletionRequest
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

# What an SDK demands and a body may leave to the caller.
CALLER = {"model": "a-model"}


class GeminiBody(BaseModel):
    """The SDK has a type for each part of a body, but none for the whole: its clients write it field by field."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", protected_namespaces=())

    contents: list[gemini.Content]
    model: str | None = None
    system_instruction: gemini.Content | None = None
    tools: list[gemini.Tool] | None = None
    tool_config: gemini.ToolConfig | None = None
    generation_config: gemini.GenerationConfig | None = None
    safety_settings: list[gemini.SafetySetting] | None = None
    cached_content: str | None = None
    labels: dict[str, str] | None = None


@cache
def _adapters(api: str) -> tuple[TypeAdapter[Any], ...]:
    if api == "anthropic":
        kinds: tuple[Any, ...] = (plain.MessageCreateParamsNonStreaming, beta.MessageCreateParamsNonStreaming)
    elif api in ("openai-chat", "kimi", "deepseek", "qwen"):
        kinds = (chat.CompletionCreateParamsNonStreaming,)
    elif api == "mistral":
        kinds = (ChatCompletionRequest,)
    elif api == "openai-responses":
        kinds = (responses.ResponseCreateParamsNonStreaming,)
    else:
        kinds = ()
    return tuple(TypeAdapter(kind) for kind in kinds)


def _drain(value: Any) -> None:
    """The SDKs type lists as Iterable, which pydantic checks only when it is read."""
    if isinstance(value, dict):
        for inner in value.values():
            _drain(inner)
    elif isinstance(value, list | Iterator):
        for inner in value:
            _drain(inner)


def complaints(body: dict[str, Any], api: str) -> list[str]:
    """What the types say against a body; empty where one of them takes it, or the API has none."""
    found: list[str] = []
    if api == "gemini":
        try:
            # Bytes are base64 only in JSON.
            GeminiBody.model_validate_json(json.dumps(body))
        except ValidationError as error:
            found.append(str(error)[:1500])
        return found
    for adapter in _adapters(api):
        try:
            _drain(adapter.validate_python({**CALLER, **body, "stream": False}, strict=True))
        except ValidationError as error:
            found.append(str(error)[:1500])
        else:
            return []
    return found
