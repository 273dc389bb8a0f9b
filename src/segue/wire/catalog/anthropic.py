"""Anthropic's types: the blocks of Messages, and the events of Managed Agents."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.wire.anthropic.capabilities import API
from segue.wire.anthropic.items import parse_content
from segue.wire.anthropic.server_results import server_tool_blocks
from segue.wire.catalog.codecs import (
    ArgumentsCodec,
    Content,
    OutputCodec,
    Patch,
    approval_field,
    custom_output,
    keys_output,
    object_arguments,
    response_text,
    with_failure_fields,
)
from segue.wire.catalog.shape import EnclosingBody, PayloadShape, is_true
from segue.wire.json_values import JsonObject, object_or_none, require_list
from segue.wire.merge import intact_fragment

# ------------------------------------------------------------------------------------------------------ result content


_ERROR_CODE = re.compile("[a-z]+(_[a-z]+)+|unavailable")


def _parse_result_content(content: object) -> list[Block]:
    """Parse the blocks of a content; blocks that a result can't hold become text."""
    if isinstance(content, str):
        return [Text(content)]
    return [_as_result_block(block) for block in parse_content(require_list(content, "content"), None)]


def _as_result_block(block: Block) -> Block:
    if isinstance(block, Text | Media | Opaque):
        return block
    return Text(encode_json_text(block.native.fragment if block.native is not None else {}))


def _render_result_content(response: ToolResponse) -> list[JsonObject]:
    blocks = response.content or ()
    if response.structured is not UNSET:
        blocks = (Text(encode_json_text(response.structured)), *blocks)
    return [rendered for block in blocks if (rendered := _render_block(block)) is not None]


def _render_block(block: Block) -> JsonObject | None:
    original = intact_fragment(block.native, API)
    if original is not None:
        return original
    if isinstance(block, Media) and (source := _render_source(block)) is not None:
        return {"type": block.kind, "source": source}
    text = block.url or block.name if isinstance(block, Media) else getattr(block, "text", "")
    # ANT-13: no empty text next to other blocks
    return {"type": "text", "text": text} if text else None


def _render_source(media: Media) -> JsonObject | None:
    if media.kind not in ("image", "document"):
        return None
    if media.data is not None:
        default_type = "image/png" if media.kind == "image" else "application/pdf"
        return {"type": "base64", "media_type": media.mime or default_type, "data": media.data}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id} if media.file_id is not None else None


def _render_server_content(response: ToolResponse, error_type: str, wrap: Callable[[str], Any]) -> Any:
    """Render the content of a server tool's result, from the text it was parsed to, or from any other text."""
    text = response_text(response)
    content, _ = parse_argument_text(text)
    if _is_typed_content(content):
        return _require_encrypted(cast("list[JsonObject]", content)) if isinstance(content, list) else content
    if response.error:
        code, _, message = text.partition("\n")
        if not _ERROR_CODE.fullmatch(code):
            code, message = "unavailable", text
        return {"type": error_type, "error_code": code} | ({"error_message": message} if message else {})
    wrapped = wrap(text)
    return _require_encrypted(cast("list[JsonObject]", wrapped)) if isinstance(wrapped, list) else wrapped


def _require_encrypted(results: list[JsonObject]) -> list[JsonObject]:
    """Raise `InputError` for a web search result without the server's `encrypted_content` (ANT-32)."""
    for entry in results:
        if entry["type"] == "web_search_result" and not entry.get("encrypted_content"):
            message = "web search results need the server's encrypted_content, so new ones can't be created"
            raise InputError(message, path="content")
    return results


def _is_typed_content(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_typed_content(item) for item in cast("list[Any]", value))
    return isinstance(value, dict) and isinstance(cast("JsonObject", value).get("type"), str)


def _input_with_caller() -> ArgumentsCodec:
    """Return a codec for the input, and the calling tool in `caller`."""

    def render(call: ToolCall) -> Patch:
        parent = call.origin.parent
        caller = {} if parent is None else {"caller.type": "code_execution_20260120", "caller.tool_id": parent}
        return object_arguments("input").render(call) | caller

    return ArgumentsCodec(object_arguments("input").parse, render)


# ------------------------------------------------------------------------------------------------------------ messages

_ASSISTANT_BODY = EnclosingBody("anthropic", lambda block: {"messages": [{"role": "assistant", "content": [block]}]})
_USER_BODY = EnclosingBody("anthropic", lambda block: {"messages": [{"role": "user", "content": [block]}]})

_CONTENT = with_failure_fields(
    custom_output("content", _parse_result_content, _render_result_content), {"is_error": True}
)
_CALL = PayloadShape(
    name="name", arguments=_input_with_caller(), parent="caller.tool_id", enclosing_body=_ASSISTANT_BODY
)
_SERVER_CALL = PayloadShape(
    name="name", arguments=_input_with_caller(), kind="hosted", parent="caller.tool_id", enclosing_body=_ASSISTANT_BODY
)


def _server_result(tool: str, wrap: Callable[[str], Any]) -> PayloadShape:
    """Return the shape of a server tool's result; `wrap` builds its content from plain text."""

    def parse(payload: JsonObject) -> Content:
        content = payload.get("content")
        return (None if content is None else server_tool_blocks(content)), UNSET

    def render(response: ToolResponse) -> Patch:
        return {"content": _render_server_content(response, f"{tool}_tool_result_error", wrap)}

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


# ------------------------------------------------------------------------------------------------------ managed agents

_EPOCH = "1970-01-01T00:00:00Z"


def _tool_use_event(kind: Any, **defaults: str) -> PayloadShape:
    return PayloadShape(
        name="name", arguments=object_arguments("input"), kind=kind, defaults={"processed_at": _EPOCH, **defaults}
    )


def _tool_result_event(key: str, kind: Any = "function", **defaults: str) -> PayloadShape:
    failed = is_true("is_error")
    return PayloadShape(id=key, item_id="id", output=_CONTENT, failed=failed, kind=kind, defaults=defaults)


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
    "ResponseAdvisorToolResultBlock": _server_result(
        "advisor", lambda text: {"type": "advisor_result", "text": text, "stop_reason": None}
    ),
    # The wire does not parse this block; as a single payload it is a tool output.
    "MCPToolListingBlock": PayloadShape(
        id=None, tool="mcp_list_tools", output=keys_output("mcp_server_name", "tools"), kind="hosted"
    ),
    "AgentToolUseEvent": _tool_use_event("hosted"),
    "AgentToolResultEvent": _tool_result_event("tool_use_id", "hosted", processed_at=_EPOCH),
    "UserToolResultEvent": _tool_result_event("tool_use_id"),
    "UserToolConfirmationEvent": PayloadShape(
        id="tool_use_id", item_id="id", approval=approval_field("result", "allow", "deny", "deny_message")
    ),
    "AgentMCPToolUseEvent": _tool_use_event("hosted", mcp_server_name="unknown"),
    "AgentMCPToolResultEvent": _tool_result_event("mcp_tool_use_id", "hosted", processed_at=_EPOCH),
    "AgentCustomToolUseEvent": _tool_use_event("function"),
    "UserCustomToolResultEvent": _tool_result_event("custom_tool_use_id"),
}
