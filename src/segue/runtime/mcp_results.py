"""The results of MCP tools as content blocks (extra `mcp`)."""

from __future__ import annotations

import base64
import re
from typing import Literal

import mcp_types

from segue.canonical.blocks import Block, Media, Text
from segue.canonical.json import encode_json_text, to_plain_json
from segue.errors import InputError, format_count
from segue.runtime.tool_types import Result

_MAX_TEXT = 400_000
_MAX_MEDIA = 8_000_000
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;.*)?", re.ASCII)


def convert_result(result: mcp_types.CallToolResult) -> Result:
    """Convert the result of a call."""
    blocks = [block for content in result.content for block in _convert_block(content)]
    if not blocks and result.structured_content is not None:
        blocks.append(_convert_structured(result.structured_content))
    error = result.is_error is True
    if all(isinstance(block, Text) for block in blocks):
        text = "\n".join(block.text for block in blocks if isinstance(block, Text))
        return Result(_truncate(text) or "[nothing]", error=error)
    truncated = tuple(Text(_truncate(block.text)) if isinstance(block, Text) else block for block in blocks)
    return Result(truncated, error=error)


def _convert_structured(value: object) -> Text:
    try:
        return Text(encode_json_text(to_plain_json(value)))
    except InputError as error:
        return Text(f"[structuredContent left out: {error}]")


def _convert_block(block: mcp_types.ContentBlock) -> list[Block]:
    match block.type:
        case "text":
            return [Text(block.text)]
        case "image" | "audio" as kind:
            return [_convert_media(kind, block.mime_type, block.data)]
        case "resource_link":
            return [Text(f"[resource {block.name}: {block.uri}]")]
        case "resource":
            return _convert_resource(block.resource)


def _convert_resource(resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> list[Block]:
    uri, mime = resource.uri, resource.mime_type or "binary data"
    if not isinstance(resource, mcp_types.BlobResourceContents):
        return [Text(f"{uri}\n{resource.text}")]
    if mime.startswith("image/"):
        return [Text(uri), _convert_media("image", mime, resource.blob)]
    return [Text(f"[resource {uri}: {mime}, about {format_count(len(resource.blob) * 3 // 4, 'byte')}]")]


def _convert_media(kind: Literal["image", "audio"], media_type: str, data: str) -> Block:
    if len(data) > _MAX_MEDIA:
        return Text(f"[{kind} of {len(data) * 3 // 4:,} bytes, too large to be shown]")
    if not _MEDIA_TYPE.fullmatch(media_type):
        return Text(f"[{kind} left out: a media type was expected, not {media_type!r}]")
    # Some servers break the lines.
    joined = "".join(data.split())
    try:
        reason = "" if base64.b64decode(joined, validate=True) else "it is empty"
    except ValueError:
        reason = "it is not base64"
    return Text(f"[{kind} left out: {reason}]") if reason else Media(kind, media_type, joined)


def _truncate(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]}\n[{format_count(len(text) - _MAX_TEXT, 'character')} left out here]\n{text[-half:]}"
