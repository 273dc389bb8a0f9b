"""Required fields and statuses of items, from the types in `segue.specs`.

An item without them cannot be sent back as it is. The fields of function and custom tool calls, messages and reasoning
are checked where they are parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from segue.canonical.ids import raw_id_or_none
from segue.specs.types import ANY, Spec, find_mismatches, load_types
from segue.wire.foundry_items import FOUNDRY_ITEM_TYPES
from segue.wire.json_values import JsonObject

_API = "openai-responses"
# Required fields that are checked where items are parsed, or not at all.
_CHECKED_ELSEWHERE = frozenset({"type", "call_id", "additional_tools.role", "additional_tools.tools"})

# OAI-RESP-20: the provider has the item with this id.
_NOT_REQUIRED_WITH_ID = frozenset({"image_generation_call.result"})


@cache
def _required_fields() -> Mapping[str, Mapping[str, Spec]]:
    return {
        kind: {key: spec.members[key] for key in spec.required if _CHECKED_ELSEWHERE.isdisjoint((key, f"{kind}.{key}"))}
        for kind, spec in load_types(_API).items()
    }


def has_required_fields(kind: str, item: JsonObject) -> bool:
    """Return whether an item has the required fields of its type. Unknown types have none."""
    for key, spec in _required_fields().get(kind, {}).items():
        if key not in item and f"{kind}.{key}" in _NOT_REQUIRED_WITH_ID and raw_id_or_none(item.get("id")):
            continue
        if key not in item or any(find_mismatches(spec, item[key])):
            return False
    return _has_valid_output(kind, item.get("output")) and has_valid_status(kind, item)


# The fields of objects in items, which the published types do not list.
_TOOL_FIELDS = ("type", "name", "description", "parameters", "strict", "format", "defer_loading", "allowed_callers")
_INNER_FIELDS: Mapping[str, Sequence[str]] = {
    "caller": ("type", "caller_id"),
    "agent": ("agent_name",),
    "agent_reference": ("type", "name", "version", "label"),
    "additional_tools.tools": (*_TOOL_FIELDS, "tools"),
    "tool_search_output.tools": (*_TOOL_FIELDS, "tools"),
    "additional_tools.tools.tools": _TOOL_FIELDS,
    "tool_search_output.tools.tools": _TOOL_FIELDS,
    "code_interpreter_call.outputs": ("type", "logs", "url"),
    "image_generation_call.error": ("type", "code", "message", "param", "moderation_details"),
    "memory_search_call.results": ("memory_item",),
    "memory_search_call.results.memory_item": ("kind", "memory_id", "updated_at", "scope", "content"),
    "shell_call.environment": ("type", "container_id", "file_ids", "memory_limit", "network_policy", "skills"),
    "shell_call_output.output": ("stdout", "stderr", "outcome", "created_by"),
    "shell_call_output.output.outcome": ("type", "exit_code"),
    "computer_call_output.output": ("type", "image_url", "file_id", "detail"),
}
# Those of items in replies, and of items that only Azure Foundry has.
_REPLY_FIELDS = frozenset({"type", "id", "agent_reference", "response_id", "created_by"})
_FOUNDRY_FIELDS = frozenset(
    {"call_id", "name", "arguments", "output", "status", "results", "server_label", "consent_link", "kind"}
    | {"action_id", "parent_action_id", "previous_action_id"}
)


def typed_keys(item: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the keys of an item of a known type, also those in its objects."""
    kind = item.get("type")
    return _keys_of_type(kind) if isinstance(kind, str) else None


@lru_cache(maxsize=128)
def _keys_of_type(kind: str) -> frozenset[str] | None:
    spec = load_types(_API).get(kind)
    if spec is None and kind not in FOUNDRY_ITEM_TYPES:
        return None
    keys = _REPLY_FIELDS | (_FOUNDRY_FIELDS if spec is None else spec.members.keys())
    places = {place.removeprefix(f"{kind}."): fields for place, fields in _INNER_FIELDS.items()}
    inner = {f"{place}.{key}" for place, fields in places.items() if place.partition(".")[0] in keys for key in fields}
    # A place that has keys inside is none itself.
    return frozenset((keys | inner) - places.keys())


def is_openai_item(kind: str, _item: JsonObject) -> bool:
    """Return whether this may be an OpenAI type; an unknown one may be newer than this list."""
    return kind not in FOUNDRY_ITEM_TYPES


def has_valid_status(kind: str, item: JsonObject) -> bool:
    if item.get("status") is None:
        return True
    spec = load_types(_API).get(kind, ANY).members.get("status")
    return spec is None or item["status"] in spec.values


def has_valid_call_id(item: JsonObject) -> bool:
    # OAI-RESP-01
    call_id = raw_id_or_none(item.get("call_id"))
    return call_id is not None and len(call_id) <= 64


def _has_valid_output(kind: str, output: Any) -> bool:
    # OAI-RESP-16
    match kind:
        case "apply_patch_call_output":
            return output is None or isinstance(output, str)
        case "computer_call_output":
            return output.get("type") in ("computer_screenshot", "input_image")
        case "shell_call_output":
            return all(_is_shell_chunk(chunk) for chunk in output)
        case _:
            return True


def _is_shell_chunk(chunk: object) -> bool:
    match chunk:
        case {"stdout": str(), "stderr": str(), "outcome": {"type": "timeout"}}:
            return True
        case {"stdout": str(), "stderr": str(), "outcome": {"type": "exit", "exit_code": int()}}:
            return True
        case _:
            return False
