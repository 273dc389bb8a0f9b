"""Required fields and statuses of items, from the types in `segue.specs`.

An item without them cannot be sent back as it is. The fields of function and custom tool calls, messages and reasoning
are checked where they are parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
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
