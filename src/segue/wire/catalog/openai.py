"""OpenAI's types: Responses, Chat, and what is like them."""

from __future__ import annotations

from segue.wire.catalog.fields import free_text, json_text, values, words
from segue.wire.catalog.shape import Inside, Shape

__all__ = ["OPENAI"]

_RESPONSES = Inside("openai-responses", lambda item: {"input": [item]})
_CHAT_CALL = Inside(
    "openai-chat", lambda call: {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
)
_CHAT_MESSAGE = Inside("openai-chat", lambda message: {"messages": [message]})

OPENAI: dict[str, Shape] = {
    "FunctionToolCall": Shape(
        id="call_id",
        item="id",
        name="name",
        arguments=json_text("arguments"),
        parent="caller.caller_id",
        inside=_RESPONSES,
    ),
    "FunctionToolCallOutput": Shape(
        id="call_id", item="id", name="name", output=values("output"), parent="caller.caller_id", inside=_RESPONSES
    ),
    "ChatFunctionToolCall": Shape(
        id="id", name="function.name", arguments=json_text("function.arguments"), inside=_CHAT_CALL
    ),
    "ChatCustomToolCall": Shape(
        id="id", name="custom.name", arguments=free_text("custom.input"), kind="custom", inside=_CHAT_CALL
    ),
    "ChatToolMessage": Shape(id="tool_call_id", output=words("content"), inside=_CHAT_MESSAGE),
    "RunStepFunctionToolCall": Shape(
        id="id", name="function.name", arguments=json_text("function.arguments"), output=words("function.output")
    ),
}
