"""Body validation of the Messages API, with errors in pydantic's format.

The conformance rules check the keys and the content of blocks, calls and results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.values import is_list, is_object
from segue.emulator.errors.broken_rule import BrokenRule
from segue.emulator.errors.openai_style import parse_path
from segue.emulator.http_messages import HttpRequest
from segue.emulator.json_values import objects_in
from segue.emulator.validation.chat_specs import OBJECT
from segue.emulator.validation.json_schema import find_schema_error
from segue.models import parse_model
from segue.specs.types import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Mismatch,
    Spec,
    any_of,
    bounded,
    enum_of,
    find_mismatches,
    list_of,
    nullable,
    object_of,
    tagged,
)
from segue.wire.base import ApiError

_INTERLEAVED = "interleaved-thinking-2025-05-14"
_MIN_BUDGET = 1024

_SOURCES = {
    "base64": object_of({"data": STRING, "media_type": STRING}),
    "content": object_of({"content": ANY}),
    "file": object_of({"file_id": STRING}),
    "text": object_of({"data": STRING, "media_type": STRING}),
    "url": object_of({"url": STRING}),
}
_IMAGES = {name: _SOURCES[name] for name in ("base64", "file", "url")}
# Blocks that are open here are checked by the conformance rules.
BLOCKS: Mapping[str, Spec] = {
    "advisor_tool_result": OBJECT,
    "bash_code_execution_tool_result": OBJECT,
    "code_execution_tool_result": OBJECT,
    "compaction": OBJECT,
    "container_upload": OBJECT,
    "document": object_of({"source": tagged("type", _SOURCES)}),
    "fallback": OBJECT,
    "image": object_of({"source": tagged("type", _IMAGES)}),
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
TOOLS: Mapping[str, Spec] = {
    "custom": object_of(description=STRING),
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
    "enabled": object_of({"budget_tokens": bounded("integer", _MIN_BUDGET)}),
}
_TOOL_CHOICE = {
    "any": object_of(disable_parallel_tool_use=BOOLEAN),
    "auto": object_of(disable_parallel_tool_use=BOOLEAN),
    "none": OBJECT,
    "tool": object_of({"name": STRING}, disable_parallel_tool_use=BOOLEAN),
}
# Blocks without a type are left to ANT-12; only those with one are checked.
_CONTENT = nullable(any_of(STRING, list_of(OBJECT)))
_MESSAGE = object_of({"role": STRING}, content=_CONTENT)
MEMBERS: Mapping[str, Spec] = {
    "model": STRING,
    "messages": list_of(_MESSAGE),
    # 0 fills the cache and generates no reply.
    "max_tokens": bounded("integer", 0),
    "cache_control": nullable(OBJECT),
    "compaction": nullable(OBJECT),
    "container": nullable(any_of(STRING, OBJECT)),
    "context_management": nullable(OBJECT),
    "diagnostics": nullable(OBJECT),
    "fallback_credit_token": nullable(any_of(STRING, OBJECT)),
    "fallbacks": nullable(any_of(STRING, list_of(OBJECT))),
    "inference_geo": nullable(STRING),
    "mcp_servers": list_of(OBJECT),
    "metadata": OBJECT,
    "output_config": OBJECT,
    "output_format": nullable(OBJECT),
    "service_tier": enum_of("auto", "standard_only"),
    "speed": nullable(enum_of("fast", "standard")),
    "stop_sequences": list_of(STRING),
    "stream": BOOLEAN,
    "system": ANY,
    "temperature": bounded("number", 0, 1),
    "thinking": tagged("type", _THINKING),
    "thread": nullable(OBJECT),
    "tool_choice": tagged("type", _TOOL_CHOICE),
    "tools": nullable(list_of(tagged("type", TOOLS, default="custom"))),
    "top_k": bounded("integer", 0),
    "top_p": bounded("number", 0, 1),
    "user_profile_id": STRING,
    "workspace_id": STRING,
}
_SPEC = object_of(None, **MEMBERS)
_KINDS = {
    STRING.kind: "Input should be a valid string",
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


def _error(message: str) -> ApiError:
    return ApiError(400, message)


def _tagged_path(path: str, body: Mapping[str, Any]) -> str:
    """Format a path with the tag of each tagged object."""
    parts: list[str] = []
    steps, found = parse_path(path), BrokenRule(body, ())
    for at, step in enumerate(steps):
        parts.append(str(step))
        value = found.value_at(*steps[: at + 1])
        above = steps[at - 1] if at else None
        has_tag = step in ("thinking", "tool_choice", "source") or (
            isinstance(step, int) and above in ("tools", "content")
        )
        if has_tag and at + 1 < len(steps) and is_object(value):
            tag = value.get("type", "custom" if above == "tools" else None)
            parts += [tag] if isinstance(tag, str) else []
    return ".".join(parts)


def _join_or(values: tuple[str, ...]) -> str:
    quoted = [f"'{value}'" for value in values]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _tag_error(path: str, tag: object, known: Mapping[str, Spec]) -> ApiError:
    tags = ", ".join(f"'{name}'" for name in sorted(known))
    message = f"Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}"
    return _error(f"{path}: {message}")


def _mismatch_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError:
    place, spec = _tagged_path(mismatch.path, body), mismatch.spec
    match mismatch.kind:
        case "missing" if spec.discriminator:
            message = f"Unable to extract tag using discriminator '{spec.discriminator}'"
            place = place.rpartition(".")[0]
        case "missing":
            message = "Field required"
        case "choice":
            return _tag_error(_tagged_path(mismatch.path.rpartition(".")[0], body), mismatch.value, spec.variants)
        case "value":
            message = f"Input should be {_join_or(spec.values)}"
        case "type" if spec.any_of:
            message = _KINDS["string"] if spec.any_of[-1].kind != "list" else _KINDS["list"]
        case "type":
            message = _KINDS.get(spec.kind, _OBJECT)
        case "short":
            message = f"Input should be greater than or equal to {spec.minimum:g}"
        case _:
            message = f"Input should be less than or equal to {spec.maximum:g}"
    return _error(f"{place}: {message}")


def _validate_blocks(body: Mapping[str, Any]) -> ApiError | None:
    for at, message in enumerate(body["messages"]):
        content = message.get("content")
        for index, block in enumerate(objects_in(content)):
            path, tag = f"messages[{at}].content[{index}]", block.get("type")
            if not isinstance(tag, str) or not tag:
                continue
            if tag not in BLOCKS:
                return _tag_error(_tagged_path(path, body), tag, BLOCKS)
            for mismatch in find_mismatches(BLOCKS[tag], block, path):
                return _mismatch_error(mismatch, body)
    return None


def _validate_tools(body: Mapping[str, Any]) -> ApiError | None:
    tools = body.get("tools") or ()
    for index, tool in enumerate(tools):
        schema = tool.get("input_schema")
        custom = tool.get("type") in (None, "custom")
        if not custom or not is_object(schema) or schema.get("type") != "object":
            continue
        # Its types allow null for properties and required.
        if find_schema_error({key: value for key, value in schema.items() if value is not None}) is not None:
            return _error(f"tools.{index}.custom.input_schema: {_SCHEMA}")
    choice = body.get("tool_choice")
    thread = body.get("thread")
    if choice is None or (is_object(thread) and thread.get("type") == "continue") or body.get("mcp_servers"):
        return None
    if not tools:
        return None if choice["type"] == "none" else _error("tool_choice may only be specified while providing tools")
    toolsets = any("toolset" in str(tool.get("type")) for tool in tools)
    if choice["type"] == "tool" and not toolsets and choice["name"] not in [tool.get("name") for tool in tools]:
        return _error(f"Tool '{choice['name']}' not found in provided tools")
    return None


def _validate_roles(body: Mapping[str, Any]) -> ApiError | None:
    """System messages: models before Opus 4.8 reject them, and a conversation can't start with one."""
    model, roles = parse_model(body.get("model")), [message["role"] for message in body["messages"]]
    if "system" not in roles or model.family != "claude":
        return None
    newer = model.at_least(4, 8) or not model.version
    if not newer:
        return _error("role 'system' is not supported on this model")
    if roles[0] == "system":
        return _error('messages: first message must use the "user" role')
    return None


