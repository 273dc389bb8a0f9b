"""The forms of errors for clients of the Chat API, and the error bodies of vendors and servers.

Clients go by the status and the code; SDKs of OpenAI retry 408, 409, 429 and 5xx, unless the header `x-should-retry` is
`false`. Qwen Code, opencode and cline know neither that header nor the code of used-up credit, and retry each 429; so
that has the status 402, as at DeepSeek and OpenRouter. Clients for many providers also look for the vendor's text of a
prompt that is too long.
"""

from __future__ import annotations

from segue.canonical.ids import short_hash
from segue.wire.base import ApiError
from segue.wire.error_forms import ErrorForm, ErrorForms
from segue.wire.json_values import JsonObject, drop_none
from segue.wire.openai_shared import render_error

_INVALID = "invalid_request_error"
_PROVIDER_KEY = ErrorForm(503, "server_error", "provider_auth_failed")
_SERVER_ERROR = ErrorForm(502, "server_error")

ERROR_FORMS: ErrorForms = {
    "too-long": ErrorForm(
        400,
        _INVALID,
        "context_length_exceeded",
        text="The maximum context length is exceeded. Please reduce the length of the messages.",
        sizes="This model's maximum context length is {context} tokens. However, your messages resulted in {prompt} "
        "tokens. Please reduce the length of the messages.",
    ),
    "too-large": ErrorForm(413, _INVALID, "request_too_large"),
    "no-credit": ErrorForm(
        402,
        "insufficient_quota",
        "insufficient_quota",
        known_codes=frozenset({"usage_not_included", "usage_limit_reached"}),
    ),
    "rate-limited": ErrorForm(429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ErrorForm(503, "overloaded_error", "server_is_overloaded"),
    "failed": ErrorForm(500, "server_error", keeps_status=True),
    "policy": ErrorForm(
        400,
        _INVALID,
        "content_policy_violation",
        known_codes=frozenset({"cyber_policy", "bio_policy", "misalignment_policy_violation", "content_filter"}),
    ),
    "invalid": ErrorForm(400, _INVALID),
    "client-key": ErrorForm(401, _INVALID, "invalid_api_key", keeps_status=True),
    "client-access": ErrorForm(403, "permission_error", keeps_status=True),
    "provider-key": _PROVIDER_KEY,
    "provider-access": _PROVIDER_KEY,
    "no-key": _PROVIDER_KEY,
    "unknown-model": ErrorForm(404, _INVALID, "model_not_found"),
    "unknown-path": ErrorForm(404, _INVALID, "not_found"),
    "unknown-reference": ErrorForm(404, _INVALID, "not_found", keeps_status=True),
    "unreachable": _SERVER_ERROR,
    "timeout": ErrorForm(504, "server_error"),
    "broken": _SERVER_ERROR,
}


def _request_id(error: ApiError) -> str:
    """Return a deterministic request id: the same for the same error."""
    return short_hash(f"{error.status}|{error.message}").replace("-", "0").replace("_", "0").lower()


def render_minimal_error(error: ApiError) -> JsonObject:
    """Render message and type, other members only if set (Moonshot, Groq)."""
    return {"error": drop_none(message=error.message, type=error.kind, param=error.param, code=error.code)}


def render_coded_error(error: ApiError) -> JsonObject:
    """Render code and message only (Z.ai)."""
    return {"error": {"code": error.code or str(error.status), "message": error.message}}


def render_status_code_error(error: ApiError) -> JsonObject:
    """Render the HTTP status as code (vLLM)."""
    return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.status}}


def render_llama_error(error: ApiError) -> JsonObject:
    return {"error": {"code": error.status, "message": error.message, "type": error.kind}}


def render_openrouter_error(error: ApiError) -> JsonObject:
    return {"error": {"message": error.message, "code": error.status}}


def render_cerebras_error(error: ApiError) -> JsonObject:
    return {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}


def render_xai_error(error: ApiError) -> JsonObject:
    return {"code": error.code or error.kind, "error": error.message}


def render_minimax_error(error: ApiError) -> JsonObject:
    inner = {"type": error.kind, "message": error.message, "http_code": str(error.status)}
    return {"type": "error", "error": inner, "request_id": _request_id(error)}


def render_qwen_error(error: ApiError) -> JsonObject:
    """Render OpenAI's body with the request id in two more fields."""
    request = _request_id(error)
    return {**render_error(error), "id": f"chatcmpl-{request}", "request_id": request}


def render_mistral_error(error: ApiError) -> JsonObject:
    """Render validation errors as a list of details, and errors of the gateway as a message only."""
    if error.status == 422 and error.details:
        return {"detail": list(error.details)}
    if error.status in (401, 404):
        return {"detail": error.message}
    return {"object": "error", "message": error.message, "type": error.kind, "param": error.param, "code": error.code}
