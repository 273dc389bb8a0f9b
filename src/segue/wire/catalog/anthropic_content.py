"""The content of Anthropic's tool results: lists of blocks, or an object specific to the tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from msgspec import UNSET

from segue.canonical.blocks import Block, Media, Opaque, Text, ToolResponse
from segue.canonical.jsontext import parse_argument_text, write_text
from segue.errors import InputError
from segue.wire.anthropic.items import own_fragment, parse_content
from segue.wire.catalog.fields import said
from segue.wire.fields import JsonObject, list_of

__all__ = ["content_of", "tell_content", "told_content"]


_CODE = re.compile("[a-z]+(_[a-z]+)+|unavailable")


def tell_content(content: object) -> list[Block]:
    """The blocks of a content; blocks that a result can't hold become text."""
    if isinstance(content, str):
        return [Text(content)]
    return [_in_result(block) for block in parse_content(list_of(content, "content"), None)]


def _in_result(block: Block) -> Block:
    if isinstance(block, Text | Media | Opaque):
        return block
    return Text(write_text(block.native.fragment if block.native is not None else {}))


def content_of(response: ToolResponse) -> list[JsonObject]:
    blocks = response.content or ()
    if response.structured is not UNSET:
        blocks = (Text(write_text(response.structured)), *blocks)
    return [written for block in blocks if (written := _written(block)) is not None]


def _written(block: Block) -> JsonObject | None:
    own = own_fragment(block.native)
    if own is not None:
        return own
    if isinstance(block, Media) and (source := _source(block)) is not None:
        return {"type": block.kind, "source": source}
    text = block.url or block.name if isinstance(block, Media) else getattr(block, "text", "")
    # ANT-13: no empty text next to other blocks
    return {"type": "text", "text": text} if text else None


def _source(media: Media) -> JsonObject | None:
    if media.kind not in ("image", "document"):
        return None
    if media.data is not None:
        usual = "image/png" if media.kind == "image" else "application/pdf"
        return {"type": "base64", "media_type": media.mime or usual, "data": media.data}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id} if media.file_id is not None else None


def told_content(response: ToolResponse, error: str, wrapped: Callable[[str], Any]) -> Any:
    """The content of a server tool's result, from the text it was parsed to, or from any other text."""
    text = said(response)
    given, _ = parse_argument_text(text)
    if _is_typed(given):
        return _sealed(cast("list[JsonObject]", given)) if isinstance(given, list) else given
    if response.error:
        code, _, message = text.partition("\n")
        if not _CODE.fullmatch(code):
            code, message = "unavailable", text
        return {"type": error, "error_code": code} | ({"error_message": message} if message else {})
    made = wrapped(text)
    return _sealed(cast("list[JsonObject]", made)) if isinstance(made, list) else made


def _sealed(found: list[JsonObject]) -> list[JsonObject]:
    """ANT-32: a web search result is accepted only with the server's `encrypted_content`."""
    for entry in found:
        if entry["type"] == "web_search_result" and not entry.get("encrypted_content"):
            raise InputError(
                "web search results need the server's encrypted_content, so new ones can't be created", path="content"
            )
    return found


def _is_typed(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_typed(item) for item in cast("list[Any]", value))
    return isinstance(value, dict) and isinstance(cast("JsonObject", value).get("type"), str)
