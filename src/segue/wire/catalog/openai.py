"""All OpenAI types: those of Chat Completions, and the tables of the other APIs."""

from __future__ import annotations

from segue.wire.catalog.fields import free_text, json_text, words
from segue.wire.catalog.openai_agents import AGENTS
from segue.wire.catalog.openai_outputs import parts
from segue.wire.catalog.openai_responses import RESPONSES
from segue.wire.catalog.openai_sessions import ASSISTANTS, CHATKIT, REALTIME
from segue.wire.catalog.shape import Inside, Shape

__all__ = ["OPENAI"]

_CALL = Inside("openai-chat", lambda call: {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]})
_MESSAGE = Inside("openai-chat", lambda message: {"messages": [message]})

_CHAT: dict[str, Shape] = {
    "ChatFunctionToolCall": Shape(
        id="id", name="function.name", arguments=json_text("function.arguments"), inside=_CALL
    ),
    "ChatCustomToolCall": Shape(
        id="id", name="custom.name", arguments=free_text("custom.input"), kind="custom", inside=_CALL
    ),
    "ChatToolMessage": Shape(id="tool_call_id", output=parts("content", "text", lambda _media: None), inside=_MESSAGE),
    "ChatLegacyFunctionCall": Shape(
        name="function_call.name",
        arguments=json_text("function_call.arguments"),
        defaults={"content": None},
        inside=_MESSAGE,
    ),
    "ChatLegacyFunctionMessage": Shape(name="name", output=words("content"), inside=_MESSAGE),
}

OPENAI: dict[str, Shape] = {**RESPONSES, **_CHAT, **ASSISTANTS, **REALTIME, **CHATKIT, **AGENTS}
