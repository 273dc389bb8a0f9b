"""The forms of errors for clients of the Messages API.

Claude Code compacts after a text with "prompt is too long", and lowers its limit of output tokens after the text of the
vendor about both. It and the SDKs retry by status, unless the header `x-should-retry` is `false`; in a stream, only
after the type `overloaded_error`.
"""

from __future__ import annotations

from segue.wire.error_forms import ErrorForm, ErrorForms

_TOO_LONG = "prompt is too long:"
_INVALID = ErrorForm(400, "invalid_request_error")
_PROVIDER_KEY = ErrorForm(503, "api_error", "provider_auth_failed")

ERROR_FORMS: ErrorForms = {
    "too-long": ErrorForm(
        400, "invalid_request_error", text=_TOO_LONG, sizes=f"{_TOO_LONG} {{prompt}} tokens > {{context}} maximum;"
    ),
    "too-large": ErrorForm(413, "request_too_large"),
    "no-credit": ErrorForm(402, "billing_error"),
    "rate-limited": ErrorForm(429, "rate_limit_error"),
    "overloaded": ErrorForm(529, "overloaded_error"),
    "failed": ErrorForm(500, "api_error", keeps_status=True),
    "policy": _INVALID,
    "invalid": _INVALID,
    "client-key": ErrorForm(401, "authentication_error", keeps_status=True),
    "client-access": ErrorForm(403, "permission_error", keeps_status=True),
    "provider-key": _PROVIDER_KEY,
    "provider-access": _PROVIDER_KEY,
    "no-key": _PROVIDER_KEY,
    "unknown-model": ErrorForm(404, "not_found_error"),
    "unknown-path": ErrorForm(404, "not_found_error"),
    "unknown-reference": ErrorForm(404, "not_found_error", keeps_status=True),
    "unreachable": ErrorForm(502, "api_error"),
    "timeout": ErrorForm(504, "timeout_error"),
    "broken": ErrorForm(502, "api_error"),
}
