"""Anthropic's types: the blocks of Messages, and the events of Managed Agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.wire.anthropic.items import server_tool_blocks
from segue.wire.catalog.anthropic_content import parse_result_content, render_result_content, render_server_content
from segue.wire.catalog.field_codecs import ArgumentsCodec, Content, OutputCodec, Patch, custom_output
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_true
from segue.wire.catalog.shared_codecs import keys_output, object_arguments, with_failure_fields
from segue.wire.json_values import JsonObject, object_or_none

__all__ = ["ANTHROPIC"]


def _input_with_caller() -> ArgumentsCodec:
    """The input, and the calling tool in `caller`."""

    def render(call: ToolCall) -> Patch:
        parent = call.origin.parent
        caller = {} if parent is None else {"caller.type": "code_execution_20260120", "caller.tool_id": parent}
        return object_arguments("input").render(call) | caller

    return ArgumentsCodec(object_arguments("input").parse, render)


# ------------------------------------------------------------------------------------------------------------ messages

_ASSISTANT_BODY = EnclosingBody("anthropic", lambda block: {"messages": [{"role": "assistant", "content": [block]}]})
_USER_BODY = EnclosingBody("anthropic", lambda block: {"messages": [{"role": "user", "content": [block]}]})

_CONTENT = with_failure_fields(
    custom_output("content", parse_result_content, render_result_content), {"is_error": True}
)
_CALL = PayloadShape(
    id="id", name="name", arguments=_input_with_caller(), parent="caller.tool_id", enclosing_body=_ASSISTANT_BODY
)
_SERVER_CALL = PayloadShape(
    id="id",
    name="name",
    arguments=_input_with_caller(),
    kind="hosted",
    parent="caller.tool_id",
    enclosing_body=_ASSISTANT_BODY,
)


def _server_result(tool: str, wrap: Callable[[str], Any]) -> PayloadShape:
    """The result of a server tool; `wrap` builds its content from plain text."""

    def parse(payload: JsonObject) -> Content:
        content = payload.get("content")
        return (None if content is None else server_tool_blocks(content)), UNSET

    def render(response: ToolResponse) -> Patch:
        return {"content": render_server_content(response, f"{tool}_tool_result_error", wrap)}

    return PayloadShape(
        id="tool_use_id",
        tool=tool,
        output=OutputCodec(parse, render),
        failed=lambda payload: "error_code" in (object_or_none(payload.get("content")) or {}),
        kind="hosted",
        parent="caller.tool_id",
        enclosing_body=_ASSISTANT_BODY,
    )


def _wrap_web_search(text: str) -> list[JsonObject]:
    return [{"type": "web_search_result", "title": text, "url": "", "encrypted_content": "", "page_age": None}]


def _wrap_web_fetch(text: str) -> JsonObject:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    document = {"type": "document", "title": None, "citations": None, "source": source}
    return {"type": "web_fetch_result", "url": "", "retrieved_at": None, "content": document}


def _wrap_execution(kind: str) -> Callable[[str], JsonObject]:
    return lambda text: {"type": kind, "stdout": text, "stderr": "", "return_code": 0, "content": []}


def _wrap_file_view(text: str) -> JsonObject:
    lines = {"start_line": None, "num_lines": None, "total_lines": None}
    return {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": text, **lines}


def _wrap_tool_search(text: str) -> JsonObject:
    names = [{"type": "tool_reference", "tool_name": name} for name in text.split("\n") if name]
    return {"type": "tool_search_tool_search_result", "tool_references": names}


def _wrap_advisor(text: str) -> JsonObject:
    return {"type": "advisor_result", "text": text, "stop_reason": None}


# ------------------------------------------------------------------------------------------------------ managed agents

_EPOCH = "1970-01-01T00:00:00Z"


def _tool_use_event(kind: Any, **defaults: str) -> PayloadShape:
    return PayloadShape(
        id="id",
        name="name",
        arguments=object_arguments("input"),
        kind=kind,
        defaults={"processed_at": _EPOCH, **defaults},
    )


def _tool_result_event(key: str, kind: Any = "function", **defaults: str) -> PayloadShape:
    failed = is_true("is_error")
    return PayloadShape(id=key, item_id="id", output=_CONTENT, failed=failed, kind=kind, defaults=defaults)


def _parse_confirmation(event: JsonObject) -> str:
    reason = event.get("deny_message")
    return "approved" if event["result"] == "allow" else f"refused: {reason}" if reason else "refused"


def _render_confirmation(text: str) -> Patch:
    decision, _, reason = text.partition(": ")
    return {"result": "allow" if decision == "approved" else "deny"} | ({"deny_message": reason} if reason else {})


ANTHROPIC: dict[str, PayloadShape] = {
    "ResponseToolUseBlock": _CALL,
    "BrowserToolsetToolUseBlock": _CALL,
    "ComputerToolsetToolUseBlock": _CALL,
    "MemoryToolUseBlock": _CALL,
    "RequestToolResultBlock": PayloadShape(
        id="tool_use_id", output=_CONTENT, failed=is_true("is_error"), enclosing_body=_USER_BODY
    ),
    "ResponseServerToolUseBlock": _SERVER_CALL,
    "AdvisorServerToolUseBlock": _SERVER_CALL,
    "ResponseMCPToolUseBlock": PayloadShape(
        id="id",
        name="name",
        arguments=object_arguments("input"),
        kind="hosted",
        enclosing_body=_ASSISTANT_BODY,
        defaults={"server_name": "unknown"},
    ),
    "ResponseMCPToolResultBlock": PayloadShape(
        id="tool_use_id", output=_CONTENT, failed=is_true("is_error"), kind="hosted", enclosing_body=_ASSISTANT_BODY
    ),
    "ResponseWebSearchToolResultBlock": _server_result("web_search", _wrap_web_search),
    "ResponseWebFetchToolResultBlock": _server_result("web_fetch", _wrap_web_fetch),
    "ResponseCodeExecutionToolResultBlock": _server_result("code_execution", _wrap_execution("code_execution_result")),
    "ResponseBashCodeExecutionToolResultBlock": _server_result(
        "bash_code_execution", _wrap_execution("bash_code_execution_result")
    ),
    "ResponseTextEditorCodeExecutionToolResultBlock": _server_result("text_editor_code_execution", _wrap_file_view),
    "ResponseToolSearchToolResultBlock": _server_result("tool_search", _wrap_tool_search),
    "ResponseAdvisorToolResultBlock": _server_result("advisor", _wrap_advisor),
    # The wire does not parse this block; as a single payload it is a tool output.
    "MCPToolListingBlock": PayloadShape(
        tool="mcp_list_tools", output=keys_output("mcp_server_name", "tools"), kind="hosted"
    ),
    "AgentToolUseEvent": _tool_use_event("hosted"),
    "AgentToolResultEvent": _tool_result_event("tool_use_id", "hosted", processed_at=_EPOCH),
    "UserToolResultEvent": _tool_result_event("tool_use_id"),
    "UserToolConfirmationEvent": PayloadShape(
        id="tool_use_id", item_id="id", parse_approval=_parse_confirmation, render_approval=_render_confirmation
    ),
    "AgentMCPToolUseEvent": _tool_use_event("hosted", mcp_server_name="unknown"),
    "AgentMCPToolResultEvent": _tool_result_event("mcp_tool_use_id", "hosted", processed_at=_EPOCH),
    "AgentCustomToolUseEvent": _tool_use_event("function"),
    "UserCustomToolResultEvent": _tool_result_event("custom_tool_use_id"),
}
