"""Body validation of the Responses API. The conformance rules check items and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.openai_responses.types import MEMBERS, SPEC
from segue.conformance.values import is_list, is_object
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.openai_errors import mismatch_error, validate_parameters
from segue.specs.types import find_mismatches
from segue.wire.base import ApiError

# Options of Chat Completions: the error text names the new place.
_MOVED = {"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_MOVED_IN = {"response_format": "text.format", "reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity"}
_CHECKED_BY_RULES = frozenset({"messages", "system"})


def _unknown_parameter_error(name: str) -> ApiError:
    if name in _MOVED:
        message = (
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{_MOVED[name]}'."
        )
        if name != "messages":
            message += " Try again with the new parameter."
        return ApiError(400, message, code="unsupported_parameter", param=name)
    if name in _MOVED_IN:
        advice = f"In the Responses API, this parameter has moved to '{_MOVED_IN[name]}'."
        message = f"Unsupported parameter: '{name}'. {advice} Try again with the new parameter."
        return ApiError(400, message, code="unsupported_parameter", param=name)
    return ApiError(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def _undeclared_choice(body: Mapping[str, Any]) -> str | None:
    """Return the function or custom tool in tool_choice if it is not declared."""
    choice = body.get("tool_choice")
    if not is_object(choice) or choice.get("type") not in ("function", "custom"):
        return None
    tools = body.get("tools")
    names = [tool.get("name") for tool in (tools if is_list(tools) else ()) if is_object(tool)]
    items = body.get("input")
    has_tool_items = any(
        is_object(item) and item.get("type") in ("additional_tools", "tool_search_output")
        for item in (items if is_list(items) else ())
    )
    name = choice.get("name")
    may_be_declared_elsewhere = (
        has_tool_items
        or body.get("prompt") is not None
        or any(
            is_object(tool) and tool.get("type") in ("namespace", "mcp") for tool in (tools if is_list(tools) else ())
        )
    )
    return name if isinstance(name, str) and name not in names and not may_be_declared_elsewhere else None


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_key = next((name for name in body if name not in MEMBERS and name not in _CHECKED_BY_RULES), None)
    if unknown_key is not None:
        return _unknown_parameter_error(unknown_key)
    for mismatch in find_mismatches(SPEC, body):
        return mismatch_error(mismatch)
    items = body.get("input")
    if (
        is_list(items)
        and not items
        and not any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))
    ):
        message = (
            "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        return ApiError(400, message, code="empty_array", param="input")
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") == "function" and tool.get("parameters") is not None:
            error = validate_parameters(f"tools[{index}].parameters", tool.get("name"), tool["parameters"])
            if error is not None:
                return error
    undeclared = _undeclared_choice(body)
    if undeclared is not None:
        message = f"Tool choice '{undeclared}' not found in 'tools' parameter."
        return ApiError(400, message, param="tool_choice")
    return None
