"""Mistral's types: Chat, Conversations, Responses, audio and voice agents."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import ToolResponse
from segue.wire.catalog.codecs import (
    Content,
    OutputCodec,
    Patch,
    approval_field,
    json_text,
    response_text,
    selected_keys,
    text_output,
    value_output,
)
from segue.wire.catalog.openai_outputs import parts_output, render_chat_image, with_status
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_one_of
from segue.wire.json_values import JsonObject, object_or_none

_CALL_BODY = EnclosingBody(
    "mistral", lambda call: {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}
)
_MESSAGE_BODY = EnclosingBody("mistral", lambda message: {"messages": [message]})


def _parse_info(entry: JsonObject) -> Content:
    """Parse the output that a connector discloses."""
    info = object_or_none(entry.get("info"))
    return (None, UNSET) if not info else ((), info)


def _render_info(response: ToolResponse) -> Patch:
    info = object_or_none(response.structured)
    return {"info": info if info is not None else {"output": response_text(response)}}


def _render_end_event(response: ToolResponse) -> Patch:
    status = "cancelled" if response.outcome is not None else "error" if response.error else "done"
    has_content = bool(response.content) or not isinstance(response.structured, UnsetType)
    return {"status": status, **({"result": response_text(response)} if has_content else {})}


MISTRAL: dict[str, PayloadShape] = {
    "ToolCall": PayloadShape(
        name="function.name",
        arguments=json_text("function.arguments"),
        defaults={"type": "function"},
        enclosing_body=_CALL_BODY,
    ),
    "ToolMessage": PayloadShape(
        id="tool_call_id",
        name="name",
        output=parts_output("content", "text", render_chat_image),
        enclosing_body=_MESSAGE_BODY,
    ),
    "FunctionCallEntry": PayloadShape(id="tool_call_id", item_id="id", name="name", arguments=json_text("arguments")),
    "FunctionResultEntry": PayloadShape(id="tool_call_id", item_id="id", output=text_output("result")),
    "ToolCallConfirmation": PayloadShape(id="tool_call_id", approval=approval_field("confirmation", "allow", "deny")),
    "ToolExecutionEntry": PayloadShape(
        name="name", arguments=json_text("arguments"), output=OutputCodec(_parse_info, _render_info), kind="hosted"
    ),
    "AgentHandoffEntry": PayloadShape(
        tool="agent_handoff",
        arguments=selected_keys("previous_agent_id", "previous_agent_name", "next_agent_id", "next_agent_name"),
        kind="hosted",
    ),
    "ResponsesFunctionToolCall": PayloadShape(
        id="call_id",
        item_id="id",
        name="name",
        namespace="namespace",
        arguments=json_text("arguments"),
        parent="caller.caller_id",
    ),
    "ResponsesFunctionCallOutput": PayloadShape(
        id="call_id", item_id="id", output=parts_output("output"), parent="caller.caller_id"
    ),
    "AudioToolCall": PayloadShape(name="name", arguments=json_text("arguments")),
    "AudioToolTranscriptTurn": PayloadShape(
        id="tool_call_id",
        name="name",
        output=with_status(value_output("result"), done="success", failed="error"),
        failed=is_one_of("status", "error"),
        defaults={"timestamp": "1970-01-01T00:00:00Z"},
    ),
    "VoiceAgentToolCallStartedEvent": PayloadShape(name="name", defaults={"ts": 0.0}),
    # Only this event holds the call's arguments.
    "VoiceAgentToolCallEndedEvent": PayloadShape(
        name="name",
        output=OutputCodec(text_output("result").parse, _render_end_event),
        failed=is_one_of("status", "error"),
        cancelled=is_one_of("status", "cancelled"),
        defaults={"ts": 0.0, "arguments": "{}"},
    ),
}
