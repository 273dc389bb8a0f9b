"""The error texts of `acme`: one of its own, the others are OpenAI's."""

from __future__ import annotations

from segue.emulator.errors import openai_chat
from segue.emulator.errors.broken_rule import ErrorTexts
from segue.emulator.errors.openai_style import error_with_text

ERROR_TEXTS = ErrorTexts(
    {"OAI-CHAT-03": error_with_text("acme: a tool call has no result", code="unanswered")},
    openai_chat.ERROR_TEXTS.standard,
)
