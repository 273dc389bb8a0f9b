"""The error texts of `acme`: one of its own, the others are OpenAI's."""

from __future__ import annotations

from segue.emulator.errors import openai_chat
from segue.emulator.errors.breach import ErrorTexts
from segue.emulator.errors.openai_style import fixed_error

ERROR_TEXTS = ErrorTexts(
    {"OAI-CHAT-03": fixed_error("acme: a tool call has no result", code="unanswered")},
    openai_chat.ERROR_TEXTS.standard,
)
