"""All OpenAI types: those of Chat Completions, and the tables of the other APIs."""

from __future__ import annotations

from segue.wire.catalog.field_codecs import free_text, json_text, text_output
from segue.wire.catalog.openai_agents import AGENTS
from segue.wire.catalog.openai_outputs import parts_output
from segue.wire.catalog.openai_responses import RESPONSES
from segue.wire.catalog.openai_sessions import ASSISTANTS, CHATKIT, REALTIME
from segue.wire.catalog.shape import EnclosingBody, PayloadShape

__all__ = ["OPENAI"]

_CALL_BODY = EnclosingBody(
    "openai-chat", lambda call: {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
)
_MESSAGE_BODY = EnclosingBody("openai-chat", lambda message: {"messages": [message]})

_CHAT: dict[str, PayloadShape] = {
    "ChatFunctionToolCall": PayloadShape(
        id="id", name="function.name", arguments=json_text("function.arguments"), enclosing_body=_CALL_BODY
    ),
    "ChatCustomToolCall": PayloadShape(
        id="id", name="custom.name", arguments=free_text("custom.input"), kind="custom", enclosing_body=_CALL_BODY
    ),
    "ChatToolMessage": PayloadShape(
        id="tool_call_id", output=parts_output("content", "text", lambda _media: None), enclosing_body=_MESSAGE_BODY
    ),
    "ChatLegacyFunctionCall": PayloadShape(
        name="function_call.name",
        arguments=json_text("function_call.arguments"),
        defaults={"content": None},
        enclosing_body=_MESSAGE_BODY,
    ),
    "ChatLegacyFunctionMessage": PayloadShape(name="name", output=text_output("content"), enclosing_body=_MESSAGE_BODY),
}

OPENAI: dict[str, PayloadShape] = {**RESPONSES, **_CHAT, **ASSISTANTS, **REALTIME, **CHATKIT, **AGENTS}
