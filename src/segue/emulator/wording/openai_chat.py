"""The error texts of OpenAI Chat Completions.

Errors come from two layers with different path formats: the schema, which is checked first
(`messages[1].tool_calls[0].id`), and the checks of the conversation (`messages.[1].role`).
"""

from __future__ import annotations

from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.openai_style import (
    NAME,
    Want,
    ask,
    at_end_of,
    call_ids_wanting,
    choices,
    found_in,
    index_of,
    is_missing,
    message_of,
    said,
    schema_error,
    unknown_parameter,
    wanted,
)
from segue.wire.base import ApiError

__all__ = ["TROUBLES", "WORDS", "first_result_of"]

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
_NAMED = Want(least=1, most=64, pattern=NAME)


def _unanswered(fault: Fault) -> ApiError:
    return ApiError(400, _UNANSWERED + call_ids_wanting(fault), param=f"messages.[{at_end_of(fault)}].role")


def _unasked(fault: Fault) -> ApiError:
    where = f"messages.[{index_of(fault)}]"
    if "tool_call_id" not in fault.steps:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        )
        return ApiError(400, text, param=f"{where}.role")
    if not said(fault.value):
        text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
    else:
        text = f"Invalid parameter: 'tool_call_id' of '{fault.value}' not found in 'tool_calls' of previous message."
    return ApiError(400, text, param=f"{where}.tool_call_id")


def first_result_of(fault: Fault) -> int:
    """Returns the index of the first tool message of the round with the same id."""
    first = index = index_of(fault)
    while index > 0:
        index -= 1
        message = fault.at("messages", index)
        if found_in(message, "role") == "assistant":
            break
        if found_in(message, "role") == "tool" and found_in(message, "tool_call_id") == fault.value:
            first = index
    return first


def _answered_twice(fault: Fault) -> ApiError:
    index = index_of(fault)
    both = f"in messages[{first_result_of(fault)}] and messages[{index}]"
    message = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{said(fault.value)}', {both}."
    return ApiError(400, message, param=f"messages.[{index}].tool_call_id")


def _one_id(fault: Fault) -> ApiError:
    where = f"messages[{index_of(fault)}].tool_calls"
    message = f"Invalid parameter: Duplicate value for 'id' of '{said(fault.value)}', in {where}."
    return ApiError(400, message, param=f"messages.[{index_of(fault)}].tool_calls")


def _content(fault: Fault) -> ApiError:
    if fault.value is not None:
        return schema_error(fault, Want("one of a string or array of objects", least=1))
    message = "Invalid value for 'content': expected a string, got null."
    return ApiError(400, message, param=f"messages.[{index_of(fault)}].content")


def _part(fault: Fault) -> ApiError:
    sort = found_in(fault.value, "type")
    if sort != "image_url":
        return choices(f"{fault.path}.type", sort, ("text",))
    where = f"messages[{index_of(fault)}]"
    message = f"Invalid '{where}'. {_IMAGE.format(said(message_of(fault).get('role')))}"
    return ApiError(400, message, code="invalid_value", param=where)


def _tools(fault: Fault) -> ApiError:
    if fault.path == "tools":
        return schema_error(fault, Want("an array of objects", most=128))
    return schema_error(fault, Want(most=1024))


def _sort(fault: Fault) -> ApiError:
    known = ("function", "custom") if fault.steps[-1:] == ("type",) else ()
    return schema_error(fault, Want(values=known))


def _calls(fault: Fault) -> ApiError:
    return schema_error(fault, Want("an array of objects", least=1))


def _named(fault: Fault) -> ApiError:
    # An empty name has the text of a string that is too short.
    return schema_error(fault, Want(least=1) if is_missing(fault) or not said(fault.value) else _NAMED)


_RULES: dict[str, Word] = {
    "OAI-CHAT-01": wanted(least=1, most=40),
    "OAI-CHAT-03": _unanswered,
    "OAI-CHAT-04": _unasked,
    "OAI-CHAT-05": _answered_twice,
    "OAI-CHAT-06": _one_id,
    "OAI-CHAT-07": _calls,
    "OAI-CHAT-08": _named,
    "OAI-CHAT-09": wanted(least=1),
    "OAI-CHAT-10": wanted(),
    "OAI-CHAT-11": _content,
    "OAI-CHAT-12": _part,
    "OAI-CHAT-13": unknown_parameter,
    "OAI-CHAT-15": _unanswered,
    "OAI-CHAT-16": _tools,
    "OAI-CHAT-17": ask(lambda f: _EFFORT.format(said(f.at("model")) or "this model"), param="reasoning_effort"),
    "OAI-CHAT-21": _sort,
    "OAI-CHAT-22": unknown_parameter,
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


TROUBLES = Troubles(
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
    failed=ApiError(
        500,
        "The server had an error while processing your request. Sorry about that! You can retry your request, or "
        f"{_HELP} if you keep seeing this error.",
        kind="server_error",
    ),
    overloaded=ApiError(
        503,
        "That model is currently overloaded with other requests. You can retry your request, or "
        f"{_HELP} if the error persists.",
        kind="server_error",
    ),
)

WORDS = Words(
    _RULES,
    TROUBLES,
    first=(
        *("OAI-CHAT-01", "OAI-CHAT-07", "OAI-CHAT-21", "OAI-CHAT-09", "OAI-CHAT-08", "OAI-CHAT-10"),
        *("OAI-CHAT-16", "OAI-CHAT-12", "OAI-CHAT-17"),
    ),
)
