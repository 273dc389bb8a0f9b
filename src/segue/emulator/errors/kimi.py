"""The error texts of Moonshot: a message and a type, with positions counted from 0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from segue.conformance.kimi import SPEC
from segue.conformance.values import text_or_empty
from segue.emulator.errors import openai_chat
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, RuleError, StandardErrors, member
from segue.emulator.errors.openai_style import error_with_values, find_message, unanswered_call_ids
from segue.emulator.errors.tool_declarations import find_function_error, undeclared_choice
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import Mismatch, find_mismatches
from segue.wire.base import ApiError

_UNANSWERED = openai_chat.UNANSWERED.replace("An", "an", 1)
_NAME = "function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes"
_K3_NAME = (
    "Kimi K3 tool messages need a resolvable tool name: carry `tool`/`name`, or match a preceding assistant tool_call "
    "by order."
)


def _formatted_error(template: str) -> ErrorBuilder:
    """Build an error from a template with position and role of the message and the value at the path."""

    def build(broken: BrokenRule) -> str:
        role, value = text_or_empty(find_message(broken).get("role")), text_or_empty(broken.value)
        return template.format(index=broken.message_index, role=role, value=value)

    return error_with_values(build)


def _missing_results_message(broken: BrokenRule) -> str:
    if "function_call" in broken.steps:
        return f"Invalid request: function_call is not supported in the message at position {broken.message_index}"
    return _UNANSWERED + unanswered_call_ids(broken)


def _orphan_result_message(broken: BrokenRule) -> str:
    if broken.steps[-1:] == ("role",):
        return f"Invalid request: unsupported role 'function' in the message at position {broken.message_index}"
    return f"tool_call_id {text_or_empty(find_message(broken).get('tool_call_id'))} is not found"


def _part_message(broken: BrokenRule) -> str:
    part_type = text_or_empty(member(broken.value, "type"))
    role = text_or_empty(find_message(broken).get("role"))
    return f"Invalid request: unsupported content type '{part_type}' in message with role '{role}'"


def _type_message(broken: BrokenRule) -> str:
    noun = "tool" if broken.steps[:1] == ("tools",) else "tool call"
    return f"Invalid request: unsupported {noun} type '{text_or_empty(broken.value)}'"


_EMPTY = "Invalid request: the message at position {index} with role '{role}' must not be empty"

_RULES: dict[str, RuleError] = {
    "KIM-01": _formatted_error("Invalid request: tool_call id is empty in the message at position {index}"),
    "KIM-02": error_with_values(_missing_results_message),
    "KIM-03": error_with_values(_orphan_result_message),
    "KIM-04": _formatted_error(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
    ),
    "KIM-05": _formatted_error(_EMPTY),
    "KIM-06": ApiError(400, "Invalid request: text content is empty"),
    "KIM-08": ApiError(400, _K3_NAME),
    "KIM-09": error_with_values(lambda f: f"Invalid request: {f.path} has an invalid type"),
    **dict.fromkeys(
        ("OAI-CHAT-05", "OAI-CHAT-06"), _formatted_error("Invalid request: duplicate tool_call_id {value}")
    ),
    "OAI-CHAT-07": _formatted_error("Invalid request: tool_calls must not be empty in the message at position {index}"),
    "OAI-CHAT-08": ApiError(400, f"Invalid request: {_NAME}"),
    "OAI-CHAT-09": ApiError(400, f"Invalid request: {_NAME}"),
    "OAI-CHAT-10": _formatted_error(
        "Invalid request: function.arguments must be a string in the message at position {index}"
    ),
    "OAI-CHAT-11": _formatted_error(_EMPTY),
    "OAI-CHAT-12": error_with_values(_part_message),
    "OAI-CHAT-13": _formatted_error("Invalid request: unknown field is_error in the message at position {index}"),
    "OAI-CHAT-21": error_with_values(_type_message),
}


# ----------------------------------------------- what is checked before the conversation: the exact texts are not known

_KINDS = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "list": "a list"}
_MESSAGE = re.compile(r"messages\[(\d+)\]")


def _error(message: str) -> ApiError:
    return ApiError(400, f"Invalid request: {message}")


def _mismatch_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError:
    found = _MESSAGE.match(mismatch.path)
    at = int(found[1]) if found else 0
    match mismatch.kind:
        case "choice" if mismatch.path.endswith(".role"):
            return _error(f"unsupported role '{mismatch.value}' in the message at position {at}")
        case "choice" if found:
            role = body["messages"][at]["role"]
            return _error(f"unsupported content type '{mismatch.value}' in message with role '{role}'")
        case "choice":
            return _error(f"unsupported tool type '{mismatch.value}'")
        case "missing":
            return _error(f"{mismatch.path} is required")
        case "short" | "long":
            return _error(f"invalid {mismatch.path}: {mismatch.value}")
        case _ if mismatch.spec.any_of:
            return _error(f"{mismatch.path} must be a string or a list")
        case _:
            return _error(f"{mismatch.path} must be {_KINDS.get(mismatch.spec.kind, 'an object')}")


def validate_body(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for mismatch in find_mismatches(SPEC, body):
        return _mismatch_error(mismatch, body)
    if body.get("messages") == []:
        return _error("messages must not be empty")
    error = find_function_error(body)
    if error is not None:
        return _error(error.message[:1].lower() + error.message[1:])
    undeclared = undeclared_choice(body)
    return None if undeclared is None else _error(f"tool_choice: tool {undeclared} is not found in tools")


# -------------------------------------------------------------------------------------------- errors not about the body


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"url not found: {method} {path}", kind="url.not_found")


def _no_model(model: str) -> ApiError:
    return ApiError(404, f"Not found the model {model} or Permission denied", kind="resource_not_found_error")


ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=ApiError(401, "Invalid Authentication", kind="invalid_authentication_error"),
        bad_key=ApiError(401, "Invalid Authentication", kind="invalid_authentication_error"),
        bad_json=lambda _: _error("failed to parse the request body as JSON"),
        missing_field=lambda name, _request, _body: _error(f"{name} is required"),
        no_route=_no_route,
        no_model=_no_model,
        rate_limited=ApiError(
            429,
            "Your account request reached organization max RPM: 3, please try again after 1 seconds",
            kind="rate_limit_reached_error",
        ),
        server_error=ApiError(500, "Internal Server Error", kind="server_error"),
        context_length=_error("Your request exceeded model token limit: 262144 (requested: 291351)"),
        no_credit=ApiError(
            429,
            "Your account is suspended due to insufficient balance, please recharge your account or check your plan "
            "and billing details",
            kind="exceeded_current_quota_error",
        ),
        overloaded=ApiError(
            429, "The engine is currently overloaded, please try again later", kind="engine_overloaded_error"
        ),
    ),
    rule_order=(
        *("OAI-CHAT-10", "OAI-CHAT-07", "OAI-CHAT-21", "OAI-CHAT-08", "OAI-CHAT-09", "OAI-CHAT-12", "KIM-06"),
        *("KIM-05", "OAI-CHAT-11", "KIM-01"),
    ),
    validate=validate_body,
)
