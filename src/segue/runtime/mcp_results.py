"""Conversion of the results of MCP tools to a `Result`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from segue.canonical.blocks import Block, Media, Text
from segue.runtime.tool_types import Result

if TYPE_CHECKING:
    import mcp_types

__all__ = ["convert_result"]

_MAX_TEXT = 400_000
_MAX_MEDIA = 8_000_000


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
