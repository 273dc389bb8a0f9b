"""Error bodies of vendors and servers that differ from OpenAI's."""

from __future__ import annotations

from typing import Any

from segue.canonical.ids import short_hash
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject
from segue.wire.openai_shared import render_error


def _drop_none(**fields: Any) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}


def _request_id(error: ApiError) -> str:
    """Return a deterministic request id: the same for the same error."""
    return short_hash(f"{error.status}|{error.message}").replace("-", "0").replace("_", "0").lower()


def render_minimal_error(error: ApiError) -> JsonObject:
    """Render message and type, other members only if set (Moonshot, Groq)."""
    return {"error": _drop_none(message=error.message, type=error.kind, param=error.param, code=error.code)}


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
    return {
        "object": "error",
        "message": error.message,
        "type": error.kind,
        "param": error.param,
        "code": error.code,
    }
