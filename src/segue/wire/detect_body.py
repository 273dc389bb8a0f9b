"""Detects the API of a request body: by its shape, then by its model name; a wire comes before its dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segue.errors import InputError, UndetectedApiError
from segue.wire.foundry_items import FOUNDRY_ITEM_TYPES
from segue.wire.json_values import json_type_name, objects_in
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
# `type` of the parts that only one API has.
_PART_APIS = {
    **dict.fromkeys(("image_url", "input_audio", "refusal", "document_url"), "openai-chat"),
    "image": "anthropic",
}
_ANTHROPIC_ITEMS = frozenset({"tool_use", "tool_result", "server_tool_use", "redacted_thinking"})
# Keys that hold the conversation in one API only.
_ROOT_KEYS = {"input": "openai-responses", "contents": "gemini"}
CONVERSATION_KEYS = frozenset({"messages", *_ROOT_KEYS})
"""The keys that hold the conversation, of all APIs."""
# AZF-01, AZF-02
_FOUNDRY_KEYS = frozenset({"agent_reference", "agent"})
_FOUNDRY_ITEMS = ("root", "azure-foundry")


ItemFeatures = frozenset[tuple[str, str]]
"""All that detection reads from items of a conversation, as `find_item_features` returns it."""


def detect_source(body: Mapping[str, Any], item_features: ItemFeatures = frozenset()) -> str:
    """Return the name of the wire that a body is written in; it may have further items with `item_features`."""
    conversations = [f"`{key}`" for key in ("messages", *_ROOT_KEYS) if body.get(key) is not None]
    if len(conversations) > 1:
        raise UndetectedApiError(f"the body has more than one conversation: {' and '.join(conversations)}")
    root = _api_by_root_key(body)
    if root is not None:
        is_foundry = _is_foundry(body) or _FOUNDRY_ITEMS in item_features
        return "azure-foundry" if root == "openai-responses" and is_foundry else root
    if not isinstance(body.get("messages"), list):
        if present := [key for key in ("messages", *_ROOT_KEYS) if key in body]:
            raise InputError(f"a list was expected, not {json_type_name(body[present[0]])}", path=present[0])
        *roots, last = (f"`{key}`" for key in ("messages", *_ROOT_KEYS))
        missing = f"no {', '.join(roots)} or {last}"
        raise UndetectedApiError(f"{missing}: not a request body of a known API")
    features = _Features(body, item_features)
    apis = features.certain | features.items or features.likely
    if len(apis) > 1:
        raise UndetectedApiError(f"the body has features of {' and '.join(sorted(apis))}")
    if "bedrock" in apis:
        return "bedrock"
    if "anthropic" in apis:
        return "anthropic"
    model = body.get("model")
    owner = api_of_model(model if isinstance(model, str) else "")
    if not apis and owner == "anthropic":
        return "anthropic"
    return owner if owner is not None and WIRES[owner].base_api == "openai-chat" else "openai-chat"


def find_contradicting_api(body: Mapping[str, Any], api: str, item_features: ItemFeatures = frozenset()) -> str | None:
    """Return the wire that a body certainly belongs to, if that is not the wire of `api`; else None.

    Calls, results, reasoning and tools in the form of another API are not enough: the wire of `api` parses them too.
    """
    wire = WIRES[api]
    expected = wire.base_api
    if wire.conversation_key != "messages" and body.get(wire.conversation_key) is not None:
        return None
    root = _api_by_root_key(body)
    if root is not None:
        return root if root != expected else None
    features = _Features(body, item_features)
    certain = features.certain
    if expected in certain:
        return min(certain - {expected}, default=None)
    if wire.conversation_key != "messages":
        certain = certain | features.items
    elif expected not in features.likely and expected not in features.items and isinstance(body.get("messages"), list):
        certain = certain | (features.items & features.likely)
    if expected == "bedrock":
        # Its tools are in `toolConfig`.
        certain = certain | _apis_of_tools(body)
    return min(certain, default=None)


def find_item_features(items: Sequence[object]) -> ItemFeatures:
    """Return all that detection reads from the items of a conversation."""
    features = _Features({"messages": items})
    named = {"certain": features.certain, "items": features.items, "likely": features.likely}
    found = [(kind, api) for kind, apis in named.items() for api in apis]
    return frozenset([*found, _FOUNDRY_ITEMS] if _is_foundry({"input": items}) else found)


def _api_by_root_key(body: Mapping[str, Any]) -> str | None:
    """Return the API whose conversation key the body has, if it has no `messages`."""
    if "messages" in body:
        return None
    return next((api for key, api in _ROOT_KEYS.items() if isinstance(body.get(key), str | list | dict)), None)


def _is_foundry(body: Mapping[str, Any]) -> bool:
    """Return whether a Responses body names an agent or has items of types that only Foundry has."""
    if not _FOUNDRY_KEYS.isdisjoint(body) and any(isinstance(body.get(key), dict) for key in _FOUNDRY_KEYS):
        return True
    return not FOUNDRY_ITEM_TYPES.isdisjoint([str(item.get("type")) for item in objects_in(body.get("input"))])


class _Features:
    """The APIs whose features a body has.

    `certain`: features that only one API has. `items`: calls, results, reasoning and tools in the form of an API that
    has `messages`. `likely`: keys of the body, and texts without a type.
    """

    __slots__ = ("_body", "_item_apis", "certain", "likely")

    def __init__(self, body: Mapping[str, Any], item_features: ItemFeatures = frozenset()) -> None:
        self.certain = set[str]() if _BEDROCK_KEYS.isdisjoint(body) else {"bedrock"}
        self._body = body
        self._item_apis: set[str] = set()
        self.likely = set[str]() if _CHAT_KEYS.isdisjoint(body) else {"openai-chat"}
        kinds: set[str] = set()
        for message in objects_in(body.get("messages")):
            role = message.get("role")
            if role == "developer":
                self.certain.add("openai-chat")
            if role in ("tool", "function") or message.get("tool_calls"):
                self._item_apis.add("openai-chat")
            for part in objects_in(message.get("content")):
                kind = part.get("type")
                if type(kind) is str:
                    kinds.add(kind)
                elif "type" not in part:
                    self._add_untyped_part(part)
        self.certain.update([_PART_APIS[kind] for kind in kinds & _PART_APIS.keys()])
        if not kinds.isdisjoint(_ANTHROPIC_ITEMS):
            self._item_apis.add("anthropic")
        if item_features:
            named = {"certain": self.certain, "items": self._item_apis, "likely": self.likely}
            for kind, api in item_features - {_FOUNDRY_ITEMS}:
                named[kind].add(api)
        if "bedrock" not in self.likely and not _ANTHROPIC_KEYS.isdisjoint(body):
            self.likely.add("anthropic")

    @property
    def items(self) -> set[str]:
        return self._item_apis | _apis_of_tools(self._body)

    def _add_untyped_part(self, part: Mapping[str, Any]) -> None:
        if not _BEDROCK_BLOCKS.isdisjoint(part):
            self.certain.add("bedrock")
        if not _BEDROCK_ITEMS.isdisjoint(part):
            self._item_apis.add("bedrock")
        if list(part) == ["text"]:
            self.likely.add("bedrock")


def _apis_of_tools(body: Mapping[str, Any]) -> set[str]:
    apis: set[str] = set()
    for tool in objects_in(body.get("tools")):
        if "input_schema" in tool:
            apis.add("anthropic")
        elif isinstance(tool.get("function"), dict):
            apis.add("openai-chat")
    return apis
