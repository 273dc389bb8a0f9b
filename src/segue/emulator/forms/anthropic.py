"""Body validation of the Messages API, with errors in pydantic's format.

The conformance rules check the keys and the content of blocks, calls and results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.form import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Fault,
    Form,
    chosen,
    either,
    entries,
    faults,
    maybe,
    members,
    sized,
    text,
)
from segue.conformance.values import is_list, is_object
from segue.emulator.forms.chat import OBJECT
from segue.emulator.forms.schemas import schema_fault
from segue.emulator.json import objects
from segue.emulator.wording.fault import Fault as Breach
from segue.emulator.wording.openai_style import steps_of
from segue.models import identify
from segue.wire.base import ApiError

__all__ = ["BLOCKS", "MEMBERS", "TOOLS", "refused"]

_INTERLEAVED = "interleaved-thinking-2025-05-14"
_LEAST_BUDGET = 1024

_SOURCES = {
    "base64": members({"data": TEXT, "media_type": TEXT}),
    "content": members({"content": ANY}),
    "file": members({"file_id": TEXT}),
    "text": members({"data": TEXT, "media_type": TEXT}),
    "url": members({"url": TEXT}),
}
_IMAGES = {name: _SOURCES[name] for name in ("base64", "file", "url")}
# Blocks that are open here are checked by the conformance rules.
BLOCKS: Mapping[str, Form] = {
    "advisor_tool_result": OBJECT,
    "bash_code_execution_tool_result": OBJECT,
    "code_execution_tool_result": OBJECT,
    "compaction": OBJECT,
    "container_upload": OBJECT,
    "document": members({"source": chosen("type", _SOURCES)}),
    "fallback": OBJECT,
    "image": members({"source": chosen("type", _IMAGES)}),
    "mcp_tool_listing": OBJECT,
    "mcp_tool_result": OBJECT,
    "mcp_tool_use": OBJECT,
    "redacted_thinking": OBJECT,
    "search_result": OBJECT,
    "server_tool_use": OBJECT,
    "text": OBJECT,
    "text_editor_code_execution_tool_result": OBJECT,
    "thinking": OBJECT,
    "tool_addition": OBJECT,
    "tool_removal": OBJECT,
    "tool_result": OBJECT,
    "tool_search_tool_result": OBJECT,
    "tool_use": OBJECT,
    "web_fetch_tool_result": OBJECT,
    "web_search_tool_result": OBJECT,
}
TOOLS: Mapping[str, Form] = {
    "custom": members(description=TEXT),
    **dict.fromkeys(
        (
            *("advisor_20260301", "bash_20241022", "bash_20250124", "browser_toolset_20260801"),
            *("code_execution_20250522", "code_execution_20250825", "code_execution_20260120"),
            *("code_execution_20260521", "computer_20241022", "computer_20250124", "computer_20251124"),
            *("computer_toolset_20260801", "mcp_toolset", "memory_20250818", "text_editor_20241022"),
            *("text_editor_20250124", "text_editor_20250429", "text_editor_20250728", "tool_search_tool_bm25"),
            *("tool_search_tool_bm25_20251119", "tool_search_tool_regex", "tool_search_tool_regex_20251119"),
            *("web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318"),
            *("web_search_20250305", "web_search_20260209", "web_search_20260318"),
        ),
        OBJECT,
    ),
}
_THINKING = {
    "adaptive": OBJECT,
    "between_tools": OBJECT,
    "disabled": OBJECT,
    "enabled": members({"budget_tokens": sized("integer", _LEAST_BUDGET)}),
}
_CHOICE = {
    "any": members(disable_parallel_tool_use=BOOLEAN),
    "auto": members(disable_parallel_tool_use=BOOLEAN),
    "none": OBJECT,
    "tool": members({"name": TEXT}, disable_parallel_tool_use=BOOLEAN),
}
# Blocks without a type are left to ANT-12; only those with one are checked.
_CONTENT = maybe(either(TEXT, entries(OBJECT)))
_MESSAGE = members({"role": TEXT}, content=_CONTENT)
MEMBERS: Mapping[str, Form] = {
    "model": TEXT,
    "messages": entries(_MESSAGE),
    # 0 fills the cache and generates no reply.
    "max_tokens": sized("integer", 0),
    "cache_control": maybe(OBJECT),
    "compaction": maybe(OBJECT),
    "container": maybe(either(TEXT, OBJECT)),
    "context_management": maybe(OBJECT),
    "diagnostics": maybe(OBJECT),
    "fallback_credit_token": maybe(either(TEXT, OBJECT)),
    "fallbacks": maybe(either(TEXT, entries(OBJECT))),
    "inference_geo": maybe(TEXT),
    "mcp_servers": entries(OBJECT),
    "metadata": OBJECT,
    "output_config": OBJECT,
    "output_format": maybe(OBJECT),
    "service_tier": text("auto", "standard_only"),
    "speed": maybe(text("fast", "standard")),
    "stop_sequences": entries(TEXT),
    "stream": BOOLEAN,
    "system": ANY,
    "temperature": sized("number", 0, 1),
    "thinking": chosen("type", _THINKING),
    "thread": maybe(OBJECT),
    "tool_choice": chosen("type", _CHOICE),
    "tools": maybe(entries(chosen("type", TOOLS, default="custom"))),
    "top_k": sized("integer", 0),
    "top_p": sized("number", 0, 1),
    "user_profile_id": TEXT,
    "workspace_id": TEXT,
}
_FORM = members(None, **MEMBERS)
_KINDS = {
    TEXT.kind: "Input should be a valid string",
    INTEGER.kind: "Input should be a valid integer",
    NUMBER.kind: "Input should be a valid number",
    BOOLEAN.kind: "Input should be a valid boolean",
    "list": "Input should be a valid list",
}
_OBJECT = "Input should be a valid dictionary or object to extract fields from"
_SCHEMA = (
    "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn "
    "more about tool use at https://docs.claude.com/en/docs/tool-use."
)
_BUDGET = (
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
)
_BLOCK = re.compile(r"messages\[\d+\]\.content\[\d+\]")


def _refusal(message: str) -> ApiError:
    return ApiError(400, message)


def _place(path: str, body: Mapping[str, Any]) -> str:
    """Formats a path with the tag of each tagged object."""
    parts: list[str] = []
    steps, found = steps_of(path), Breach(body, ())
    for at, step in enumerate(steps):
        parts.append(str(step))
        value = found.at(*steps[: at + 1])
        above = steps[at - 1] if at else None
        has_tag = step in ("thinking", "tool_choice", "source") or (
            isinstance(step, int) and above in ("tools", "content")
        )
        if has_tag and at + 1 < len(steps) and is_object(value):
            tag = value.get("type", "custom" if above == "tools" else None)
            parts += [tag] if isinstance(tag, str) else []
    return ".".join(parts)


def _listed(values: tuple[str, ...]) -> str:
    quoted = [f"'{value}'" for value in values]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _tag(path: str, tag: object, known: Mapping[str, Form]) -> ApiError:
    tags = ", ".join(f"'{name}'" for name in sorted(known))
    message = f"Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}"
    return _refusal(f"{path}: {message}")


def _told(fault: Fault, body: Mapping[str, Any]) -> ApiError:
    place, form = _place(fault.path, body), fault.form
    match fault.wrong:
        case "missing" if form.by:
            message = f"Unable to extract tag using discriminator '{form.by}'"
            place = place.rpartition(".")[0]
        case "missing":
            message = "Field required"
        case "choice":
            return _tag(_place(fault.path.rpartition(".")[0], body), fault.value, form.choices)
        case "value":
            message = f"Input should be {_listed(form.values)}"
        case "type" if form.either:
            message = _KINDS["string"] if form.either[-1].kind != "list" else _KINDS["list"]
        case "type":
            message = _KINDS.get(form.kind, _OBJECT)
        case "short":
            message = f"Input should be greater than or equal to {form.least:g}"
        case _:
            message = f"Input should be less than or equal to {form.most:g}"
    return _refusal(f"{place}: {message}")


def _blocks(body: Mapping[str, Any]) -> ApiError | None:
    for at, message in enumerate(body["messages"]):
        content = message.get("content")
        for index, block in enumerate(objects(content)):
            path, tag = f"messages[{at}].content[{index}]", block.get("type")
            if not isinstance(tag, str) or not tag:
                continue
            if tag not in BLOCKS:
                return _tag(_place(path, body), tag, BLOCKS)
            for fault in faults(BLOCKS[tag], block, path):
                return _told(fault, body)
    return None


def _tools(body: Mapping[str, Any]) -> ApiError | None:
    tools = body.get("tools") or ()
    for index, tool in enumerate(tools):
        schema = tool.get("input_schema")
        custom = tool.get("type") in (None, "custom")
        if not custom or not is_object(schema) or schema.get("type") != "object":
            continue
        # Its types allow null for properties and required.
        if schema_fault({key: value for key, value in schema.items() if value is not None}) is not None:
            return _refusal(f"tools.{index}.custom.input_schema: {_SCHEMA}")
    choice = body.get("tool_choice")
    thread = body.get("thread")
    if choice is None or (is_object(thread) and thread.get("type") == "continue") or body.get("mcp_servers"):
        return None
    if not tools:
        return None if choice["type"] == "none" else _refusal("tool_choice may only be specified while providing tools")
    toolsets = any("toolset" in str(tool.get("type")) for tool in tools)
    if choice["type"] == "tool" and not toolsets and choice["name"] not in [tool.get("name") for tool in tools]:
        return _refusal(f"Tool '{choice['name']}' not found in provided tools")
    return None


def _roles(body: Mapping[str, Any]) -> ApiError | None:
    """System messages: models before Opus 4.8 reject them, and a conversation can't start with one."""
    model, roles = identify(body.get("model")), [message["role"] for message in body["messages"]]
    if "system" not in roles or model.family != "claude":
        return None
    newer = model.at_least(4, 8) or not model.version
    if not newer:
        return _refusal("role 'system' is not supported on this model")
    if roles[0] == "system":
        return _refusal('messages: first message must use the "user" role')
    return None


