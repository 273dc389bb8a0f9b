"""Body validation of OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.chat_types import PARTS, ROLES, SPEC, messages_spec
from segue.emulator.errors.openai_style import invalid_choice_error, join_and
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.openai_errors import (
    find_functions,
    mismatch_error,
    unknown_arguments_error,
    validate_parameters,
)
from segue.emulator.validation.tool_choice import undeclared_choice
from segue.specs.types import Mismatch, find_mismatches, object_of
from segue.wire.base import ApiError

_IMAGE = (
    "Image URLs are only allowed for messages with role 'user', but this message with role '{}' contains an image URL."
)
_WITHOUT = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."


def _part_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError | None:
    """Return the error for a part of an unknown type or not allowed for the role."""
    if mismatch.kind != "choice" or "].content[" not in mismatch.path:
        return None
    if mismatch.value not in PARTS:
        return invalid_choice_error(mismatch.path, mismatch.value, tuple(PARTS))
    if mismatch.value != "image_url":
        return None
    where = mismatch.path.partition(".")[0]
    role = body["messages"][int(where.removeprefix("messages[").removesuffix("]"))]["role"]
    return ApiError(400, f"Invalid '{where}'. {_IMAGE.format(role)}", code="invalid_value", param=where)


def validate_messages(body: Mapping[str, Any]) -> ApiError | None:
    """Return the error for malformed messages, which all servers of this API reject."""
    spec = object_of(messages=messages_spec(dict.fromkeys(ROLES)))
    return next((mismatch_error(mismatch) for mismatch in find_mismatches(spec, body)), None)


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_keys = [name for name in body if name not in SPEC.members]
    if unknown_keys:
        return unknown_arguments_error(unknown_keys)
    for mismatch in find_mismatches(SPEC, body):
        return _part_error(mismatch, body) or mismatch_error(mismatch)
    for path, function in find_functions(body):
        if function.get("parameters") is not None:
            error = validate_parameters(f"{path}.parameters", function.get("name"), function["parameters"])
            if error is not None:
                return error
    if body.get("tool_choice") is not None and not body.get("tools"):
        return ApiError(400, _WITHOUT, param="tool_choice")
    undeclared = undeclared_choice(body)
    if undeclared is not None:
        problem = f"no tool named {join_and([undeclared])} was specified in the 'tools' parameter."
        message = f"Invalid value for 'tool_choice': {problem}"
        return ApiError(400, message, param="tool_choice")
    return None
