"""Required fields and statuses of each item type, from the vendor's request types.

An item without them cannot be sent back as it is. Function and custom tool calls, messages and reasoning are checked
where they are parsed and have no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.ids import raw_id_or_none
from segue.wire.json_values import JsonObject

# Hosted tools of Azure Foundry by the stem of their types, `…_call` and `…_call_output`: each with its tool name if the
# items have none.
FOUNDRY_TOOLS: Mapping[str, str] = {
    "a2a_preview": "",
    "azure_ai_search": "azure_ai_search",
    "azure_function": "",
    "bing_custom_search_preview": "bing_custom_search",
    "bing_grounding": "bing_grounding",
    "browser_automation_preview": "browser_automation",
    "fabric_dataagent_preview": "fabric_dataagent",
    "openapi": "",
    "sharepoint_grounding_preview": "sharepoint_grounding",
}
_FOUNDRY_ITEM_TYPES = frozenset(
    {"memory_search_call", "workflow_action", "oauth_consent_request", "structured_outputs"}
    | {f"{stem}_call{end}" for stem in FOUNDRY_TOOLS for end in ("", "_output")}
)

_TEXT, _LIST, _OBJECT, _ANY = (str,), (list,), (dict,), (object,)
_REQUIRED_FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "shell_call": {"action": _OBJECT},
    "local_shell_call": {"action": _OBJECT},
    "apply_patch_call": {"operation": _OBJECT},
    "tool_search_call": {"arguments": _ANY},
    "program": {"code": _TEXT, "fingerprint": _TEXT},
    "multi_agent_call": {"action": _TEXT, "arguments": _TEXT},
    "computer_call_output": {"output": _OBJECT},
    "shell_call_output": {"output": _LIST},
    "local_shell_call_output": {"output": _TEXT},
    "apply_patch_call_output": {"status": _TEXT},
    "tool_search_output": {"tools": _LIST},
    "program_output": {"result": _TEXT},
    "multi_agent_call_output": {"action": _TEXT, "output": _LIST},
    "web_search_call": {"action": _OBJECT},
    "file_search_call": {"queries": _LIST},
    "code_interpreter_call": {"code": (str, type(None)), "container_id": _TEXT, "outputs": (list, type(None))},
    "image_generation_call": {"result": (str, type(None))},
    "mcp_call": {"name": _TEXT, "arguments": _TEXT, "server_label": _TEXT},
    "mcp_list_tools": {"server_label": _TEXT, "tools": _LIST},
    "mcp_approval_request": {"id": _TEXT, "name": _TEXT, "arguments": _TEXT, "server_label": _TEXT},
    "mcp_approval_response": {"approval_request_id": _TEXT, "approve": (bool,)},
    "compaction": {"encrypted_content": _TEXT},
    "item_reference": {"id": _TEXT},
    "agent_message": {"author": _TEXT, "recipient": _TEXT, "content": _LIST},
}
_STATUSES = ("in_progress", "completed", "incomplete")
_STATUSES_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "apply_patch_call": ("in_progress", "completed"),
    "computer_call_output": (*_STATUSES, "failed"),
    "apply_patch_call_output": ("completed", "failed"),
    "program_output": ("completed", "incomplete"),
    "web_search_call": (*_STATUSES, "searching", "failed"),
    "file_search_call": (*_STATUSES, "searching", "failed"),
    "code_interpreter_call": (*_STATUSES, "interpreting", "failed"),
    "image_generation_call": ("in_progress", "completed", "generating", "failed"),
    "mcp_call": (*_STATUSES, "calling", "failed"),
}
_PARSED_TYPES = frozenset(
    {"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "computer_call"}
)
# Types whose status is not checked by the API.
_TYPES_WITHOUT_STATUS = frozenset(
    {"reasoning", "program", "multi_agent_call", "multi_agent_call_output", "mcp_list_tools", "mcp_approval_request"}
    | {"mcp_approval_response", "compaction", "item_reference", "agent_message"}
)


def has_required_fields(kind: str, item: JsonObject) -> bool:
    """Return whether an item has the required fields of its type. Unknown types have none."""
    required = _REQUIRED_FIELDS.get(kind, {})
    if not all(key in item and isinstance(item[key], types) for key, types in required.items()):
        return False
    return _has_valid_output(kind, item.get("output")) and has_valid_status(kind, item)


def is_openai_item(kind: str, _item: JsonObject) -> bool:
    """Return whether this may be an OpenAI type; an unknown one may be newer than this table."""
    return kind not in _FOUNDRY_ITEM_TYPES


def has_valid_status(kind: str, item: JsonObject) -> bool:
    status = item.get("status")
    if status is None or kind in _TYPES_WITHOUT_STATUS or not (kind in _REQUIRED_FIELDS or kind in _PARSED_TYPES):
        return True
    return status in _STATUSES_BY_TYPE.get(kind, _STATUSES)


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