def _budget(body: Mapping[str, Any], betas: str) -> ApiError | None:
    """With interleaved thinking the budget is for all thinking of a turn and may exceed max_tokens."""
    thinking, most = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if is_object(thinking) and thinking.get("type") == "enabled" else None
    interleaved = _INTERLEAVED in betas and body.get("tools")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most and not interleaved:
        return _refusal(_BUDGET)
    return None


def _named(tool: object) -> object:
    """Returns the tool without a null type, which means the default."""
    if not is_object(tool) or "type" not in tool or tool["type"] is not None:
        return tool
    return {key: value for key, value in tool.items() if key != "type"}


def refused(body: Mapping[str, Any], betas: str = "") -> ApiError | None:
    """Returns the error for the first mismatch, `None` if the body is valid. `betas` is the anthropic-beta header."""
    if is_list(body.get("tools")):
        body = {**body, "tools": [_named(tool) for tool in body["tools"]]}
    for fault in faults(_FORM, body):
        return _told(fault, body)
    unknown_key = next((name for name in body if name not in MEMBERS), None)
    if unknown_key is not None:
        return _refusal(f"{unknown_key}: Extra inputs are not permitted")
    if not body.get("messages") and not is_object(body.get("thread")):
        return _refusal("messages: at least one message is required")
    return _roles(body) or _blocks(body) or _tools(body) or _budget(body, betas)
