"""The forms of errors for clients of the Gemini API.

Gemini CLI waits for the `retryDelay` of a 429 or 503. It takes one for final only by its details for a Google account,
or if the text has "limit: 0"; so do the others of the vendor's clients retry by the status alone.
"""

from __future__ import annotations

from segue.wire.error_forms import ErrorForm, ErrorForms

_TOO_LONG = "The input token count exceeds the maximum number of tokens allowed:"
_FINAL = " (limit: 0)"
_INVALID = ErrorForm(400, "invalid_request_error", "INVALID_ARGUMENT")
_NOT_FOUND = ErrorForm(404, "not_found_error", "NOT_FOUND")
_PROVIDER_KEY = ErrorForm(503, "api_error", "provider_auth_failed", note=_FINAL)
_UNAVAILABLE = ErrorForm(502, "api_error", "UNAVAILABLE")

ERROR_FORMS: ErrorForms = {
    "too-long": ErrorForm(
        400,
        "invalid_request_error",
        "INVALID_ARGUMENT",
        text=_TOO_LONG,
        sizes="The input token count ({prompt}) exceeds the maximum number of tokens allowed ({context}):",
    ),
    "too-large": ErrorForm(413, "invalid_request_error", "INVALID_ARGUMENT"),
    "no-credit": ErrorForm(429, "rate_limit_error", "RESOURCE_EXHAUSTED", note=_FINAL),
    "rate-limited": ErrorForm(429, "rate_limit_error", "RESOURCE_EXHAUSTED"),
    "overloaded": ErrorForm(503, "overloaded_error", "UNAVAILABLE"),
    "failed": ErrorForm(500, "api_error", "INTERNAL", keeps_status=True),
    "policy": _INVALID,
    "invalid": _INVALID,
    "client-key": ErrorForm(401, "authentication_error", "UNAUTHENTICATED", keeps_status=True),
    "client-access": ErrorForm(403, "permission_error", "PERMISSION_DENIED", keeps_status=True),
    "provider-key": _PROVIDER_KEY,
    "provider-access": _PROVIDER_KEY,
    "no-key": _PROVIDER_KEY,
    "unknown-model": _NOT_FOUND,
    "unknown-path": _NOT_FOUND,
    "unknown-reference": _NOT_FOUND,
    "unreachable": _UNAVAILABLE,
    "timeout": ErrorForm(504, "api_error", "DEADLINE_EXCEEDED"),
    "broken": _UNAVAILABLE,
}
