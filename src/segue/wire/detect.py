"""Whose body is this? Told by its shape, then by its model's name; a plain wire comes before its dialects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from segue.errors import InputError
from segue.models import identify
from segue.wire.fields import kind_of
from segue.wire.openai_responses.shapes import is_openai_item

__all__ = ["detect_source", "speaks_against"]

# Top-level keys hint at an API; what messages and tools look like decides.
_CHAT_KEYS = frozenset(
    {
        "max_completion_tokens",
        "reasoning_effort",
        "response_format",
        "parallel_tool_calls",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "stream_options",
        "functions",
        "n",
        "seed",
        "stop",
        "random_seed",
        "safe_prompt",
        "prompt_mode",
        "enable_thinking",
        "thinking_budget",
    }
)
_ANTHROPIC_KEYS = frozenset({"system", "stop_sequences", "top_k", "anthropic_version", "mcp_servers"})
_BEDROCK_KEYS = frozenset(
    {"modelId", "inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig", "performanceConfig"}
)
_BEDROCK_BLOCKS = frozenset(
    {"toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "citationsContent", "searchResult"}
    | {"image", "document", "video", "audio"}
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "refusal", "document_url"})
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "redacted_thinking", "server_tool_use", "image"})
_CHAT_FAMILIES = {"kimi": "kimi", "mistral": "mistral", "deepseek": "deepseek", "qwen": "qwen"}
# Where the conversation stands under a key of its own, that key tells the API.
_ROOTS = {"input": "openai-responses", "contents": "gemini"}
# Wires with a shape of their own, and dialects of those; any other is a dialect of the Chat wire.
_SHAPES = {name: name for name in ("anthropic", "bedrock", *_ROOTS.values())} | {"azure-foundry": "openai-responses"}
# AZF-01, AZF-02
_FOUNDRY_KEYS = frozenset({"agent_reference", "agent"})


def detect_source(body: Mapping[str, Any]) -> str:
    """The name of the wire that a body is written in."""
    root = _root(body)
    if root is not None:
        return "azure-foundry" if root == "openai-responses" and _is_foundry(body) else root
    if not isinstance(body.get("messages"), list):
        if given := [key for key in ("messages", *_ROOTS) if key in body]:
            raise InputError(f"a list was expected, not {kind_of(body[given[0]])}", path=given[0])
        *roots, last = (f"`{key}`" for key in ("messages", *_ROOTS))
        missing = f"no {', '.join(roots)} or {last}"
        raise InputError(f"{missing}: this is not a request body of a known API; name `source` if it is one")
    found = set(_signs(body)) or set(_hints(body))
    if len(found) > 1:
        raise InputError(f"this looks like {' and like '.join(sorted(found))} at once; name `source`")
    if "bedrock" in found:
        return "bedrock"
    model = body.get("model")
    family = identify(model if isinstance(model, str) else None).family
    if "anthropic" in found or (not found and family == "claude"):
        return "anthropic"
    return _CHAT_FAMILIES.get(family, "openai-chat")


def speaks_against(body: Mapping[str, Any], api: str) -> str | None:
    """The wire that a body certainly is of, where that is not the one it is said to be of."""
    spoken = _SHAPES.get(api, "openai-chat")
    found: set[str] = set()
    root = _root(body)
    for sign in _signs(body) if root is None else (root,):
        if sign == spoken:
            return None
        found.add(sign)
    return min(found, default=None)


def _root(body: Mapping[str, Any]) -> str | None:
    """The API that keeps its conversation under a key which this body has, and `messages` it has not."""
    if "messages" in body:
        return None
    return next((api for key, api in _ROOTS.items() if isinstance(body.get(key), str | list | dict)), None)


def _is_foundry(body: Mapping[str, Any]) -> bool:
    """Whether a Responses body speaks of an agent, or has items that only Foundry makes."""
    if any(isinstance(body.get(key), dict) for key in _FOUNDRY_KEYS):
        return True
    return any(not is_openai_item(str(item.get("type")), {}) for item in _objects(body.get("input")))


def _hints(body: Mapping[str, Any]) -> Iterator[str]:
    if _CHAT_KEYS & body.keys():
        yield "openai-chat"
    if any(_is_bare(part) for message in _objects(body["messages"]) for part in _objects(message.get("content"))):
        yield "bedrock"
    elif _ANTHROPIC_KEYS & body.keys():
        yield "anthropic"


def _signs(body: Mapping[str, Any]) -> Iterator[str]:
    """One name for each thing that only one wire says."""
    if _BEDROCK_KEYS & body.keys():
        yield "bedrock"
    for tool in _objects(body.get("tools")):
        if "input_schema" in tool:
            yield "anthropic"
        elif isinstance(tool.get("function"), dict):
            yield "openai-chat"
    for message in _objects(body.get("messages")):
        yield from _message_signs(message)


def _message_signs(message: Mapping[str, Any]) -> Iterator[str]:
    if str(message.get("role")) in ("tool", "function", "developer") or message.get("tool_calls"):
        yield "openai-chat"
    for part in _objects(message.get("content")):
        kind = str(part.get("type"))
        if "type" not in part and _BEDROCK_BLOCKS & part.keys():
            yield "bedrock"
        if kind in _CHAT_PARTS:
            yield "openai-chat"
        elif kind in _ANTHROPIC_BLOCKS:
            yield "anthropic"


def _is_bare(part: Mapping[str, Any]) -> bool:
    """A text without a type beside it."""
    return list(part) == ["text"]


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return (cast("dict[str, Any]", item) for item in items if isinstance(item, dict))
