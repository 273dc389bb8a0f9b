"""Body validation of the Responses API. The conformance rules check items and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import (
    ANY,
    BOOLEAN,
    TEXT,
    chosen,
    either,
    entries,
    faults,
    maybe,
    members,
    sized,
    text,
)
from segue.conformance.openai_responses.tools import TOOL_TYPES
from segue.conformance.values import is_list, is_object
from segue.emulator.forms.chat import OBJECT
from segue.emulator.forms.openai_words import bad_function, told
from segue.wire.base import ApiError

__all__ = ["FORM", "MEMBERS", "refused"]

_FUNCTION = members({"name": TEXT}, parameters=ANY, strict=maybe(BOOLEAN), description=maybe(TEXT))
_TOOLS = {**dict.fromkeys(sorted(TOOL_TYPES), OBJECT), "function": _FUNCTION, "custom": members({"name": TEXT})}
MEMBERS = {
    name: maybe(form)
    for name, form in {
        "access_programs": OBJECT,
        "background": BOOLEAN,
        # Not in the SDK, but Codex sends it.
        "client_metadata": OBJECT,
        "context_management": entries(OBJECT),
        "conversation": either(TEXT, OBJECT),
        "image": OBJECT,
        "include": entries(TEXT),
        "input": ANY,
        "instructions": ANY,
        "max_output_tokens": sized("integer", 1),
        "max_tool_calls": sized("integer", 1),
        "metadata": OBJECT,
        "model": TEXT,
        "moderation": OBJECT,
        "parallel_tool_calls": BOOLEAN,
        "previous_response_id": TEXT,
        "prompt": OBJECT,
        "prompt_cache_key": TEXT,
        "prompt_cache_options": OBJECT,
        "prompt_cache_retention": TEXT,
        "reasoning": members(effort=maybe(TEXT), summary=maybe(TEXT)),
        "safety_identifier": TEXT,
        "service_tier": TEXT,
        "store": BOOLEAN,
        "stream": BOOLEAN,
        "stream_options": OBJECT,
        "temperature": sized("number", 0, 2),
        "text": OBJECT,
        "tool_choice": either(text("none", "auto", "required"), members({"type": TEXT})),
        "tools": entries(chosen("type", _TOOLS)),
        "top_logprobs": sized("integer", 0, 20),
        "top_p": sized("number", 0, 1),
        "truncation": text("auto", "disabled"),
        "user": TEXT,
    }.items()
}
FORM = members(None, **MEMBERS)
# Options of Chat Completions: the error text names the new place.
_MOVED = {"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_MOVED_IN = {"response_format": "text.format", "reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity"}
_LEFT_TO_THE_JUDGE = frozenset({"messages", "system"})


def _unknown(name: str) -> ApiError:
    if name in _MOVED:
        message = (
            f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{_MOVED[name]}'."
        )
        if name != "messages":
            message += " Try again with the new parameter."
        return ApiError(400, message, code="unsupported_parameter", param=name)
    if name in _MOVED_IN:
        moved = f"In the Responses API, this parameter has moved to '{_MOVED_IN[name]}'."
        message = f"Unsupported parameter: '{name}'. {moved} Try again with the new parameter."
        return ApiError(400, message, code="unsupported_parameter", param=name)
    return ApiError(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def _named(body: Mapping[str, Any]) -> str | None:
    """Returns the function or custom tool in tool_choice if it is not declared."""
    choice = body.get("tool_choice")
    if not is_object(choice) or choice.get("type") not in ("function", "custom"):
        return None
    found = body.get("tools")
    names = [tool.get("name") for tool in (found if is_list(found) else ()) if is_object(tool)]
    items = body.get("input")
    elsewhere = any(
        is_object(item) and item.get("type") in ("additional_tools", "tool_search_output")
        for item in (items if is_list(items) else ())
    )
    name = choice.get("name")
    kept = (
        elsewhere
        or body.get("prompt") is not None
        or any(
            is_object(tool) and tool.get("type") in ("namespace", "mcp") for tool in (found if is_list(found) else ())
        )
    )
    return name if isinstance(name, str) and name not in names and not kept else None


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_key = next((name for name in body if name not in MEMBERS and name not in _LEFT_TO_THE_JUDGE), None)
    if unknown_key is not None:
        return _unknown(unknown_key)
    for fault in faults(FORM, body):
        return told(fault)
    given = body.get("input")
    if (
        is_list(given)
        and not given
        and not any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))
    ):
        message = (
            "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        return ApiError(400, message, code="empty_array", param="input")
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("type") == "function" and tool.get("parameters") is not None:
            error = bad_function(f"tools[{index}].parameters", tool.get("name"), tool["parameters"])
            if error is not None:
                return error
    undeclared = _named(body)
    if undeclared is not None:
        message = f"Tool choice '{undeclared}' not found in 'tools' parameter."
        return ApiError(400, message, param="tool_choice")
    return None
