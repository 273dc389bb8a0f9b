"""Anthropic's types: the blocks of Messages, and the events of Managed Agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from segue.canonical.blocks import ToolCall, ToolResponse
from segue.wire.anthropic.in_words import hosted_blocks
from segue.wire.catalog.anthropic_content import content_of, tell_content, told_content
from segue.wire.catalog.common import marked, members, object_at
from segue.wire.catalog.fields import Arguments, Content, Output, Patch, told
from segue.wire.catalog.shape import Inside, Shape, is_true
from segue.wire.fields import JsonObject, object_or_none

__all__ = ["ANTHROPIC"]


def _input() -> Arguments:
    """The input, and the calling tool in `caller`."""

    def render(call: ToolCall) -> Patch:
        parent = call.origin.parent
        caller = {} if parent is None else {"caller.type": "code_execution_20260120", "caller.tool_id": parent}
        return object_at("input").write(call) | caller

    return Arguments(object_at("input").read, render)


# ------------------------------------------------------------------------------------------------------------ messages

_MODEL = Inside("anthropic", lambda block: {"messages": [{"role": "assistant", "content": [block]}]})
_USER = Inside("anthropic", lambda block: {"messages": [{"role": "user", "content": [block]}]})

_CONTENT = marked(told("content", tell_content, content_of), {"is_error": True})
_CALL = Shape(id="id", name="name", arguments=_input(), parent="caller.tool_id", inside=_MODEL)
_SERVER_CALL = Shape(id="id", name="name", arguments=_input(), kind="hosted", parent="caller.tool_id", inside=_MODEL)


def _server_result(tool: str, wrapped: Callable[[str], Any]) -> Shape:
    """The result of a server tool; `wrap` builds its content from plain text."""

    def parse(payload: JsonObject) -> Content:
        content = payload.get("content")
        return (None if content is None else hosted_blocks(content)), UNSET

    def render(response: ToolResponse) -> Patch:
        return {"content": told_content(response, f"{tool}_tool_result_error", wrapped)}

    return Shape(
        id="tool_use_id",
        tool=tool,
        output=Output(parse, render),
        failed=lambda payload: "error_code" in (object_or_none(payload.get("content")) or {}),
        kind="hosted",
        parent="caller.tool_id",
        inside=_MODEL,
    )


def _found(text: str) -> list[JsonObject]:
    return [{"type": "web_search_result", "title": text, "url": "", "encrypted_content": "", "page_age": None}]


def _fetched(text: str) -> JsonObject:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    document = {"type": "document", "title": None, "citations": None, "source": source}
    return {"type": "web_fetch_result", "url": "", "retrieved_at": None, "content": document}


def _executed(kind: str) -> Callable[[str], JsonObject]:
    return lambda text: {"type": kind, "stdout": text, "stderr": "", "return_code": 0, "content": []}


def _viewed(text: str) -> JsonObject:
    lines = {"start_line": None, "num_lines": None, "total_lines": None}
    return {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": text, **lines}


def _found_tools(text: str) -> JsonObject:
    names = [{"type": "tool_reference", "tool_name": name} for name in text.split("\n") if name]
    return {"type": "tool_search_tool_search_result", "tool_references": names}


def _advised(text: str) -> JsonObject:
    return {"type": "advisor_result", "text": text, "stop_reason": None}


# ------------------------------------------------------------------------------------------------------ managed agents

_NO_TIME = "1970-01-01T00:00:00Z"


def _use(kind: Any, **defaults: str) -> Shape:
    return Shape(
        id="id", name="name", arguments=object_at("input"), kind=kind, defaults={"processed_at": _NO_TIME, **defaults}
    )


def _event(key: str, kind: Any = "function", **defaults: str) -> Shape:
    failed = is_true("is_error")
    return Shape(id=key, item="id", output=_CONTENT, failed=failed, kind=kind, defaults=defaults)


def _confirmed(event: JsonObject) -> str:
    reason = event.get("deny_message")
    return "approved" if event["result"] == "allow" else f"refused: {reason}" if reason else "refused"


def _confirmation(text: str) -> Patch:
    word, _, reason = text.partition(": ")
    return {"result": "allow" if word == "approved" else "deny"} | ({"deny_message": reason} if reason else {})


ANTHROPIC: dict[str, Shape] = {
    "ResponseToolUseBlock": _CALL,
    "BrowserToolsetToolUseBlock": _CALL,
    "ComputerToolsetToolUseBlock": _CALL,
    "MemoryToolUseBlock": _CALL,
    "RequestToolResultBlock": Shape(id="tool_use_id", output=_CONTENT, failed=is_true("is_error"), inside=_USER),
    "ResponseServerToolUseBlock": _SERVER_CALL,
    "AdvisorServerToolUseBlock": _SERVER_CALL,
    "ResponseMCPToolUseBlock": Shape(
        id="id",
        name="name",
        arguments=object_at("input"),
        kind="hosted",
        inside=_MODEL,
        defaults={"server_name": "unknown"},
    ),
    "ResponseMCPToolResultBlock": Shape(
        id="tool_use_id", output=_CONTENT, failed=is_true("is_error"), kind="hosted", inside=_MODEL
    ),
    "ResponseWebSearchToolResultBlock": _server_result("web_search", _found),
    "ResponseWebFetchToolResultBlock": _server_result("web_fetch", _fetched),
    "ResponseCodeExecutionToolResultBlock": _server_result("code_execution", _executed("code_execution_result")),
    "ResponseBashCodeExecutionToolResultBlock": _server_result(
        "bash_code_execution", _executed("bash_code_execution_result")
    ),
    "ResponseTextEditorCodeExecutionToolResultBlock": _server_result("text_editor_code_execution", _viewed),
    "ResponseToolSearchToolResultBlock": _server_result("tool_search", _found_tools),
    "ResponseAdvisorToolResultBlock": _server_result("advisor", _advised),
    # The wire does not parse this block; as a single payload it is a tool output.
    "MCPToolListingBlock": Shape(tool="mcp_list_tools", output=members("mcp_server_name", "tools"), kind="hosted"),
    "AgentToolUseEvent": _use("hosted"),
    "AgentToolResultEvent": _event("tool_use_id", "hosted", processed_at=_NO_TIME),
    "UserToolResultEvent": _event("tool_use_id"),
    "UserToolConfirmationEvent": Shape(id="tool_use_id", item="id", tell=_confirmed, untell=_confirmation),
    "AgentMCPToolUseEvent": _use("hosted", mcp_server_name="unknown"),
    "AgentMCPToolResultEvent": _event("mcp_tool_use_id", "hosted", processed_at=_NO_TIME),
    "AgentCustomToolUseEvent": _use("function"),
    "UserCustomToolResultEvent": _event("custom_tool_use_id"),
}
