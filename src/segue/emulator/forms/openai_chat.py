"""Body validation of OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.form import ANY, BOOLEAN, TEXT, Fault, either, entries, faults, maybe, members, text
from segue.conformance.form import chosen as by
from segue.emulator.forms.chat import OBJECT, chosen_tool, messages, settings, tools
from segue.emulator.forms.openai_words import bad_function, functions, told, unknown
from segue.emulator.wording.openai_style import choices
from segue.emulator.wording.openai_style import either as listed
from segue.wire.base import ApiError

__all__ = ["FORM", "MEMBERS", "PARTS", "refused", "unreadable"]

_TEXT = members({"text": TEXT})
# All content parts, in the order of the service's error text.
PARTS = {
    "text": _TEXT,
    "image_url": members({"image_url": members({"url": TEXT}, detail=maybe(TEXT))}),
    "input_audio": members({"input_audio": members({"data": TEXT, "format": TEXT})}),
    "refusal": members({"refusal": TEXT}),
    "audio": OBJECT,
    "file": members({"file": OBJECT}),
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
_NAMED = members({"name": TEXT})
_TOOL_CHOICE = either(
    text("none", "auto", "required"),
    by(
        "type",
        {
            "allowed_tools": members({"allowed_tools": OBJECT}),
            "function": members({"function": _NAMED}),
            "custom": members({"custom": _NAMED}),
        },
    ),
)
MEMBERS = {
    **settings(),
    "messages": messages(_ROLES),
    "tools": tools(custom=members({"custom": _NAMED})),
    "tool_choice": maybe(_TOOL_CHOICE),
    "audio": maybe(OBJECT),
    "function_call": ANY,
    "functions": maybe(entries(_NAMED)),
    "modalities": maybe(entries(text("text", "audio"))),
    "moderation": maybe(OBJECT),
    "prediction": maybe(OBJECT),
    "prompt_cache_key": maybe(TEXT),
    "prompt_cache_options": maybe(OBJECT),
    "prompt_cache_retention": maybe(TEXT),
    "reasoning_effort": maybe(TEXT),
    "safety_identifier": maybe(TEXT),
    "service_tier": maybe(TEXT),
    "store": maybe(BOOLEAN),
    "verbosity": maybe(TEXT),
    "web_search_options": maybe(OBJECT),
}
FORM = members(None, **MEMBERS)
_IMAGE = (
    "Image URLs are only allowed for messages with role 'user', but this message with role '{}' contains an image URL."
)
_WITHOUT = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."


def _part(fault: Fault, body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for a part of an unknown type or not allowed for the role."""
    if fault.wrong != "choice" or "].content[" not in fault.path:
        return None
    if fault.value not in PARTS:
        return choices(fault.path, fault.value, tuple(PARTS))
    if fault.value != "image_url":
        return None
    where = fault.path.partition(".")[0]
    role = body["messages"][int(where.removeprefix("messages[").removesuffix("]"))]["role"]
    return ApiError(400, f"Invalid '{where}'. {_IMAGE.format(role)}", code="invalid_value", param=where)


def unreadable(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for malformed messages, which all servers of this API reject."""
    shape = members(messages=messages(dict.fromkeys(_ROLES)))
    return next((told(fault) for fault in faults(shape, body)), None)


def refused(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_keys = [name for name in body if name not in MEMBERS]
    if unknown_keys:
        return unknown(unknown_keys)
    for fault in faults(FORM, body):
        return _part(fault, body) or told(fault)
    for path, function in functions(body):
        if function.get("parameters") is not None:
            error = bad_function(f"{path}.parameters", function.get("name"), function["parameters"])
            if error is not None:
                return error
    if body.get("tool_choice") is not None and not body.get("tools"):
        return ApiError(400, _WITHOUT, param="tool_choice")
    undeclared = chosen_tool(body)
    if undeclared is not None:
        found = f"no tool named {listed([undeclared])} was specified in the 'tools' parameter."
        message = f"Invalid value for 'tool_choice': {found}"
        return ApiError(400, message, param="tool_choice")
    return None
