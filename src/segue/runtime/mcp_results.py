"""The results of MCP tools, parsed from a server's JSON.

A content block that is invalid or unknown is replaced by a line of text that states what was left out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Literal, cast

from segue.canonical.blocks import Block, Media, Text
from segue.canonical.json import encode_json_text, to_plain_json
from segue.errors import InputError
from segue.runtime.tool_types import Result
from segue.wire.json_values import JsonObject, json_type_name, optional_string, require_object, require_string

_MAX_TEXT = 400_000
_MAX_MEDIA = 8_000_000
_MAX_BLOCKS = 1_000
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;.*)?", re.ASCII)


def parse_result(result: Mapping[str, Any]) -> Result:
    """Parse the result of `tools/call`."""
    blocks: list[Block] = []
    content: object = result.get("content")
    if isinstance(content, list):
        values = cast("list[object]", content)
        for position, value in enumerate(values[:_MAX_BLOCKS]):
            blocks += _parse_block(value, position)
        if len(values) > _MAX_BLOCKS:
            blocks.append(Text(f"[{len(values) - _MAX_BLOCKS:,} more content blocks left out]"))
    elif content is not None:
        blocks.append(_left_out("content", f"a list was expected, not {json_type_name(content)}"))
    if not blocks and (structured := result.get("structuredContent")) is not None:
        blocks.append(_parse_structured(structured))
    flag: object = result.get("isError")
    if flag is not None and not isinstance(flag, bool):
        blocks.append(_left_out("isError", f"a boolean was expected, not {json_type_name(flag)}"))
    if all(isinstance(block, Text) for block in blocks):
        text = "\n".join(block.text for block in blocks if isinstance(block, Text))
        return Result(_truncate(text) or "[nothing]", error=flag is True)
    truncated = tuple(Text(_truncate(block.text)) if isinstance(block, Text) else block for block in blocks)
    return Result(truncated, error=flag is True)


def _left_out(name: str, reason: str) -> Text:
    return Text(f"[{name} left out: {reason}]")


def _parse_block(value: object, position: int) -> list[Block]:
    try:
        return _convert_block(require_object(to_plain_json(value)))
    except InputError as error:
        return [_left_out(f"content block {position + 1}", str(error))]


def _parse_structured(value: object) -> Text:
    try:
        return Text(encode_json_text(to_plain_json(value)))
    except InputError as error:
        return _left_out("structuredContent", str(error))


def _convert_block(block: JsonObject) -> list[Block]:
    match require_string(block.get("type"), "type"):
        case "text":
            return [Text(require_string(block.get("text"), "text"))]
        case "image" | "audio" as kind:
            return [_parse_media(kind, block.get("mimeType"), block.get("data"), "data")]
        case "resource_link":
            uri = require_string(block.get("uri"), "uri")
            return [Text(f"[resource {optional_string(block.get('name'), 'name') or uri}: {uri}]")]
        case "resource":
            return _convert_resource(require_object(block.get("resource"), "resource"))
        case other:
            raise InputError(f"unknown type {other!r}", path="type")


def _convert_resource(resource: JsonObject) -> list[Block]:
    uri = require_string(resource.get("uri"), "resource.uri")
    if "text" in resource:
        return [Text(f"{uri}\n{require_string(resource['text'], 'resource.text')}")]
    mime = optional_string(resource.get("mimeType"), "resource.mimeType") or ""
    if mime.startswith("image/"):
        return [Text(uri), _parse_media("image", mime, resource.get("blob"), "resource.blob")]
    blob = require_string(resource.get("blob"), "resource.blob")
    return [Text(f"[resource {uri}: {mime or 'binary data'}, about {len(blob) * 3 // 4:,} bytes]")]


def _parse_media(kind: Literal["image", "audio"], mime: object, data: object, path: str) -> Block:
    encoded = require_string(data, path)
    if len(encoded) > _MAX_MEDIA:
        return Text(f"[{kind} of {len(encoded) * 3 // 4:,} bytes, too large to be shown]")
    media_type = require_string(mime, "mimeType")
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise InputError(f"a media type was expected, not {media_type!r}", path="mimeType")
    # Some servers break the lines.
    joined = "".join(encoded.split())
    try:
        is_empty = not base64.b64decode(joined, validate=True)
    except ValueError:
        raise InputError("it is not base64", path=path) from None
    if is_empty:
        raise InputError("it is empty", path=path)
    return Media(kind, media_type, joined)


def _truncate(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]}\n[{len(text) - _MAX_TEXT:,} characters left out here]\n{text[-half:]}"
