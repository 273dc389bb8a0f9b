"""The error texts of OpenAI Chat Completions.

Errors come from two layers with different path formats: the schema, which is checked first
(`messages[1].tool_calls[0].id`, `validate_body`), and the checks of the conversation (`messages.[1].role`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.conformance.chat_types import PARTS, ROLES, SPEC, messages_spec
from segue.conformance.values import is_object, text_or_empty
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, StandardErrors, member, parse_path
from segue.emulator.errors.openai_style import (
    NAME_PATTERN,
    OBJECTS,
    TEXT_OR_OBJECTS,
    ValueSpec,
    error_with_values,
    expected_result_index,
    find_message,
    invalid_choice_error,
    is_missing,
    join_and,
    kind_name,
    mismatch_error,
    missing_error,
    schema_error,
    spec_error,
    unanswered_call_ids,
    unknown_parameter_error,
)
from segue.emulator.errors.tool_declarations import find_function_error, undeclared_choice
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import Mismatch, find_mismatches, object_of
from segue.wire.base import ApiError

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
_EFFORT = (
    "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. To use function tools, use "
    "/v1/responses or set reasoning_effort to 'none'."
)
_IMAGE = (
    "Image URLs are only allowed for messages with role 'user', but this message with role '{}' contains an image URL."
)
_WITHOUT_TOOLS = "'tool_choice' is only allowed when 'tools' are specified."
_MESSAGES = object_of(messages=messages_spec(dict.fromkeys(ROLES)))
_NAMED = ValueSpec(minimum=1, maximum=64, pattern=NAME_PATTERN)


def _missing_results_error(broken: BrokenRule) -> ApiError:
    return ApiError(
        400, UNANSWERED + unanswered_call_ids(broken), param=f"messages.[{expected_result_index(broken)}].role"
    )


def _orphan_result_error(broken: BrokenRule) -> ApiError:
    where = f"messages.[{broken.message_index}]"
    if "tool_call_id" not in broken.steps:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        )
        return ApiError(400, text, param=f"{where}.role")
    if not text_or_empty(broken.value):
        text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
    else:
        text = f"Invalid parameter: 'tool_call_id' of '{broken.value}' not found in 'tool_calls' of previous message."
    return ApiError(400, text, param=f"{where}.tool_call_id")


def _first_result_index(broken: BrokenRule) -> int:
    """Return the index of the first tool message of the turn with the same id."""
    first = index = broken.message_index
    while index > 0:
        index -= 1
        message = broken.value_at("messages", index)
        if member(message, "role") == "assistant":
            break
        if member(message, "role") == "tool" and member(message, "tool_call_id") == broken.value:
            first = index
    return first


def _duplicate_result_error(broken: BrokenRule) -> ApiError:
    index = broken.message_index
    both = f"in messages[{_first_result_index(broken)}] and messages[{index}]"
    message = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{text_or_empty(broken.value)}', {both}."
    return ApiError(400, message, param=f"messages.[{index}].tool_call_id")


def _duplicate_id_error(broken: BrokenRule) -> ApiError:
    where = f"messages[{broken.message_index}].tool_calls"
    message = f"Invalid parameter: Duplicate value for 'id' of '{text_or_empty(broken.value)}', in {where}."
    return ApiError(400, message, param=f"messages.[{broken.message_index}].tool_calls")


def _content_error(broken: BrokenRule) -> ApiError:
    if member(broken.value, "type") == "input_audio":
        where = f"messages[{broken.message_index}]"
        message = f"Invalid '{where}'. Content blocks are expected to be either text or image_url type."
        return ApiError(400, message, code="invalid_value", param=where)
    if broken.value is not None:
        return schema_error(broken, ValueSpec(TEXT_OR_OBJECTS, minimum=1))
    message = "Invalid value for 'content': expected a string, got null."
    return ApiError(400, message, param=f"messages.[{broken.message_index}].content")


def _part_error(broken: BrokenRule) -> ApiError:
    part_type = member(broken.value, "type")
    if part_type != "image_url":
        return invalid_choice_error(f"{broken.path}.type", part_type, ("text",))
    return _image_error(broken.message_index, text_or_empty(find_message(broken).get("role")))


def _image_error(index: int, role: str) -> ApiError:
    where = f"messages[{index}]"
    return ApiError(400, f"Invalid '{where}'. {_IMAGE.format(role)}", code="invalid_value", param=where)


def _system_error(broken: BrokenRule) -> ApiError:
    if broken.steps[-1:] != ("role",):
        return _missing_results_error(broken)
    message = f"Unsupported value: '{broken.path}' does not support '{broken.value}' with this model."
    return ApiError(400, message, code="unsupported_value", param=broken.path)


def _tools_error(broken: BrokenRule) -> ApiError:
    if broken.path == "tools":
        return schema_error(broken, ValueSpec(OBJECTS, maximum=128))
    return schema_error(broken, ValueSpec(maximum=1024))


def _type_value_error(broken: BrokenRule) -> ApiError:
    known = ("function", "custom") if broken.steps[-1:] == ("type",) else ()
    return schema_error(broken, ValueSpec(values=known))


def _type_error(broken: BrokenRule) -> ApiError:
    """OAI-CHAT-23. The validation of types reports values out of range."""
    if broken.path == "web_search_options" and is_object(broken.value):
        return ApiError(400, "Web search options not supported with this model.", param=broken.path)
    mismatch = next((each for each in find_mismatches(SPEC, broken.body) if each.path == broken.path), None)
    if mismatch is None or mismatch.kind == "missing":
        return schema_error(broken, ValueSpec())
    if mismatch.kind == "choice":
        return invalid_choice_error(broken.path, broken.value, tuple(mismatch.spec.variants))
    return schema_error(broken, ValueSpec(kind_name(mismatch.spec)))


def _calls_error(broken: BrokenRule) -> ApiError:
    return schema_error(broken, ValueSpec(OBJECTS, minimum=1))


def _name_error(broken: BrokenRule) -> ApiError:
    # An empty name has the text of a string that is too short.
    return schema_error(
        broken, ValueSpec(minimum=1) if is_missing(broken) or not text_or_empty(broken.value) else _NAMED
    )


def _call_id(broken: BrokenRule) -> str:
    return text_or_empty(member(broken.value_at(*broken.steps[:4]), "id"))


_RULES: dict[str, ErrorBuilder] = {
    "OAI-CHAT-01": spec_error(minimum=1, maximum=40),
    "OAI-CHAT-03": _missing_results_error,
    "OAI-CHAT-04": _orphan_result_error,
    "OAI-CHAT-05": _duplicate_result_error,
    "OAI-CHAT-06": _duplicate_id_error,
    "OAI-CHAT-07": _calls_error,
    "OAI-CHAT-08": _name_error,
    "OAI-CHAT-09": spec_error(minimum=1),
    "OAI-CHAT-10": spec_error(),
    "OAI-CHAT-11": _content_error,
    "OAI-CHAT-12": _part_error,
    "OAI-CHAT-13": lambda broken: unknown_parameter_error(broken.path),
    "OAI-CHAT-15": _system_error,
    "OAI-CHAT-16": _tools_error,
    "OAI-CHAT-17": error_with_values(
        lambda f: _EFFORT.format(text_or_empty(f.value_at("model")) or "this model"), param="reasoning_effort"
    ),
    "OAI-CHAT-21": _type_value_error,
    "OAI-CHAT-22": lambda broken: unknown_parameter_error(broken.path),
    "OAI-CHAT-23": _type_error,
    "COMP-09": error_with_values(
        lambda f: f"invalid params, invalid function arguments json string, tool_call_id: {_call_id(f)} (2013)"
    ),
}

# ------------------------------------------------------------------------------ what is checked before the conversation


def _mismatch_error(mismatch: Mismatch, body: Mapping[str, Any]) -> ApiError:
    """Return the error for a mismatch; a part of an unknown type or not allowed for the role has its own."""
    if mismatch.kind == "choice" and "].content[" in mismatch.path:
        if mismatch.value not in PARTS:
            return invalid_choice_error(mismatch.path, mismatch.value, tuple(PARTS))
        if mismatch.value == "image_url":
            index = int(parse_path(mismatch.path)[1])
            return _image_error(index, body["messages"][index]["role"])
    return mismatch_error(mismatch)


def validate_messages(body: Mapping[str, Any]) -> ApiError | None:
    """Return the error for malformed messages, which all servers of this API reject."""
    return next(map(mismatch_error, find_mismatches(_MESSAGES, body)), None)


def validate_body(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    unknown_keys = [name for name in body if name not in SPEC.members]
    if unknown_keys:
        noun = "argument" if len(unknown_keys) == 1 else "arguments"
        return ApiError(400, f"Unrecognized request {noun} supplied: {', '.join(unknown_keys)}")
    for mismatch in find_mismatches(SPEC, body):
        return _mismatch_error(mismatch, body)
    error = find_function_error(body)
    if error is not None:
        return error
    name = undeclared_choice(body)
    problem = "" if name is None else f"no tool named {join_and([name])} was specified in the 'tools' parameter."
    if body.get("tool_choice") is not None and not body.get("tools"):
        problem = _WITHOUT_TOOLS
    return ApiError(400, f"Invalid value for 'tool_choice': {problem}", param="tool_choice") if problem else None


# -------------------------------------------------------------------------------------------- errors not about the body

_HELP = "contact us through our help center at help.openai.com"


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"Invalid URL ({method} {path})")


def no_model_error(model: str) -> ApiError:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return ApiError(404, message, code="model_not_found")


def _wrong_method(method: str, path: str) -> ApiError:
    hint = "Perhaps you meant to use a different HTTP method?"
    return ApiError(405, f"Not allowed to {method} on {path}. (HINT: {hint})")


STANDARD_ERRORS = StandardErrors(
    no_key=ApiError(
        401,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the "
        "API from your browser and are prompted for a username and password. You can obtain an API key from "
        "https://platform.openai.com/account/api-keys.",
    ),
    bad_key=ApiError(
        401,
        "Incorrect API key provided: sk-************************. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
        code="invalid_api_key",
    ),
    bad_json=lambda _: ApiError(
        400,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
        f"figuring out how to fix this, please {_HELP}.)",
    ),
    no_route=_no_route,
    wrong_method=_wrong_method,
    no_model=no_model_error,
    missing_field=lambda name, _request, _body: (
        ApiError(400, "you must provide a model parameter") if name == "model" else missing_error(name)
    ),
    rate_limited=ApiError(
        429,
        "Rate limit reached for requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 1s. "
        "Visit https://platform.openai.com/account/rate-limits to learn more.",
        kind="requests",
        code="rate_limit_exceeded",
    ),
    server_error=ApiError(
        500,
        "The server had an error while processing your request. Sorry about that! You can retry your request, or "
        f"{_HELP} if you keep seeing this error.",
        kind="server_error",
    ),
    context_length=ApiError(
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 136000 tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
        param="messages",
    ),
    no_credit=ApiError(
        429,
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
        kind="insufficient_quota",
        code="insufficient_quota",
    ),
    overloaded=ApiError(
        503,
        "That model is currently overloaded with other requests. You can retry your request, or "
        f"{_HELP} if the error persists.",
        kind="server_error",
    ),
)

ERROR_TEXTS = ErrorTexts(
    _RULES,
    STANDARD_ERRORS,
    rule_order=(
        *("OAI-CHAT-23", "OAI-CHAT-01", "OAI-CHAT-07", "OAI-CHAT-21", "OAI-CHAT-09", "OAI-CHAT-08", "OAI-CHAT-10"),
        *("OAI-CHAT-16", "OAI-CHAT-12", "OAI-CHAT-17"),
    ),
    validate=validate_body,
)
