"""Validation of request bodies that providers do before they look at the conversation.

The conformance rules cover history, ids, tools and reasoning. The emulator's own checks are here: types of members,
unknown members, content parts of another API, invalid JSON Schemas, and models of other vendors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.emulator import errors
from segue.emulator.http_messages import HttpRequest
from segue.emulator.validation import anthropic, deepseek, kimi, mistral, openai_chat, openai_responses, qwen
from segue.emulator.validation.invalid_json import invalid_json_error
from segue.emulator.validation.vendor_models import is_other_vendors_model
from segue.wire.base import ApiError

__all__ = ["invalid_json_error", "validate"]


def validate(
    api: str, body: Mapping[str, Any], http_request: HttpRequest, *, profile: str | None = None
) -> ApiError | None:
    """Returns the provider's error for an invalid body, `None` if it is valid."""
    if profile is not None:
        return openai_chat.validate_messages(body)
    error = _validate_api(api, body, http_request)
    if error is None and is_other_vendors_model(api, body.get("model")):
        return errors.standard_errors(api).no_model(str(body["model"]))
    return error


def _validate_api(api: str, body: Mapping[str, Any], http_request: HttpRequest) -> ApiError | None:
    match api:
        case "anthropic":
            return anthropic.validate(body, http_request.headers.get("anthropic-beta", ""))
        case "openai-chat":
            return openai_chat.validate(body)
        case "openai-responses":
            return openai_responses.validate(body)
        case "deepseek":
            return deepseek.validate(body, http_request.body)
        case "kimi":
            return kimi.validate(body)
        case "mistral":
            return mistral.validate(body)
        case "qwen":
            return qwen.validate(body)
        case _:
            return None
