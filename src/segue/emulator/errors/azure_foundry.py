"""The error texts of the agents service of Azure AI Foundry.

Its schema lists all mismatches under one message; the model behind it has the error texts of OpenAI.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from segue.conformance.rule import Violation
from segue.conformance.values import text_or_empty
from segue.emulator.errors import openai_chat, openai_responses
from segue.emulator.errors.broken_rule import (
    BrokenRule,
    ErrorBuilder,
    ErrorTexts,
    RuleError,
    StandardErrors,
    parse_path,
)
from segue.emulator.errors.openai_style import is_missing
from segue.wire.base import ApiError

_PAYLOAD = "invalid_payload"
_REQUEST = "invalid_request"
_TYPES = re.compile(r"Expected (?:one of: )?([^;]+?)[;,] got (\w+)")
_MISSING = re.compile(r"Required property '([^']*)' is missing")


def _pointer(path: str) -> str:
    return "".join(f"/{step}" for step in parse_path(path))


def _detail_entry(text: str, path: str) -> dict[str, str]:
    return {"code": "ValidationError", "message": text, "param": path, "type": "error"}


def _violation_detail(violation: Violation) -> dict[str, str]:
    """Format a violation as the service lists it: a missing member is reported on the object that lacks it."""
    path, message = violation.path, violation.message
    types, missing = _TYPES.match(message), _MISSING.match(message)
    if types is not None:
        return _detail_entry(f"Value is '{types[2]}' but should be '{types[1].split(', ')[0]}'", _pointer(path))
    if missing is not None or message.startswith("required: "):
        key = str(parse_path(path)[-1])
        message = f'required: Required properties ["{key}"] are not present'
        return _detail_entry(message, _pointer(path.removesuffix(key).removesuffix(".")))
    return _detail_entry(message, _pointer(path))


def _payload_error(broken: BrokenRule) -> ApiError:
    """List all mismatches under one message; some conflicting settings have their own error."""
    own_code = {"background": "unsupported_parameter", "stream_options": "invalid_mode"}.get(broken.path)
    if own_code is not None and not broken.message.startswith(("Expected", "Required")):
        param = "stream" if broken.path == "stream_options" else broken.path
        return ApiError(400, broken.message, code=own_code, param=param)
    if broken.path.startswith("metadata") and "more than" in broken.message:
        return ApiError(400, _metadata_message(broken), code=_REQUEST, param="metadata")
    details = tuple(_violation_detail(violation) for violation in broken.violations)
    return ApiError(400, "Invalid payload", code=_PAYLOAD, details=details)


def _metadata_message(broken: BrokenRule) -> str:
    if broken.path == "metadata":
        return "metadata must have at most 16 key-value pairs"
    key = broken.path.removeprefix("metadata.")
    if len(key) > 64:
        return f"metadata key '{key[:64]}...' exceeds maximum length of 64 characters"
    return f"metadata value for key '{key}' exceeds maximum length of 512 characters"


def _single_error(message: str, code: str = _PAYLOAD) -> ErrorBuilder:
    return lambda broken: ApiError(400, message, code=code, param=broken.path)


def _violation_error(broken: BrokenRule) -> ApiError:
    """Return one error of the server library: its text is the message of the violation."""
    path = f"$.{broken.path}"
    detail = {"code": "invalid_value", "message": broken.message, "param": path, "type": "invalid_request_error"}
    return ApiError(400, broken.message, code=_REQUEST, param=path, details=(detail,))


def _type_error(broken: BrokenRule) -> ApiError:
    kind = "missing" if is_missing(broken) else _TYPES.match(broken.message)
    return (
        _violation_error(broken) if kind else ApiError(400, "Expected string", code=_REQUEST, param=f"$.{broken.path}")
    )


def _previous_response_error(broken: BrokenRule) -> ApiError:
    missing = openai_responses.response_not_found_error(text_or_empty(broken.value_at("previous_response_id")))
    return replace(missing, code="invalid_request_error", param="response_id")


_RULES: dict[str, RuleError] = {
    **openai_responses.ERROR_TEXTS.rules,
    "AZF-01": _single_error("Not allowed when agent is specified."),
    "AZF-02": _single_error("The 'agent' property is deprecated. Use 'agent_reference' instead."),
    "AZF-03": _payload_error,
    "AZF-04": _payload_error,
    "AZF-05": openai_responses.ERROR_TEXTS.rules["OAI-RESP-05"],
    "AZF-06": ApiError(400, "Invalid payload", code=_PAYLOAD),
    "AZF-07": _single_error("Malformed identifier.", "invalid_parameters"),
    "AZF-08": _violation_error,
    "AZF-10": _type_error,
    "AZF-11": _violation_error,
    openai_responses.PREVIOUS_NOT_FOUND: _previous_response_error,
}

_TOKEN = "Access token is missing, invalid, audience is incorrect (https://ai.azure.com), or have expired."
_DEPLOYMENT = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
    "please wait a moment and try again."
)


def _no_route(_method: str, _path: str) -> ApiError:
    return ApiError(404, "Resource not found", code="404")


def _no_model(_model: str) -> ApiError:
    return ApiError(404, _DEPLOYMENT, code="DeploymentNotFound")


ERROR_TEXTS = ErrorTexts(
    _RULES,
    StandardErrors(
        no_key=ApiError(401, f"Unauthorized. {_TOKEN}", code="Unauthorized"),
        bad_key=ApiError(
            401,
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for "
            "an active subscription and use a correct regional API endpoint for your resource.",
            code="401",
        ),
        bad_json=openai_chat.STANDARD_ERRORS.bad_json,
        no_route=_no_route,
        no_model=_no_model,
        rate_limited=ApiError(
            429,
            "Requests to the Responses_Create Operation have exceeded call rate limit of your current pricing tier. "
            "Please retry after 1 second.",
            kind="too_many_requests",
            code="too_many_requests",
        ),
        server_error=ApiError(
            500,
            "The server had an error while processing your request. Sorry about that!",
            kind="server_error",
            code="server_error",
        ),
        context_length=openai_responses.STANDARD_ERRORS.context_length,
        missing_field=openai_responses.STANDARD_ERRORS.missing_field,
        no_credit=openai_chat.STANDARD_ERRORS.no_credit,
        overloaded=ApiError(
            503,
            "The service is temporarily unable to process your request. Please try again later.",
            kind="server_error",
            code="ServiceUnavailable",
        ),
    ),
    rule_order=(
        *("AZF-02", "AZF-01", "AZF-03", "AZF-04", "AZF-08", "AZF-10", "AZF-11", "AZF-07", "AZF-06"),
        *openai_responses.ERROR_TEXTS.rule_order,
    ),
)
