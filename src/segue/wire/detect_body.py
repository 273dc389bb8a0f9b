"""Detects the API of a request body: by its shape, then by its model name; a wire comes before its dialects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from segue.errors import InputError, UndetectedApiError
from segue.wire.json_values import json_type_name
from segue.wire.openai_responses.required_fields import is_openai_item
from segue.wire.registry import WIRES, api_of_model

# Top-level keys only suggest an API; the shape of the messages and tools takes precedence.
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
    {"cachePoint", "guardContent", "citationsContent", "searchResult"} | {"image", "document", "video", "audio"}
)
_BEDROCK_ITEMS = frozenset({"toolUse", "toolResult", "reasoningContent"})
_CHAT_PARTS = frozenset({"image_url", "input_audio", "refusal", "document_url"})
_ANTHROPIC_BLOCKS = frozenset({"image"})
_ANTHROPIC_ITEMS = frozenset({"tool_use", "tool_result", "server_tool_use", "redacted_thinking"})
# Keys that hold the conversation in one API only.
_ROOT_KEYS = {
    wire.conversation_key: wire.name
    for wire in WIRES.values()
    if wire.on is None and wire.conversation_key != "messages"
}
# AZF-01, AZF-02
_FOUNDRY_KEYS = frozenset({"agent_reference", "agent"})


def detect_source(body: Mapping[str, Any]) -> str:
    """Return the name of the wire that a body is written in."""
    conversations = [f"`{key}`" for key in ("messages", *_ROOT_KEYS) if body.get(key) is not None]
    if len(conversations) > 1:
        raise UndetectedApiError(f"the body has more than one conversation: {' and '.join(conversations)}")
    root = _api_by_root_key(body)
    if root is not None:
        return "azure-foundry" if root == "openai-responses" and _is_foundry(body) else root
    if not isinstance(body.get("messages"), list):
        if present := [key for key in ("messages", *_ROOT_KEYS) if key in body]:
            raise InputError(f"a list was expected, not {json_type_name(body[present[0]])}", path=present[0])
        *roots, last = (f"`{key}`" for key in ("messages", *_ROOT_KEYS))
        missing = f"no {', '.join(roots)} or {last}"
        raise UndetectedApiError(f"{missing}: not a request body of a known API")
    apis = {*_certain_apis(body), *_apis_of_items(body)} or set(_likely_apis(body))
    if len(apis) > 1:
        raise UndetectedApiError(f"the body has features of {' and '.join(sorted(apis))}")
    if "bedrock" in apis:
        return "bedrock"
    model = body.get("model")
    owner = api_of_model(model if isinstance(model, str) else "")
    if "anthropic" in apis or (not apis and owner == "anthropic"):
        return "anthropic"
    return owner if owner is not None and WIRES[owner].base_api == "openai-chat" else "openai-chat"


def find_contradicting_api(body: Mapping[str, Any], api: str) -> str | None:
    """Return the wire that a body certainly belongs to, if that is not the wire of `api`; else None.

    Calls, results, reasoning and tools in the form of another API are not enough: the wire of `api` parses them too.
    """
    wire = WIRES[api]
    expected = wire.base_api
    if wire.conversation_key != "messages" and body.get(wire.conversation_key) is not None:
        return None
    root = _api_by_root_key(body)
    certain = set(_certain_apis(body)) if root is None else {root}
    if expected in certain or root is not None:
        return min(certain - {expected}, default=None)
    tool_apis = set(_apis_of_items(body))
    likely = set(_likely_apis(body)) if isinstance(body.get("messages"), list) else set[str]()
    if wire.conversation_key != "messages":
        certain |= tool_apis
    elif expected not in tool_apis | likely:
        certain |= tool_apis & likely
    if expected == "bedrock":
        # Its tools are in `toolConfig`.
        certain |= set(_apis_of_tools(body))
    return min(certain, default=None)


def _api_by_root_key(body: Mapping[str, Any]) -> str | None:
    """Return the API whose conversation key the body has, if it has no `messages`."""
    if "messages" in body:
        return None
    return next((api for key, api in _ROOT_KEYS.items() if isinstance(body.get(key), str | list | dict)), None)


def _is_foundry(body: Mapping[str, Any]) -> bool:
    """Return whether a Responses body names an agent or has items of types that only Foundry has."""
    if any(isinstance(body.get(key), dict) for key in _FOUNDRY_KEYS):
        return True
    return any(not is_openai_item(str(item.get("type")), {}) for item in _objects(body.get("input")))


def _likely_apis(body: Mapping[str, Any]) -> Iterator[str]:
    if _CHAT_KEYS & body.keys():
        yield "openai-chat"
    if any(
        _is_untyped_text(part) for message in _objects(body["messages"]) for part in _objects(message.get("content"))
    ):
        yield "bedrock"
    elif _ANTHROPIC_KEYS & body.keys():
        yield "anthropic"


def _certain_apis(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield one API name for each feature that only that API has."""
    if _BEDROCK_KEYS & body.keys():
        yield "bedrock"
    for message in _objects(body.get("messages")):
        if message.get("role") == "developer":
            yield "openai-chat"
        for part in _objects(message.get("content")):
            kind = str(part.get("type"))
            if "type" not in part and _BEDROCK_BLOCKS & part.keys():
                yield "bedrock"
            if kind in _CHAT_PARTS:
                yield "openai-chat"
            elif kind in _ANTHROPIC_BLOCKS:
                yield "anthropic"


def _apis_of_items(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield one API name for each call, result, reasoning block and tool in the form of an API that has `messages`."""
    yield from _apis_of_tools(body)
    for message in _objects(body.get("messages")):
        if str(message.get("role")) in ("tool", "function") or message.get("tool_calls"):
            yield "openai-chat"
        for part in _objects(message.get("content")):
            if "type" not in part and _BEDROCK_ITEMS & part.keys():
                yield "bedrock"
            elif str(part.get("type")) in _ANTHROPIC_ITEMS:
                yield "anthropic"


def _apis_of_tools(body: Mapping[str, Any]) -> Iterator[str]:
    for tool in _objects(body.get("tools")):
        if "input_schema" in tool:
            yield "anthropic"
        elif isinstance(tool.get("function"), dict):
            yield "openai-chat"


def _is_untyped_text(part: Mapping[str, Any]) -> bool:
    """Return whether this is a text part without `type`."""
    return list(part) == ["text"]


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return (cast("dict[str, Any]", item) for item in items if isinstance(item, dict))
