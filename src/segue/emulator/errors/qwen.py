"""The error texts of DashScope: its own prefix, and OpenAI's texts with double quotes.

Schema errors have the format of a JSON Schema validator: the value, what was expected, and the path.
"""

from __future__ import annotations

from collections.abc import Callable

from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, StandardErrors
from segue.emulator.errors.openai_style import expected_result_index, text_or_empty
from segue.wire.base import ApiError

_CODE = "invalid_parameter_error"
_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_UNANSWERED = (
    'An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id". The '
    "following tool_call_ids did not have response messages: "
)
_ORPHAN_RESULT = 'messages with role "tool" must be a response to a preceeding message with "tool_calls".'
_ROLES = "['system', 'assistant', 'user', 'tool', 'function']"


def _fixed_error(message: str) -> ErrorBuilder:
    return lambda _: ApiError(400, _PREFIX + message, code=_CODE)


def _built_error(make: Callable[[BrokenRule], str]) -> ErrorBuilder:
    return lambda broken: ApiError(400, make(broken), code=_CODE)


def _missing_results_message(broken: BrokenRule) -> str:
    return f"{_PREFIX}{_UNANSWERED}message[{expected_result_index(broken)}].role"


def _type_message(broken: BrokenRule) -> str:
    if broken.steps[-1:] == ("role",):
        return f"{text_or_empty(broken.value)} is not one of {_ROLES} - '{broken.dotted_path}'"
    if broken.steps[-1:] == ("function_call",):
        return f"Additional properties are not allowed ('function_call' was unexpected) - '{broken.dotted_path}'"
    return f"'{text_or_empty(broken.value)}' is not one of ['function'] - '{broken.dotted_path}'"


def _name_message(broken: BrokenRule) -> str:
    if broken.value is None:
        return f"'name' is a required property - '{broken.dotted_path.removesuffix('.name')}'"
    message = "'' is too short" if broken.value == "" else f"{str(broken.value)[:80]} is not of type 'string'"
    return f"{message} - '{broken.dotted_path}'"


_RULES: dict[str, ErrorBuilder] = {
    "QWEN-01": _built_error(_missing_results_message),
    "QWEN-02": _fixed_error(_ORPHAN_RESULT),
    "QWEN-03": _fixed_error('The "function.arguments" parameter of the code model must be in JSON format.'),
    "QWEN-04": _fixed_error("The input messages do not contain elements with the role of user"),
    "QWEN-06": _built_error(lambda f: f"{f.value!r:.80} has an invalid type - '{f.dotted_path}'"),
    "OAI-CHAT-07": _built_error(lambda f: f"[] is too short - '{f.dotted_path}'"),
    "OAI-CHAT-09": _built_error(_name_message),
    "OAI-CHAT-11": _fixed_error("The content field is a required field."),
    "OAI-CHAT-21": _built_error(_type_message),
}

_HELP = "https://www.alibabacloud.com/help/en/model-studio/error-code"


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"Unsupported URL: {method} {path}", code="invalid_url")


def _no_model(model: str) -> ApiError:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return ApiError(404, message, code="model_not_found")


ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=ApiError(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY).",
        ),
        bad_key=ApiError(
            401, f"Incorrect API key provided. For details, see: {_HELP}#apikey-error", code="invalid_api_key"
        ),
        bad_json=ApiError(400, "Required body invalid, please check the request body format."),
        no_route=_no_route,
        no_model=_no_model,
        rate_limited=ApiError(
            429,
            f"You exceeded your current requests list. For details, see: {_HELP}#rate-limit",
            kind="limit_requests",
            code="limit_requests",
        ),
        server_error=ApiError(
            500,
            "<500> InternalError.Algo: An error occurred in model serving, error message is: [Request rejected by "
            "inference engine!]",
            kind="internal_error",
            code="internal_error",
        ),
        context_length=ApiError(
            400,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 131072]",
            code="invalid_parameter_error",
        ),
        overloaded=ApiError(
            503,
            "Too many requests. Your requests are being throttled due to system capacity limits. Please try again "
            "later.",
            kind="ServiceUnavailable",
            code="ServiceUnavailable",
        ),
    ),
    rule_order=("OAI-CHAT-21", "OAI-CHAT-07", "OAI-CHAT-09", "OAI-CHAT-11", "QWEN-04"),
)
