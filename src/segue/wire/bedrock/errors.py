"""The forms of errors for clients of the Converse API.

The AWS SDKs retry throttling and the statuses 500, 502, 503 and 504; no header stops them. Frameworks look for the
vendor's text of a prompt that is too long.
"""

from __future__ import annotations

from segue.wire.error_forms import ErrorForm, ErrorForms

_INVALID = ErrorForm(400, "ValidationException")
_NOT_FOUND = ErrorForm(404, "ResourceNotFoundException")
_FAILED = ErrorForm(500, "InternalServerException", keeps_status=True)
_PROVIDER_KEY = ErrorForm(503, "ServiceUnavailableException", text="provider_auth_failed:")

ERROR_FORMS: ErrorForms = {
    "too-long": ErrorForm(400, "ValidationException", text="Input is too long for requested model."),
    "too-large": ErrorForm(413, "ValidationException"),
    "no-credit": ErrorForm(400, "ServiceQuotaExceededException"),
    "rate-limited": ErrorForm(429, "ThrottlingException"),
    "overloaded": ErrorForm(503, "ServiceUnavailableException"),
    "failed": _FAILED,
    "policy": _INVALID,
    "invalid": _INVALID,
    "client-key": ErrorForm(401, "UnrecognizedClientException", keeps_status=True),
    "client-access": ErrorForm(403, "AccessDeniedException", keeps_status=True),
    "provider-key": _PROVIDER_KEY,
    "provider-access": _PROVIDER_KEY,
    "no-key": _PROVIDER_KEY,
    "unknown-model": _NOT_FOUND,
    "unknown-path": _NOT_FOUND,
    "unknown-reference": _NOT_FOUND,
    "unreachable": ErrorForm(502, "InternalServerException"),
    "timeout": ErrorForm(504, "InternalServerException"),
    "broken": ErrorForm(502, "InternalServerException"),
}
