"""The error texts of Anthropic Messages.

The schema is checked first and reports only its first error, in pydantic's format
(`messages.1.content.0.tool_use.id: Field required`) with the type of each block in the path. Pairing and thinking have
their own texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from segue.conformance.anthropic.content import KEYS
from segue.conformance.values import is_object
from segue.emulator.wording.anthropic_thinking import THINKING, Differs, bound_elsewhere
from segue.emulator.wording.anthropic_turns import TURNS, block_of, refused, spot, whole
from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.wire.base import ApiError

__all__ = ["RULES", "WORDS", "Differs", "bound_elsewhere"]

_LAWFUL_NAME = re.compile("[a-zA-Z0-9_-]{1,128}")
Says = Callable[[Fault, Any], str]

_MISSING = "Field required"
_TEXT = "Input should be a valid string"
_LIST = "Input should be a valid list"
_OBJECT = "Input should be a valid dictionary"
_BLOCK = "Input should be a valid dictionary or object to extract fields from"
_IN_RESULTS = ("document", "image", "search_result", "text", "tool_reference")
_NOT_IN_MESSAGES = {"browser_state", "fallback", "mcp_tool_listing", "tool_reference", "web_search_result"}
_IN_MESSAGES = tuple(sorted(KEYS.keys() - _NOT_IN_MESSAGES))

_EMPTY = "text content blocks must be non-empty"
_BLANK = "text content blocks must contain non-whitespace text"
_ALL_SAY = "all messages must have non-empty content except for the optional final assistant message"
_ALLOWED = 'Allowed roles are "user" or "assistant".'
_NO_SYSTEM = 'The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
_ON_TOOLS = "For instructions on how to use tools, see https://docs.anthropic.com/en/docs/tool-use"
_NO_TOOLS = "Requests which have `tool_use` or `tool_result` blocks in the conversation must define `tools`."


# ------------------------------------------------------------------------------------------------------- what it reads


def _field(wrong_type: str, otherwise: str | Says) -> Word:
    """Builds an error at the field: missing, of a wrong type, or else this message."""

    def word(fault: Fault) -> ApiError:
        return refused(f"{spot(fault)}: {_of_field(fault, wrong_type, otherwise)}")

    return word


def _of_field(fault: Fault, wrong_type: str, otherwise: str | Says) -> str:
    value = fault.value
    *above, last = fault.steps or ("",)
    holder = fault.at(*above)
    if is_object(holder) and last not in holder:
        return _MISSING
    expected_type = {_TEXT: str, _LIST: list | str, _OBJECT: Mapping}.get(wrong_type, object)
    if not isinstance(value, expected_type):
        return wrong_type
    return otherwise if isinstance(otherwise, str) else otherwise(fault, value)


def _pattern(pattern: str) -> str:
    return f"String should match pattern '{pattern}'"


def _name(_: Fault, name: Any) -> str:
    if not name:
        return "String should have at least 1 character"
    if len(name) > 128:
        return "String should have at most 128 characters"
    # Older deployments have half of it.
    longest = 64 if _LAWFUL_NAME.fullmatch(name) else 128
    return _pattern(f"^[a-zA-Z0-9_-]{{1,{longest}}}$")


def _tags(fault: Fault, expected: tuple[str, ...]) -> str:
    tag = fault.at(*fault.steps, "type")
    known = ", ".join(f"'{name}'" for name in expected)
    return f"Input tag '{tag}' found using 'type' does not match any of the expected tags: {known}"


def _keys(fault: Fault) -> ApiError:
    """ANT-12: a block without a type or with an invalid one, or an unknown key."""
    *above, last = fault.steps or ("",)
    block = fault.at(*above)
    if last != "type":
        return refused(f"{spot(fault)}: Extra inputs are not permitted")
    if not is_object(block) or "type" not in block:
        return refused(f"{fault.dotted}: {_MISSING}")
    outer = Fault(fault.body, (whole(fault.violations[0], above),))
    expected = _IN_RESULTS if len(above) > 4 else _IN_MESSAGES if "messages" in above else ("text",)
    return refused(f"{spot(outer)}: {_tags(outer, expected)}")


def _text(fault: Fault) -> ApiError:
    """ANT-13"""
    message = _of_field(fault, _TEXT, "")
    return refused(f"{spot(fault)}: {message}" if message else f"messages: {_EMPTY}")


def _user_content(fault: Fault) -> ApiError:
    """ANT-15"""
    text = _of_field(fault, _LIST, "")
    message = f"messages.{fault.steps[1] if len(fault.steps) > 1 else 0}"
    return refused(f"{fault.dotted}: {text}" if text else f"{message}: user messages must have non-empty content")


def _assistant_content(fault: Fault) -> ApiError:
    """ANT-16"""
    message = _of_field(fault, _LIST, "")
    return refused(f"{fault.dotted}: {message}" if message else f"{fault.dotted.removesuffix('.content')}: {_ALL_SAY}")


def _result_content(fault: Fault) -> ApiError:
    """ANT-18"""
    match fault.steps:
        case (*_, "is_error"):
            return refused(f"{spot(fault)}: Input should be a valid boolean")
        case (*_, "content"):
            return refused(f"{spot(fault)}: {_LIST}")
        case _ if not is_object(fault.value):
            return refused(f"{spot(fault)}: {_BLOCK}")
        case (*above, "content", int()) if fault.value.get("type") in _IN_RESULTS:
            place = spot(Fault(fault.body, (whole(fault.violations[0], [*above, "content"]),)))
            return refused(f"{place.removesuffix('.content')}: all content must be type `text` if `is_error` is true")
        case _:
            return refused(f"{spot(fault)}: {_tags(fault, _IN_RESULTS)}")


def _system(fault: Fault) -> ApiError:
    """ANT-19"""
    value = fault.value
    if isinstance(value, str):
        return refused(f"system: {_BLANK if value else _EMPTY}")
    if fault.steps == ("system",):
        return refused(f"system: {_LIST}")
    message = _of_field(fault, _TEXT, _TEXT) if fault.steps[-1:] == ("text",) else _BLOCK
    return refused(f"{fault.dotted}: {message}")


def _role(fault: Fault) -> ApiError:
    """ANT-20"""
    role = fault.value if isinstance(fault.value, str) else ""
    rest = {"system": _NO_SYSTEM, "tool": f"{_ALLOWED} {_ON_TOOLS}"}.get(role, _ALLOWED)
    return refused(f'messages: Unexpected role "{role}". {rest}')


def _schema(fault: Fault) -> ApiError:
    """ANT-36"""
    match fault.steps:
        case ("tools",):
            return refused(_NO_TOOLS if fault.value in (None, []) else f"tools: {_LIST}")
        case (*_, "type"):
            return _field("", "Input should be 'object'")(fault)
        case _:
            return _field(_OBJECT, _OBJECT)(fault)


def _sealed(fault: Fault) -> ApiError:
    """ANT-32"""
    message = "" if fault.steps[-1:] != ("encrypted_content",) else _of_field(fault, _TEXT, "")
    place, _ = block_of(fault)
    return refused(
        f"{spot(fault)}: {message}" if message else f"{place}: Invalid `encrypted_content` in `search_result` block"
    )


def _says(message: str) -> Word:
    return lambda _: refused(message)


# ---------------------------------------------------------------------------------------------------------- threads

# Not in the rulebook: errors about threads. The code is in the error's details.
THREAD_NOT_FOUND = "thread_not_found"
THREAD_ALREADY_CONTINUED = "thread_already_continued"
THREAD_FIELDS = "thread_fields"


def _thread(code: str, status: int, message: str) -> Word:
    kind = "not_found_error" if status == 404 else "invalid_request_error"
    return lambda _: ApiError(status, message, kind, details=({"error_code": code},))


RULES: Mapping[str, Word] = {
    THREAD_NOT_FOUND: _thread(THREAD_NOT_FOUND, 404, "No usable Thread state was found for `previous_message_id`."),
    THREAD_ALREADY_CONTINUED: _thread(
        THREAD_ALREADY_CONTINUED,
        400,
        "The response that `previous_message_id` names has already been continued, and each response can be continued "
        "only once.",
    ),
    THREAD_FIELDS: lambda fault: refused(f"{fault.path}: not permitted when continuing a thread"),
    "ANT-01": _field(_TEXT, _pattern("^[a-zA-Z0-9_-]+$")),
    "ANT-02": _field(_TEXT, _pattern("^srvtoolu_[a-zA-Z0-9_]+$")),
    "ANT-11": _field(_OBJECT, _OBJECT),
    "ANT-12": _keys,
    "ANT-13": _text,
    "ANT-14": _says(f"messages: {_BLANK}"),
    "ANT-15": _user_content,
    "ANT-16": _assistant_content,
    "ANT-18": _result_content,
    "ANT-19": _system,
    "ANT-20": _role,
    "ANT-22": _says(
        "This model does not support assistant message prefill. The conversation must end with a user message."
    ),
    "ANT-23": _says("messages: final assistant content cannot end with trailing whitespace"),
    "ANT-30": _says("Thinking may not be enabled when tool_choice forces tool use."),
    "ANT-32": _sealed,
    "ANT-33": _says("RequestWebSearchResultBlock.encrypted_content: Field required"),
    "ANT-34": _field(_TEXT, _name),
    "ANT-35": _says("tools: Tool names must be unique."),
    "ANT-36": _schema,
    **TURNS,
    **THINKING,
}


# ------------------------------------------------------------------------------------------------- beside what it reads

_LIMITED = (
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute. For details, refer "
    "to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce "
    "the prompt length or the maximum tokens requested, or try again later. You may also contact sales at "
    "https://claude.com/contact-sales to discuss your options for a rate limit increase."
)

WORDS = Words(
    RULES,
    Troubles(
        no_key=ApiError(401, "x-api-key header is required", "authentication_error"),
        bad_key=ApiError(401, "invalid x-api-key", "authentication_error"),
        bad_json=refused("The request body is not valid JSON: unexpected character: line 1 column 1 (char 0)"),
        no_route=lambda _method, _path: ApiError(404, "Not Found", "not_found_error"),
        wrong_method=lambda _method, _path: ApiError(405, "Method Not Allowed"),
        no_model=lambda model: ApiError(404, f"model: {model}", "not_found_error"),
        rate_limited=ApiError(429, _LIMITED, "rate_limit_error"),
        failed=ApiError(500, "Internal server error", "api_error"),
        overloaded=ApiError(529, "Overloaded", "overloaded_error"),
        largest=32 * 2**20,
        too_large=ApiError(413, "Request exceeds the maximum size", "request_too_large"),
    ),
    first=(
        # the schema, then single messages, then conflicting settings
        *("ANT-20", "ANT-12", "ANT-01", "ANT-02", "ANT-11", "ANT-18", "ANT-33", "ANT-34", "ANT-36", "ANT-16"),
        *("ANT-15", "ANT-13", "ANT-14", "ANT-19", "ANT-35", "ANT-30", "ANT-22", "ANT-23"),
        # the conversation
        *("ANT-03", "ANT-10", "ANT-09", "ANT-07", "ANT-08", "ANT-04", "ANT-05"),
        # signatures
        *("ANT-24", "ANT-27", "ANT-31", "ANT-26", "ANT-25", "ANT-28", "ANT-32"),
    ),
)
