"""The error texts of DashScope: its own prefix, and OpenAI's texts with double quotes.

Schema errors have the format of a JSON Schema validator: the value, what was expected, and the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from segue.conformance.body_types import is_integral_float
from segue.conformance.qwen import SPEC
from segue.conformance.values import text_or_empty
from segue.emulator.errors.broken_rule import BrokenRule, ErrorBuilder, ErrorTexts, RuleError, StandardErrors
from segue.emulator.errors.openai_chat import no_model_error
from segue.emulator.errors.openai_style import expected_result_index, missing_field_error
from segue.emulator.errors.tool_declarations import (
    find_function_error,
    format_value,
    undeclared_choice,
    wrong_type_message,
)
from segue.emulator.http_messages import HttpRequest
from segue.specs.types import Mismatch, find_mismatches
from segue.wire.base import ApiError

_CODE = "invalid_parameter_error"
_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_UNANSWERED = (
    'An assistant message with "tool_calls" must be followed by tool messages responding to each "tool_call_id". The '
    "following tool_call_ids did not have response messages: "
)
_ORPHAN_RESULT = 'messages with role "tool" must be a response to a preceeding message with "tool_calls".'
_LISTED_PARTS = ("text", "image_url", "video_url", "video")
_KINDS = {"list": "array", "map": "object", "any": "object"}
_ROLES = ("system", "assistant", "user", "tool", "function")


def _error(message: str) -> ApiError:
    return ApiError(400, message, code=_CODE)


def _built_error(make: Callable[[BrokenRule], str]) -> ErrorBuilder:
    return lambda broken: _error(make(broken))


def _missing_results_message(broken: BrokenRule) -> str:
    return f"{_PREFIX}{_UNANSWERED}message[{expected_result_index(broken)}].role"


def _choice_message(value: str, known: Sequence[str], place: str) -> str:
    return f"{value} is not one of {list(known)} - '{place}'"


def _type_message(broken: BrokenRule) -> str:
    if broken.steps[-1:] == ("role",):
        return _choice_message(text_or_empty(broken.value), _ROLES, broken.dotted_path)
    if broken.steps[-1:] == ("function_call",):
        return f"Additional properties are not allowed ('function_call' was unexpected) - '{broken.dotted_path}'"
    return _choice_message(f"'{text_or_empty(broken.value)}'", ("function",), broken.dotted_path)


def _name_message(broken: BrokenRule) -> str:
    if broken.value is None:
        return f"'name' is a required property - '{broken.dotted_path.removesuffix('.name')}'"
    message = "'' is too short" if broken.value == "" else wrong_type_message(str(broken.value)[:80], "string")
    return f"{message} - '{broken.dotted_path}'"


_RULES: dict[str, RuleError] = {
    "QWEN-01": _built_error(_missing_results_message),
    "QWEN-02": _error(_PREFIX + _ORPHAN_RESULT),
    "QWEN-03": _error(f'{_PREFIX}The "function.arguments" parameter of the code model must be in JSON format.'),
    "QWEN-04": _error(f"{_PREFIX}The input messages do not contain elements with the role of user"),
    "QWEN-06": _built_error(lambda f: f"{f.value!r:.80} has an invalid type - '{f.dotted_path}'"),
    "OAI-CHAT-07": _built_error(lambda f: f"[] is too short - '{f.dotted_path}'"),
    "OAI-CHAT-09": _built_error(_name_message),
    "OAI-CHAT-11": _error(f"{_PREFIX}The content field is a required field."),
    "OAI-CHAT-21": _built_error(_type_message),
}

# ------------------------------------------------------------------------------ what is checked before the conversation


def _mismatch_error(mismatch: Mismatch) -> ApiError:
    place, value, spec = mismatch.path.replace("[", ".").replace("]", ""), format_value(mismatch.value), mismatch.spec
    match mismatch.kind:
        case "missing":
            return _error(f"'{mismatch.key}' is a required property - '{place.rpartition('.')[0]}'")
        case "choice" if ".content." in place:
            *most, last = (f"'{name}'" for name in _LISTED_PARTS)
            return _error(f"Invalid value: {mismatch.value}. Supported values are: {','.join(most)} and {last}.")
        case "choice" | "value":
            return _error(_choice_message(value, list(spec.variants or spec.values), place))
        case "short" | "long":
            bounds = (
                f"[{spec.minimum:g}, {spec.maximum:g}]" if spec.maximum is not None else f"[{spec.minimum:g}, 65536]"
            )
            return _error(f"{_PREFIX}Range of {place} should be {bounds}")
        case _ if spec.any_of:
            return _error(f"{value} is not valid under any of the given schemas - '{place}'")
        case _:
            return _error(f"{wrong_type_message(value, _KINDS.get(spec.kind, spec.kind))} - '{place}'")


def validate_body(body: Mapping[str, Any], _http_request: HttpRequest) -> ApiError | None:
    """Return the error for the first mismatch of a body with the spec, `None` if it is valid."""
    for mismatch in find_mismatches(SPEC, body):
        if not is_integral_float(mismatch):
            return _mismatch_error(mismatch)
    error = find_function_error(body)
    if error is not None:
        return _error(_PREFIX + error.message)
    undeclared = undeclared_choice(body)
    return None if undeclared is None else _error(f"{_PREFIX}The tool '{undeclared}' in tool_choice is not in tools.")


# -------------------------------------------------------------------------------------------- errors not about the body

_HELP = "https://www.alibabacloud.com/help/en/model-studio/error-code"


def _no_route(method: str, path: str) -> ApiError:
    return ApiError(404, f"Unsupported URL: {method} {path}", code="invalid_url")


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
        bad_json=lambda _: ApiError(400, "Required body invalid, please check the request body format."),
        no_route=_no_route,
        no_model=no_model_error,
        missing_field=missing_field_error,
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
        context_length=_error(f"{_PREFIX}Range of input length should be [1, 131072]"),
        no_credit=ApiError(
            400, "Access denied, please make sure your account is in good standing.", kind="Arrearage", code="Arrearage"
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
    validate=validate_body,
)
