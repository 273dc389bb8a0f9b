"""The error texts of `acme`: one of its own, the others are OpenAI's."""

from __future__ import annotations

from segue.emulator.errors import openai_chat
from segue.emulator.errors.broken_rule import ErrorTexts
from segue.wire.base import ApiError

ERROR_TEXTS = ErrorTexts(
    {"OAI-CHAT-03": ApiError(400, "acme: a tool call has no result", code="unanswered")},
    openai_chat.ERROR_TEXTS.standard,
)
