"""The error texts of Moonshot: a message and a type, with positions counted from 0."""

from __future__ import annotations

from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.openai_style import ask, call_ids_wanting, found_in, index_of, message_of, plain, said
from segue.wire.base import ApiError

__all__ = ["WORDS"]

_UNANSWERED = (
    "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: "
)
_NAME = "function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes"
_K3_NAME = (
    "Kimi K3 tool messages need a resolvable tool name: carry `tool`/`name`, or match a preceding assistant tool_call "
    "by order."
)


def _asked(make: str) -> Word:
    """Builds an error from a template with position and role of the message and the value at the path."""

    def word(fault: Fault) -> str:
        role, value = said(message_of(fault).get("role")), said(fault.value)
        return make.format(index=index_of(fault), role=role, value=value)

    return ask(word)


def _unanswered(fault: Fault) -> str:
    if "function_call" in fault.steps:
        return f"Invalid request: function_call is not supported in the message at position {index_of(fault)}"
    return _UNANSWERED + call_ids_wanting(fault)


def _unasked(fault: Fault) -> str:
    if fault.steps[-1:] == ("role",):
        return f"Invalid request: unsupported role 'function' in the message at position {index_of(fault)}"
    return f"tool_call_id {said(message_of(fault).get('tool_call_id'))} is not found"


def _part(fault: Fault) -> str:
    sort = said(found_in(fault.value, "type"))
    role = said(message_of(fault).get("role"))
    return f"Invalid request: unsupported content type '{sort}' in message with role '{role}'"


def _sort(fault: Fault) -> str:
    at = "tool" if fault.steps[:1] == ("tools",) else "tool call"
    return f"Invalid request: unsupported {at} type '{said(fault.value)}'"


_EMPTY = "Invalid request: the message at position {index} with role '{role}' must not be empty"

_RULES: dict[str, Word] = {
    "KIM-01": _asked("Invalid request: tool_call id is empty in the message at position {index}"),
    "KIM-02": ask(_unanswered),
    "KIM-03": ask(_unasked),
    "KIM-04": _asked(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
    ),
    "KIM-05": _asked(_EMPTY),
    "KIM-06": plain("Invalid request: text content is empty"),
    "KIM-08": plain(_K3_NAME),
    "OAI-CHAT-05": _asked("Invalid request: duplicate tool_call_id {value}"),
    "OAI-CHAT-06": _asked("Invalid request: duplicate tool_call_id {value}"),
    "OAI-CHAT-07": _asked("Invalid request: tool_calls must not be empty in the message at position {index}"),
    "OAI-CHAT-08": plain(f"Invalid request: {_NAME}"),
    "OAI-CHAT-09": plain(f"Invalid request: {_NAME}"),
    "OAI-CHAT-10": _asked("Invalid request: function.arguments must be a string in the message at position {index}"),
    "OAI-CHAT-11": _asked(_EMPTY),
    "OAI-CHAT-12": ask(_part),
    "OAI-CHAT-13": _asked("Invalid request: unknown field is_error in the message at position {index}"),
    "OAI-CHAT-21": ask(_sort),
}


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"url not found: {method} {path}", kind="url.not_found")


def _no_model(model: str) -> ApiError:
    return ApiError(404, f"Not found the model {model} or Permission denied", kind="resource_not_found_error")


WORDS = Words(
    _RULES,
    Troubles(
        no_key=ApiError(401, "Invalid Authentication", kind="invalid_authentication_error"),
        bad_key=ApiError(401, "Invalid Authentication", kind="invalid_authentication_error"),
        bad_json=ApiError(400, "Invalid request: failed to parse the request body as JSON"),
        no_route=_no_route,
        no_model=_no_model,
        rate_limited=ApiError(
            429,
            "Your account request reached organization max RPM: 3, please try again after 1 seconds",
            kind="rate_limit_reached_error",
        ),
        failed=ApiError(500, "Internal Server Error", kind="server_error"),
        overloaded=ApiError(
            429, "The engine is currently overloaded, please try again later", kind="engine_overloaded_error"
        ),
    ),
    first=(
        *("OAI-CHAT-10", "OAI-CHAT-07", "OAI-CHAT-21", "OAI-CHAT-08", "OAI-CHAT-09", "OAI-CHAT-12", "KIM-06"),
        *("KIM-05", "OAI-CHAT-11", "KIM-01"),
    ),
)
