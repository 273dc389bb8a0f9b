"""Validation of request bodies that providers do before they look at the conversation.

The conformance rules cover history, ids, tools and reasoning. The emulator's own checks are here: types of members,
unknown members, content parts of another API, invalid JSON Schemas, and models of other vendors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.emulator import wording
from segue.emulator.exchange import Asked
from segue.emulator.forms import anthropic, deepseek, kimi, mistral, openai_chat, openai_responses, qwen
from segue.emulator.forms.foreign import is_foreign
from segue.emulator.forms.unread import unread
from segue.wire.base import ApiError

__all__ = ["refused", "unread"]


def refused(api: str, body: Mapping[str, Any], http_request: Asked, *, profile: str | None = None) -> ApiError | None:
    """Returns the provider's error for an invalid body, `None` if it is valid."""
    if profile is not None:
        return openai_chat.unreadable(body)
    error = _formed(api, body, http_request)
    if error is None and is_foreign(api, body.get("model")):
        return wording.troubles(api).no_model(str(body["model"]))
    return error


def _formed(api: str, body: Mapping[str, Any], http_request: Asked) -> ApiError | None:
    match api:
        case "anthropic":
            return anthropic.refused(body, http_request.headers.get("anthropic-beta", ""))
        case "openai-chat":
            return openai_chat.refused(body)
        case "openai-responses":
            return openai_responses.refused(body)
        case "deepseek":
            return deepseek.refused(body, http_request.body)
        case "kimi":
            return kimi.refused(body)
        case "mistral":
            return mistral.refused(body)
        case "qwen":
            return qwen.refused(body)
        case _:
            return None
