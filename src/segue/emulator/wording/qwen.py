"""The error texts of DashScope: its own prefix, and OpenAI's texts with double quotes.

Schema errors have the format of a JSON Schema validator: the value, what was expected, and the path.
"""

from __future__ import annotations

from collections.abc import Callable

from segue.emulator.wording.fault import Fault, Troubles, Word, Words
from segue.emulator.wording.openai_style import at_end_of, said
from segue.wire.base import ApiError

__all__ = ["WORDS"]

_CODE = "invalid_parameter_error"
_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_UNANSWERED = (
    'An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id". The '
    "following tool_call_ids did not have response messages: "
)
_UNASKED = 'messages with role "tool" must be a response to a preceeding message with "tool_calls".'
_ROLES = "['system', 'assistant', 'user', 'tool', 'function']"


def _algo(message: str) -> Word:
    return lambda _: ApiError(400, _PREFIX + message, code=_CODE)


def _asked(make: Callable[[Fault], str]) -> Word:
    return lambda fault: ApiError(400, make(fault), code=_CODE)


def _unanswered(fault: Fault) -> str:
    return f"{_PREFIX}{_UNANSWERED}message[{at_end_of(fault)}].role"


def _sort(fault: Fault) -> str:
    if fault.steps[-1:] == ("role",):
        return f"{said(fault.value)} is not one of {_ROLES} - '{fault.dotted}'"
    if fault.steps[-1:] == ("function_call",):
        return f"Additional properties are not allowed ('function_call' was unexpected) - '{fault.dotted}'"
    return f"'{said(fault.value)}' is not one of ['function'] - '{fault.dotted}'"


def _named(fault: Fault) -> str:
    if fault.value is None:
        return f"'name' is a required property - '{fault.dotted.removesuffix('.name')}'"
    message = "'' is too short" if fault.value == "" else f"{str(fault.value)[:80]} is not of type 'string'"
    return f"{message} - '{fault.dotted}'"


_RULES: dict[str, Word] = {
    "QWEN-01": _asked(_unanswered),
    "QWEN-02": _algo(_UNASKED),
    "QWEN-03": _algo('The "function.arguments" parameter of the code model must be in JSON format.'),
    "QWEN-04": _algo("The input messages do not contain elements with the role of user"),
    "OAI-CHAT-07": _asked(lambda f: f"[] is too short - '{f.dotted}'"),
    "OAI-CHAT-09": _asked(_named),
    "OAI-CHAT-11": _algo("The content field is a required field."),
    "OAI-CHAT-21": _asked(_sort),
}

_HELP = "https://www.alibabacloud.com/help/en/model-studio/error-code"


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"Unsupported URL: {method} {path}", code="invalid_url")


def _no_model(model: str) -> ApiError:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return ApiError(404, message, code="model_not_found")


WORDS = Words(
    _RULES,
    Troubles(
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
        failed=ApiError(
            500,
            "<500> InternalError.Algo: An error occurred in model serving, error message is: [Request rejected by "
            "inference engine!]",
            kind="internal_error",
            code="internal_error",
        ),
        overloaded=ApiError(
            503,
            "Too many requests. Your requests are being throttled due to system capacity limits. Please try again "
            "later.",
            kind="ServiceUnavailable",
            code="ServiceUnavailable",
        ),
    ),
    first=("OAI-CHAT-21", "OAI-CHAT-07", "OAI-CHAT-09", "OAI-CHAT-11", "QWEN-04"),
)
