"""What providers refuse for the form of a body alone, before anyone reads the conversation in it.

The judge looks at history, ids, tools and reasoning, and its rules are the rulebook's. What stands here are the
emulator's own doors: types of members, unknown ones, parts of another API, schemas that are none, models of others.
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


def refused(api: str, body: Mapping[str, Any], asked: Asked, *, profile: str | None = None) -> ApiError | None:
    """The provider's error for a body of another form than its own; `None` where there is nothing to say."""
    if profile is not None:
        return openai_chat.unreadable(body)
    error = _formed(api, body, asked)
    if error is None and is_foreign(api, body.get("model")):
        return wording.troubles(api).no_model(str(body["model"]))
    return error


def _formed(api: str, body: Mapping[str, Any], asked: Asked) -> ApiError | None:
    match api:
        case "anthropic":
            return anthropic.refused(body, asked.headers.get("anthropic-beta", ""))
        case "openai-chat":
            return openai_chat.refused(body)
        case "openai-responses":
            return openai_responses.refused(body)
        case "deepseek":
            return deepseek.refused(body, asked.body)
        case "kimi":
            return kimi.refused(body)
        case "mistral":
            return mistral.refused(body)
        case "qwen":
            return qwen.refused(body)
        case _:
            return None
