"""Body validation of OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.emulator.errors.openai_style import invalid_choice_error, join_and
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation.chat_specs import OBJECT, messages_spec, option_specs, tools_spec, undeclared_choice
from segue.emulator.validation.openai_errors import (
    find_functions,
    mismatch_error,
    unknown_arguments_error,
    validate_parameters,
)
from segue.specs.types import (
    ANY,
    BOOLEAN,
    STRING,
    Mismatch,
    any_of,
    enum_of,
    find_mismatches,
    list_of,
    nullable,
    object_of,
    tagged,
)
from segue.wire.base import ApiError

_TEXT = object_of({"text": STRING})
# All content parts, in the order of the service's error text.
PARTS = {
    "text": _TEXT,
    "image_url": object_of({"image_url": object_of({"url": STRING}, detail=nullable(STRING))}),
    "input_audio": object_of({"input_audio": object_of({"data": STRING, "format": STRING})}),
    "refusal": object_of({"refusal": STRING}),
    "audio": OBJECT,
    "file": object_of({"file": OBJECT}),
}
_BY_ROLE = {
    "system": ("text",),
    "assistant": ("text", "refusal", "audio"),
    "user": ("text", "image_url", "input_audio", "file"),
    "function": None,
    "tool": None,
    "developer": ("text",),
}
_ROLES = {role: None if names is None else {name: PARTS[name] for name in names} for role, names in _BY_ROLE.items()}
_NAMED = object_of({"name": STRING})
_TOOL_CHOICE = any_of(
    enum_of("none", "auto", "required"),
    tagged(
        "type",
        {
            "allowed_tools": object_of({"allowed_tools": OBJECT}),
            "function": object_of({"function": _NAMED}),
            "custom": object_of({"custom": _NAMED}),
        },
    ),
)
MEMBERS = {
    **option_specs(),
    "messages": messages_spec(_ROLES),
    "tools": tools_spec(custom=object_of({"custom": _NAMED})),
    "tool_choice": nullable(_TOOL_CHOICE),
    "audio": nullable(OBJECT),
    "function_call": ANY,
    "functions": nullable(list_of(_NAMED)),
    "modalities": nullable(list_of(enum_of("text", "audio"))),
    "moderation": nullable(OBJECT),
    "prediction": nullable(OBJECT),
    "prompt_cache_key": nullable(STRING),
    "prompt_cache_options": nullable(OBJECT),
    "prompt_cache_retention": nullable(STRING),
    "reasoning_effort": nullable(STRING),
    "safety_identifier": nullable(STRING),
    "service_tier": nullable(STRING),
    "store": nullable(BOOLEAN),
    "verbosity": nullable(STRING),
    "web_search_options": nullable(OBJECT),
}
SPEC = object_of(None, **MEMBERS)
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
    spec = object_of(messages=messages_spec(dict.fromkeys(_ROLES)))
    return next((mismatch_error(mismatch) for mismatch in find_mismatches(spec, body)), None)


def validate(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_keys = [name for name in body if name not in MEMBERS]
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
