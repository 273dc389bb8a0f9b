"""The content of Anthropic's tool results: lists of blocks, or an object specific to the tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolResponse
from segue.canonical.json import encode_json_text, parse_argument_text
from segue.errors import InputError
from segue.wire.anthropic.items import intact_fragment, parse_content
from segue.wire.catalog.field_codecs import response_text
from segue.wire.json_values import JsonObject, require_list

__all__ = ["parse_result_content", "render_result_content", "render_server_content"]


_ERROR_CODE = re.compile("[a-z]+(_[a-z]+)+|unavailable")


def parse_result_content(content: object) -> list[Block]:
    """The blocks of a content; blocks that a result can't hold become text."""
    if isinstance(content, str):
        return [Text(content)]
    return [_as_result_block(block) for block in parse_content(require_list(content, "content"), None)]


def _as_result_block(block: Block) -> Block:
    if isinstance(block, Text | Media | Opaque):
        return block
    return Text(encode_json_text(block.native.fragment if block.native is not None else {}))


def render_result_content(response: ToolResponse) -> list[JsonObject]:
    blocks = response.content or ()
    if response.structured is not UNSET:
        blocks = (Text(encode_json_text(response.structured)), *blocks)
    return [rendered for block in blocks if (rendered := _render_block(block)) is not None]


def _render_block(block: Block) -> JsonObject | None:
    original = intact_fragment(block.native)
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


def render_server_content(response: ToolResponse, error_type: str, wrap: Callable[[str], Any]) -> Any:
    """The content of a server tool's result, from the text it was parsed to, or from any other text."""
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
    """ANT-32: a web search result is accepted only with the server's `encrypted_content`."""
    for entry in results:
        if entry["type"] == "web_search_result" and not entry.get("encrypted_content"):
            raise InputError(
                "web search results need the server's encrypted_content, so new ones can't be created", path="content"
            )
    return results


def _is_typed_content(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_typed_content(item) for item in cast("list[Any]", value))
    return isinstance(value, dict) and isinstance(cast("JsonObject", value).get("type"), str)
