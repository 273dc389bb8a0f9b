"""Body validation of the Messages API, with errors in pydantic's format.

The conformance rules check the keys and the content of blocks, calls and results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.anthropic.types import BLOCKS, MEMBERS, SPEC
from segue.conformance.body_types import is_integral_float
from segue.conformance.values import is_list, is_object
from segue.emulator.errors.broken_rule import BrokenRule
from segue.emulator.errors.openai_style import parse_path
from segue.emulator.http_messages import HttpRequest
from segue.emulator.json_values import objects_in
from segue.emulator.validation.json_schema import find_schema_error
from segue.models import parse_model
from segue.specs.types import BOOLEAN, INTEGER, NUMBER, STRING, Mismatch, Spec, find_mismatches
from segue.wire.base import ApiError

_INTERLEAVED = "interleaved-thinking-2025-05-14"
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
    for mismatch in find_mismatches(SPEC, body):
        if is_integral_float(mismatch):
            continue
        return _mismatch_error(mismatch, body)
    unknown_key = next((name for name in body if name not in MEMBERS), None)
    if unknown_key is not None:
        return _error(f"{unknown_key}: Extra inputs are not permitted")
    if not body.get("messages") and not is_object(body.get("thread")):
        return _error("messages: at least one message is required")
    return _validate_roles(body) or _validate_blocks(body) or _validate_tools(body) or _validate_budget(body, betas)
