"""Runtime tools made from the tools that an MCP server declares, and results made from the server's answers.

A server's tool annotations are displayed but not trusted: every call needs approval unless a rule allows it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from segue.canonical.blocks import Block, Media, Text
from segue.runtime.tool_types import ApprovalRequest, Arguments, Context, Result, Tool
from segue.runtime.toolbox import find_schema_error

if TYPE_CHECKING:
    import mcp_types

_MAX_NAME = 64
_MAX_DESCRIPTION = 4_000
_MAX_TEXT = 400_000
_MAX_MEDIA = 8_000_000

CallFunction = Callable[[str, Arguments, Context], Awaitable[Result]]


def make_tools(
    server: str,
    declarations: Iterable[mcp_types.Tool],
    call: CallFunction,
    *,
    timeout: float,
    has_own_timeout: bool,
) -> tuple[Tool, ...]:
    """Return a tool for each declaration with a valid schema, in order of name.

    `call` gets the tool's name on the server. With `has_own_timeout`, the user's time limit does not apply.
    """
    tools: dict[str, Tool] = {}
    for declared in sorted(declarations, key=lambda declared: declared.name):
        tool = _make_tool(server, declared, call, tools, timeout=timeout, has_own_timeout=has_own_timeout)
        if tool is not None:
            tools[tool.name] = tool
    return tuple(tools.values())


def _make_tool(
    server: str,
    declared: mcp_types.Tool,
    call: CallFunction,
    taken: Mapping[str, Tool],
    *,
    timeout: float,
    has_own_timeout: bool,
) -> Tool | None:
    schema: dict[str, Any] = {"type": "object", "properties": {}, **declared.input_schema}
    if schema["type"] != "object" or find_schema_error(schema):
        return None
    name = stem = f"{server}__{re.sub(r'[^A-Za-z0-9_-]', '_', declared.name)}"[:_MAX_NAME]
    number = 2
    while name in taken:
        name = f"{stem[: _MAX_NAME - 4]}_{number}"
        number += 1
    raw = declared.name

    async def run(arguments: Arguments, context: Context) -> Result:
        return await call(raw, arguments, context)

    def approval_request(arguments: Arguments, folder: Path) -> ApprovalRequest:
        subject = msgspec.json.encode(arguments, order="sorted").decode()
        lines = [f"{key}: {value}" for key, value in arguments.items()]
        return ApprovalRequest(
            name,
            subject,
            f"call {raw} of the MCP server {server}",
            "\n".join([*lines, *_format_hints(declared)]),
        )

    return Tool(
        name,
        (declared.description or declared.title or raw)[:_MAX_DESCRIPTION],
        schema,
        run,
        blocking=False,
        timeout=timeout,
        timeout_mode="own" if has_own_timeout else "inside",
        approval_request=approval_request,
        summarize=lambda arguments: ", ".join(str(value) for value in arguments.values())[:120],
    )


def _format_hints(declared: mcp_types.Tool) -> list[str]:
    annotations = declared.annotations
    if annotations is None:
        return []
    hints = {
        "read-only": annotations.read_only_hint,
        "destructive": annotations.destructive_hint,
        "open-world": annotations.open_world_hint,
    }
    declared_hints = [text for text, hint in hints.items() if hint]
    return [f"(declared by the server: {', '.join(declared_hints)})"] if declared_hints else []


def convert_result(result: mcp_types.CallToolResult) -> Result:
    blocks = [block for content in result.content for block in _convert_content(content)]
    if not blocks and result.structured_content is not None:
        blocks = [Text(msgspec.json.encode(result.structured_content).decode())]
    if all(isinstance(block, Text) for block in blocks):
        text = "\n".join(block.text for block in blocks if isinstance(block, Text))
        return Result(_truncate(text) or "[nothing]", error=result.is_error)
    truncated = tuple(Text(_truncate(block.text)) if isinstance(block, Text) else block for block in blocks)
    return Result(truncated, error=result.is_error)


def _convert_content(content: Any) -> list[Block]:
    match content.type:
        case "text":
            return [Text(content.text)]
        case "image" | "audio":
            return [_make_media(content.type, content.mime_type, content.data)]
        case "resource_link":
            return [Text(f"[resource {content.name}: {content.uri}]")]
        case "resource":
            resource = content.resource
            if hasattr(resource, "text"):
                return [Text(f"{resource.uri}\n{resource.text}")]
            mime = resource.mime_type or ""
            if mime.startswith("image/"):
                return [Text(str(resource.uri)), _make_media("image", mime, resource.blob)]
            return [
                Text(f"[resource {resource.uri}: {mime or 'binary data'}, about {len(resource.blob) * 3 // 4:,} bytes]")
            ]
        case other:
            return [Text(f"[{other} not supported here]")]


def _make_media(kind: Any, mime: str, data: str) -> Block:
    if len(data) > _MAX_MEDIA:
        return Text(f"[{kind} of {len(data) * 3 // 4:,} bytes, too large to be shown]")
    return Media(kind, mime, data)


def _truncate(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]}\n[{len(text) - _MAX_TEXT:,} characters left out here]\n{text[-half:]}"