def _validate_budget(body: Mapping[str, Any], betas: str) -> ApiError | None:
    """With interleaved thinking the budget is for all thinking of a turn and may exceed max_tokens."""
    thinking, most = body.get("thinking"), body.get("max_tokens")
    budget = thinking.get("budget_tokens") if is_object(thinking) and thinking.get("type") == "enabled" else None
    interleaved = _INTERLEAVED in betas and body.get("tools")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most and not interleaved:
        return _error(_BUDGET)
    return None


def _drop_null_type(tool: object) -> object:
    """Return the tool without a null type, which means the default."""
    if not is_object(tool) or "type" not in tool or tool["type"] is not None:
        return tool
    return {key: value for key, value in tool.items() if key != "type"}


def validate(body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    betas = http_request.headers.get("anthropic-beta", "")
    if is_list(body.get("tools")):
        body = {**body, "tools": [_drop_null_type(tool) for tool in body["tools"]]}
    for mismatch in find_mismatches(_SPEC, body):
        return _mismatch_error(mismatch, body)
    unknown_key = next((name for name in body if name not in MEMBERS), None)
    if unknown_key is not None:
        return _error(f"{unknown_key}: Extra inputs are not permitted")
    if not body.get("messages") and not is_object(body.get("thread")):
        return _error("messages: at least one message is required")
    return _validate_roles(body) or _validate_blocks(body) or _validate_tools(body) or _validate_budget(body, betas)
