"""Validation by the vendors' own types: a body is checked against the SDK's request types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from anthropic.types import message_create_params as plain
from anthropic.types.beta import message_create_params as beta
from google.genai import types as genai
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client import models as mistral
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import TypeAdapter, ValidationError

from tests import converse

Body = dict[str, Any]

# What an SDK demands and a body may leave to the caller.
CALLER = {"model": "a-model"}


@cache
def _adapters(api: str) -> tuple[TypeAdapter[Any], ...]:
    if api == "anthropic":
        kinds: tuple[Any, ...] = (plain.MessageCreateParamsNonStreaming, beta.MessageCreateParamsNonStreaming)
    elif api == "openai-responses":
        kinds = (responses.ResponseCreateParamsNonStreaming,)
    elif api in ("openai-chat", "kimi", "deepseek", "qwen"):
        kinds = (chat.CompletionCreateParamsNonStreaming,)
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


def _typed(body: Body, api: str) -> list[str]:
    """The errors of all typed dictionaries of an API for a body; none if one of them accepts it."""
    found: list[str] = []
    for adapter in _adapters(api):
        try:
            _drain(adapter.validate_python({**CALLER, **body, "stream": False}, strict=True))
        except ValidationError as error:
            found.append(str(error)[:1500])
        else:
            return []
    return found


def _with_defaults(body: Body) -> Body:
    """A Responses body whose functions have the fields that the types require and the API defaults."""

    def filled(tool: Any) -> Any:
        if isinstance(tool, dict) and tool.get("type") == "function":
            return {"strict": None, "parameters": None, **tool}
        return tool

    return {**body, "tools": [filled(tool) for tool in body["tools"]]} if isinstance(body.get("tools"), list) else body


def _kimi(body: Body) -> list[str]:
    """Videos, which OpenAI's types lack, are valid if they would be valid as images."""

    def shown(part: Any) -> Any:
        film = isinstance(part, dict) and part.get("type") == "video_url"
        return {"type": "image_url", "image_url": part.get("video_url")} if film else part

    messages = [
        {**message, "content": [shown(part) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    return _typed({**body, "messages": messages}, "kimi")


# ---------------------------------------------------------------------------------------------------------- Gemini

_GEMINI: dict[str, Any] = {
    "contents": list[genai.Content],
    "systemInstruction": genai.Content,
    "tools": list[genai.Tool],
    "toolConfig": genai.ToolConfig,
    "generationConfig": genai.GenerationConfig,
    "safetySettings": list[genai.SafetySetting],
    "cachedContent": str,
    "labels": dict[str, str],
    "model": str,
    "serviceTier": genai.ServiceTier,
    "store": bool,
}


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.title() for word in rest)


@cache
def _gemini_adapter(key: str) -> TypeAdapter[Any]:
    return TypeAdapter(_GEMINI[key])


def _gemini(body: Body) -> list[str]:
    """The request as a whole has no type of its own: the SDK writes each key from one."""
    found: list[str] = []
    for key, value in body.items():
        name = _camel(key)
        if name not in _GEMINI:
            found.append(f"{key}: no such key")
            continue
        try:
            _gemini_adapter(name).validate_json(json.dumps(value))
        except ValidationError as error:
            found.append(f"{key}: {str(error)[:1500]}")
    return found


# --------------------------------------------------------------------------------------------------------- Mistral


def _unknown(value: Any) -> Iterator[str]:
    """Chunks, tools and messages that the client keeps as unknown."""
    if getattr(value, "is_unknown", False):
        yield f"unknown to the client: {value}"[:500]
    elif isinstance(value, list):
        for inner in value:
            yield from _unknown(inner)
    elif hasattr(value, "model_fields_set"):
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name))


def _common(message: Body) -> Body:
    """A message as mistral-common has it: a thought is one text, and what only the service reads is text."""

    def chunk(part: Any) -> Any:
        match part:
            case {"type": "thinking", "thinking": list(thoughts)}:
                return {"type": "thinking", "thinking": "".join(one.get("text", "") for one in thoughts)}
            case {"type": "text" | "thinking"}:
                return part
            case {"type": "image_url"} if message["role"] == "user":
                return part
            case _:
                return {"type": "text", "text": "something else"}

    content = message.get("content")
    kept = {key: message[key] for key in ("role", "tool_call_id", "name", "prefix") if key in message}
    if message.get("tool_calls"):
        kept["tool_calls"] = [{"id": call.get("id"), "function": call["function"]} for call in message["tool_calls"]]
    return {**kept, "content": [chunk(part) for part in content] if isinstance(content, list) else content}


def _mistral(body: Body) -> list[str]:
    """The client's models, then mistral-common: version 11 asks for the most of ids and pairs."""
    found: list[str] = []
    try:
        found.extend(_unknown(mistral.ChatCompletionRequest.model_validate({**CALLER, **body})))
    except ValidationError as error:
        found.append(str(error)[:1500])
    try:
        known = {key: body[key] for key in ("tools", "response_format") if body.get(key)}
        request = ChatCompletionRequest.model_validate(
            {**CALLER, **known, "messages": [_common(message) for message in body["messages"]]}
        )
        get_validator(TokenizerVersion.v11, ValidationMode.serving).validate_request(request)
    except (ValidationError, MistralCommonException) as error:
        found.append(str(error)[:1500])
    return found


def _foundry(body: Body) -> list[str]:
    """The validators of the server library, where it is installed."""
    try:
        from tests.conformance.vendor_foundry import refusal
    except ImportError:
        return []
    refused = refusal(body)
    return [refused[:1500]] if refused else []


_OTHERS: dict[str, Callable[[Body], list[str]]] = {
    "bedrock": converse.complaints,
    "azure-foundry": _foundry,
    "gemini": _gemini,
    "kimi": _kimi,
    "mistral": _mistral,
    "openai-responses": lambda body: _typed(_with_defaults(body), "openai-responses"),
}


def complaints(body: Body, api: str) -> list[str]:
    """The type errors of a body; empty where one type accepts it, or the API has no types."""
    other = _OTHERS.get(api)
    return other(body) if other else _typed(body, api)
