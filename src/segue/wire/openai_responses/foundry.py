"""What Azure Foundry's schema takes of this wire: AZF-08's closed list of items, and the members of each.

A form is a line of members. `?` marks one that may be left out; behind `:` stand the kinds of value that are taken
(string, array, object, number, boolean, null, or anything), a string where nothing stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from segue.render.report import Report
from segue.wire.fields import JsonObject, object_or_none

__all__ = ["PART_TYPES", "fitted_agent", "fitted_body", "is_id", "lawful_id", "mended_item", "mended_tools", "takes"]

_KINDS: dict[str, tuple[type, ...]] = {
    "s": (str,),
    "a": (list,),
    "o": (dict,),
    "n": (int, float),
    "b": (bool,),
    "0": (type(None),),
    "x": (object,),
}
Form = dict[str, tuple[bool, tuple[type, ...]]]


def _form(line: str) -> Form:
    form: Form = {}
    for word in line.split():
        name, _, kinds = word.partition(":")
        form[name.removesuffix("?")] = (
            not name.endswith("?"),
            tuple(kind for letter in kinds or "s" for kind in _KINDS[letter]),
        )
    return form


def _forms(table: Mapping[str, str]) -> dict[str, Form]:
    return {name: _form(line) for name, line in table.items()}


# AZF-03: a status is never null, whatever the schema of the type says.
_STATED = "status? id?:s0"
_CALLED = "call_id id?:s0 caller?:o0"
_ITEMS = _forms(
    {
        "additional_tools": "role tools:a id?:s0",
        "apply_patch_call": f"{_CALLED} operation:o status",
        "apply_patch_call_output": f"{_CALLED} status output?:s0",
        "code_interpreter_call": "id code:s0 container_id outputs:a0 status",
        "compaction": "encrypted_content id?:s0",
        "computer_call": "id call_id pending_safety_checks:a status action?:o actions?:a",
        "computer_call_output": f"call_id output:o acknowledged_safety_checks?:a0 {_STATED}",
        "custom_tool_call": "call_id name input id? namespace? caller?:o0 status?",
        "custom_tool_call_output": "call_id output:sa id? caller?:o0 status?",
        "file_search_call": "id queries:a status results?:a0",
        "function_call": "call_id name arguments namespace? status? caller?:o0 id?:s0",
        "function_call_output": f"output:sa call_id?:s0 caller?:o0 name?:s0 namespace?:s0 {_STATED}",
        "image_generation_call": "id result:s0 status",
        "item_reference": "id",
        "local_shell_call": "id call_id action:o status",
        "local_shell_call_output": "id output status?",
        "mcp_approval_request": "id arguments name server_label",
        "mcp_approval_response": "approval_request_id approve:b id?:s0 reason?:s0",
        "mcp_call": "id arguments name server_label approval_request_id?:s0 error?:o output?:s0 status?",
        "mcp_list_tools": "id server_label tools:a error?:o",
        "memory_search_call": "results?:a0 status? id?:x",
        "message": "role content:sa type? phase?:s0 status?",
        "output_message": "id role content:a status phase?:s0",
        "program": "id call_id code fingerprint",
        "program_output": "id call_id result status",
        "reasoning": "id summary:a content?:a encrypted_content?:s0 status?",
        "shell_call": f"{_CALLED} action:o environment?:o0 status?",
        "shell_call_output": f"{_CALLED} output:a max_output_length?:n0 status?",
        "tool_search_call": "arguments:x call_id?:s0 execution? id?:s0 status?",
        "tool_search_output": "tools:a call_id?:s0 execution? id?:s0 status?",
        "web_search_call": "id action:o status",
    }
)
_PARTS = _forms(
    {
        "computer_screenshot": "detail file_id:s0 image_url:s0",
        "input_file": "detail? file_data? file_id?:s0 file_url? filename?",
        "input_image": "detail?:s0 file_id?:s0 image_url?:s0",
        "input_text": "text",
        "output_text": "text annotations:a logprobs?:a",
        "reasoning_text": "text",
        "refusal": "refusal",
        "summary_text": "text",
        "text": "text",
    }
)
PART_TYPES = frozenset(_PARTS)
_TOOLS = _forms(
    {
        "function": "name description?:s0 parameters?:o0 strict?:b0 output_schema?:o0 allowed_callers?:a0 "
        "defer_loading?:b",
        "custom": "name description? format?:o allowed_callers?:a0 defer_loading?:b",
        "namespace": "name description tools:a",
    }
)
_TOOL_TYPES = (
    "a2a_preview apply_patch azure_ai_search azure_function bing_custom_search_preview bing_grounding "
    "browser_automation_preview capture_structured_outputs code_interpreter computer computer_use_preview custom "
    "fabric_dataagent_preview file_search function image_generation local_shell mcp memory_search "
    "memory_search_preview namespace openapi programmatic_tool_calling sharepoint_grounding_preview shell tool_search "
    "web_search web_search_preview work_iq_preview"
)
_AGENT = _form("name type? version?")
_BODY = _form(
    "agent_reference?:o agent_session_id? background?:b0 conversation?:so0 include?:a0 input?:sa instructions?:s0 "
    "max_output_tokens?:n0 max_tool_calls?:n0 metadata?:o0 model? parallel_tool_calls?:b0 previous_response_id?:s0 "
    "prompt?:o0 prompt_cache_key?:s0 reasoning?:o0 safety_identifier?:s0 service_tier?:s0 store?:b0 stream?:b0 "
    "stream_options?:o0 temperature?:n0 text?:o tool_choice?:so tools?:a top_logprobs?:n0 top_p?:n0 truncation?:s0 "
    "user?"
)

# ---------------------------------------------------------------------------------------------------------------- ids

# AZF-07: older ones are two characters shorter.
_ID = re.compile(r"([a-z]+)_(?:[\s\S]{48}|[\s\S]{50})")
_PREFIXES = "msg om fc fco rs fs ws ci ig mcp mcpl mcpr mcpa ctc ctco cu cuo lsh lsho ap apo cmp wfa prog progo"
# OAI-RESP-02, OAI-RESP-03
_PREFIX_OF = {"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs", "message": "msg"}


def is_id(name: object, *prefixes: str) -> bool:
    found = _ID.fullmatch(name) if isinstance(name, str) else None
    return found is not None and found[1] in (prefixes or _PREFIXES.split())


def lawful_id(kind: str, item_id: object) -> bool:
    """Whether an item may go back under this id. AZF-09: of a search in memory nobody looks at it."""
    expected = _PREFIX_OF.get(kind)
    return kind == "memory_search_call" or (is_id(item_id, expected) if expected is not None else is_id(item_id))


# ------------------------------------------------------------------------------------------------------------- mending


def _fits(entry: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> bool:
    value = entry[name]
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds or object in kinds)


def _misfits(entry: Mapping[str, Any], form: Form) -> list[str]:
    return [name for name, (_, kinds) in form.items() if name in entry and not _fits(entry, name, kinds)]


def _fitted(entry: JsonObject, form: Form, report: Report) -> JsonObject:
    """The object less what may be left out and is not of its kind; itself where all is well."""
    wrong = [name for name in _misfits(entry, form) if not form[name][0]]
    for name in wrong:
        if entry[name] is not None:
            report.add("dropped", f"`{name}` is left out: the schema refuses its value", subject=name)
    return {name: value for name, value in entry.items() if name not in wrong} if wrong else entry


def takes(kind: str, item: JsonObject) -> bool:
    """Whether an item is of a type that may be said, has all that this demands, and bears an id where it must."""
    form = _ITEMS.get(kind)
    if form is None or not all(
        name in item and _fits(item, name, kinds) for name, (must, kinds) in form.items() if must
    ):
        return False
    return not form.get("id", (False, ()))[0] or kind == "local_shell_call_output" or lawful_id(kind, item["id"])


def mended_item(item: JsonObject, kind: str, report: Report) -> JsonObject:
    """AZF-03, AZF-04: an item with its type, and without members that the schema refuses."""
    item = _fitted(item, _ITEMS.get(kind, {}), report)
    if kind == "memory_search_call" and "id" in item and not is_id(item["id"]):
        item = {name: value for name, value in item.items() if name != "id"}
    if item.get("type") is None and (kind != "message" or item.get("role") == "assistant"):
        item = {"type": kind, **{name: value for name, value in item.items() if name != "type"}}
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            parts = cast("list[Any]", item[key])
            mended = [_mended_part(part, report) for part in parts]
            if any(a is not b for a, b in zip(mended, parts, strict=True)):
                item = {**item, key: mended}
    return item


def _mended_part(part: Any, report: Report) -> Any:
    entry: JsonObject | None = object_or_none(part)
    form = _PARTS.get(str(entry.get("type"))) if entry is not None else None
    if entry is None or form is None:
        return part
    if "annotations" in form and not isinstance(entry.get("annotations"), list):
        entry = {**entry, "annotations": []}
    return _fitted(entry, form, report)


def mended_tools(tools: list[Any], report: Report) -> list[Any]:
    """The declarations of types that are known, each without members that the schema refuses."""
    known = [tool for tool in tools if str((object_or_none(tool) or {}).get("type")) in _TOOL_TYPES.split()]
    if len(known) < len(tools):
        report.add("tools", "tools of types that are not known here are left out", subject="tools")
    mended = [_fitted(tool, _TOOLS.get(tool["type"], {}), report) for tool in known]
    same = len(mended) == len(tools) and all(a is b for a, b in zip(mended, tools, strict=True))
    return tools if same else mended


def fitted_agent(agent: JsonObject, report: Report) -> JsonObject:
    return _fitted(agent, _AGENT, report)


def fitted_body(body: JsonObject, report: Report) -> JsonObject:
    """The body without members that the schema refuses."""
    return _fitted(body, _BODY, report)
