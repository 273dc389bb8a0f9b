"""The error texts of OpenAI Chat Completions.

Errors come from two layers with different path formats: the schema, which is checked first
(`messages[1].tool_calls[0].id`), and the checks of the conversation (`messages.[1].role`).
"""

from __future__ import annotations

from segue.conformance.chat_types import SPEC
from segue.conformance.values import is_object
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, StandardErrors
from segue.emulator.errors.openai_style import (
    NAME_PATTERN,
    ValueSpec,
    error_with_values,
    expected_result_index,
    find_message,
    invalid_choice_error,
    is_missing,
    kind_name,
    member,
    message_index,
    schema_error,
    spec_error,
    text_or_empty,
    unanswered_call_ids,
    unknown_parameter_error,
)
from segue.specs.types import find_mismatches
from segue.wire.base import ApiError

_UNANSWERED = (
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
_NAMED = ValueSpec(minimum=1, maximum=64, pattern=NAME_PATTERN)


def _missing_results_error(broken: BrokenRule) -> ApiError:
    return ApiError(
        400, _UNANSWERED + unanswered_call_ids(broken), param=f"messages.[{expected_result_index(broken)}].role"
    )


def _orphan_result_error(broken: BrokenRule) -> ApiError:
    where = f"messages.[{message_index(broken)}]"
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
    first = index = message_index(broken)
    while index > 0:
        index -= 1
        message = broken.value_at("messages", index)
        if member(message, "role") == "assistant":
            break
        if member(message, "role") == "tool" and member(message, "tool_call_id") == broken.value:
            first = index
    return first


def _duplicate_result_error(broken: BrokenRule) -> ApiError:
    index = message_index(broken)
    both = f"in messages[{_first_result_index(broken)}] and messages[{index}]"
    message = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{text_or_empty(broken.value)}', {both}."
    return ApiError(400, message, param=f"messages.[{index}].tool_call_id")


def _duplicate_id_error(broken: BrokenRule) -> ApiError:
    where = f"messages[{message_index(broken)}].tool_calls"
    message = f"Invalid parameter: Duplicate value for 'id' of '{text_or_empty(broken.value)}', in {where}."
    return ApiError(400, message, param=f"messages.[{message_index(broken)}].tool_calls")


def _content_error(broken: BrokenRule) -> ApiError:
    if member(broken.value, "type") == "input_audio":
        where = f"messages[{message_index(broken)}]"
        message = f"Invalid '{where}'. Content blocks are expected to be either text or image_url type."
        return ApiError(400, message, code="invalid_value", param=where)
    if broken.value is not None:
        return schema_error(broken, ValueSpec("one of a string or array of objects", minimum=1))
    message = "Invalid value for 'content': expected a string, got null."
    return ApiError(400, message, param=f"messages.[{message_index(broken)}].content")


def _part_error(broken: BrokenRule) -> ApiError:
    part_type = member(broken.value, "type")
    if part_type != "image_url":
        return invalid_choice_error(f"{broken.path}.type", part_type, ("text",))
    where = f"messages[{message_index(broken)}]"
    message = f"Invalid '{where}'. {_IMAGE.format(text_or_empty(find_message(broken).get('role')))}"
    return ApiError(400, message, code="invalid_value", param=where)


def _system_error(broken: BrokenRule) -> ApiError:
    if broken.steps[-1:] != ("role",):
        return _missing_results_error(broken)
    message = f"Unsupported value: '{broken.path}' does not support '{broken.value}' with this model."
    return ApiError(400, message, code="unsupported_value", param=broken.path)


def _tools_error(broken: BrokenRule) -> ApiError:
    if broken.path == "tools":
        return schema_error(broken, ValueSpec("an array of objects", maximum=128))
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
    return schema_error(broken, ValueSpec("an array of objects", minimum=1))


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
    "OAI-CHAT-13": unknown_parameter_error,
    "OAI-CHAT-15": _system_error,
    "OAI-CHAT-16": _tools_error,
    "OAI-CHAT-17": error_with_values(
        lambda f: _EFFORT.format(text_or_empty(f.value_at("model")) or "this model"), param="reasoning_effort"
    ),
    "OAI-CHAT-21": _type_value_error,
    "OAI-CHAT-22": unknown_parameter_error,
    "OAI-CHAT-23": _type_error,
    "COMP-09": error_with_values(
        lambda f: f"invalid params, invalid function arguments json string, tool_call_id: {_call_id(f)} (2013)"
    ),
}

_HELP = "contact us through our help center at help.openai.com"


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"Invalid URL ({method} {path})")


def _no_model(model: str) -> ApiError:
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
    bad_json=ApiError(
        400,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
        "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
        f"figuring out how to fix this, please {_HELP}.)",
    ),
    no_route=_no_route,
    wrong_method=_wrong_method,
    no_model=_no_model,
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
)
