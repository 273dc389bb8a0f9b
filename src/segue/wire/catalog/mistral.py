"""Mistral's types: Chat, Conversations, Responses, audio and voice agents."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from segue.canonical.blocks import ToolResponse
from segue.wire.catalog.fields import Content, Output, Patch, either, json_text, keys, said, values, words
from segue.wire.catalog.openai_mcp import approval_of, approved
from segue.wire.catalog.openai_outputs import chat_picture, parts, stated
from segue.wire.catalog.shape import Inside, Shape, one_of
from segue.wire.fields import JsonObject, object_or_none

__all__ = ["MISTRAL"]

_CALL = Inside("mistral", lambda call: {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]})
_MESSAGE = Inside("mistral", lambda message: {"messages": [message]})


def _disclosed(entry: JsonObject) -> Content:
    """The output that a connector discloses."""
    info = object_or_none(entry.get("info"))
    return (None, UNSET) if not info else ((), info)


def _disclose(response: ToolResponse) -> Patch:
    given = object_or_none(response.structured)
    return {"info": given if given is not None else {"output": said(response)}}


def _confirm(text: str) -> Patch:
    return {"confirmation": "allow" if approval_of(text)[0] else "deny"}


def _ended(response: ToolResponse) -> Patch:
    status = "cancelled" if response.outcome is not None else "error" if response.error else "done"
    has_content = bool(response.content) or not isinstance(response.structured, UnsetType)
    return {"status": status, **({"result": said(response)} if has_content else {})}


MISTRAL: dict[str, Shape] = {
    "ToolCall": Shape(
        id="id",
        name="function.name",
        arguments=either("function.arguments"),
        defaults={"type": "function"},
        inside=_CALL,
    ),
    "ToolMessage": Shape(
        id="tool_call_id", name="name", output=parts("content", "text", chat_picture), inside=_MESSAGE
    ),
    "FunctionCallEntry": Shape(id="tool_call_id", item="id", name="name", arguments=either("arguments")),
    "FunctionResultEntry": Shape(id="tool_call_id", item="id", output=words("result")),
    "ToolCallConfirmation": Shape(
        id="tool_call_id", tell=lambda given: approved(given["confirmation"] == "allow"), untell=_confirm
    ),
    "ToolExecutionEntry": Shape(
        id="id", name="name", arguments=json_text("arguments"), output=Output(_disclosed, _disclose), kind="hosted"
    ),
    "AgentHandoffEntry": Shape(
        id="id",
        tool="agent_handoff",
        arguments=keys("previous_agent_id", "previous_agent_name", "next_agent_id", "next_agent_name"),
        kind="hosted",
    ),
    "ResponsesFunctionToolCall": Shape(
        id="call_id",
        item="id",
        name="name",
        namespace="namespace",
        arguments=json_text("arguments"),
        parent="caller.caller_id",
    ),
    "ResponsesFunctionCallOutput": Shape(id="call_id", item="id", output=parts("output"), parent="caller.caller_id"),
    "AudioToolCall": Shape(id="id", name="name", arguments=json_text("arguments")),
    "AudioToolTranscriptTurn": Shape(
        id="tool_call_id",
        name="name",
        output=stated(values("result"), done="success", failed="error"),
        failed=one_of("status", "error"),
        defaults={"timestamp": "1970-01-01T00:00:00Z"},
    ),
    "VoiceAgentToolCallStartedEvent": Shape(id="id", name="name", defaults={"ts": 0.0}),
    # Only this event holds the call's arguments.
    "VoiceAgentToolCallEndedEvent": Shape(
        id="id",
        name="name",
        output=Output(words("result").read, _ended),
        failed=one_of("status", "error"),
        cancelled=one_of("status", "cancelled"),
        defaults={"ts": 0.0, "arguments": "{}"},
    ),
}
