"""Images, documents and search results.

A document of plain text is parsed as `Text`; same-API its native fragment is sent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, cast

from segue.canonical.blocks import Block, Media, Native, Opaque, Text
from segue.render.constraints import TEXTS
from segue.wire.anthropic.capabilities import API
from segue.wire.base import RenderContext
from segue.wire.json_values import JsonObject, object_or_none, optional_string, require_object, string_or_none
from segue.wire.media import decode_data_url, join_lines, report_dropped_name, report_unsupported

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"


# ------------------------------------------------------------------------------------------------------------------ in


def parse_image(block: JsonObject) -> Block:
    return _parse_source("image", block) or Opaque("image", native=Native(API, block))


def parse_document(block: JsonObject) -> Block:
    text = _document_text(block)
    if text:
        return Text(text, native=Native(API, block))
    return _parse_source("document", block) or Opaque("document", native=Native(API, block))


def _parse_source(kind: Any, block: JsonObject) -> Media | None:
    source = require_object(block.get("source"), "source")
    for key in ("type", "media_type", "data", "url", "file_id"):
        optional_string(source.get(key), f"source.{key}")
    native = Native(API, block)
    name = optional_string(block.get("title"), "title")
    match source:
        case {"type": "base64", "data": str(data)}:
            return Media(kind, string_or_none(source.get("media_type")), data=data, name=name, native=native)
        case {"type": "url", "url": str(url)}:
            return Media(kind, url=url, name=name, native=native)
        case {"type": "file", "file_id": str(file_id)}:
            return Media(kind, file_id=file_id, name=name, native=native)
        case _:
            return None


def _document_text(block: JsonObject) -> str:
    source = object_or_none(block.get("source")) or {}
    match source:
        case {"type": "text", "data": str(body)} | {"type": "content", "content": str(body)}:
            pass
        case {"type": "content", "content": [*parts]}:
            body = _join_texts(parts)
        case _:
            return ""
    return join_lines(block.get("title"), block.get("context"), body)


def parse_search_result(block: JsonObject) -> Block:
    parts: Any = block.get("content")
    texts = _join_texts(cast("list[Any]", parts)) if isinstance(parts, list) else None
    text = join_lines(block.get("title"), block.get("source"), texts)
    return Text(text, native=Native(API, block)) if text else Opaque("search_result", native=Native(API, block))


def _join_texts(parts: list[Any]) -> str:
    texts: list[object] = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": str(kind)}:
                texts.append(TEXTS.unsupported.format(kind=kind))
            case _:
                continue
    return join_lines(*texts)


# ----------------------------------------------------------------------------------------------------------------- out


def render_media(media: Media, context: RenderContext) -> JsonObject:
    """Return the block for media of another API; unsupported media becomes text and is reported."""
    if media.url is not None and media.url.startswith("data:"):
        media = decode_data_url(media)
    source = _render_source(media, context)
    if source is None:
        return {"type": "text", "text": report_unsupported(media, context.report)}
    block: JsonObject = {"type": media.kind, "source": source}
    if media.kind == "document" and media.name:
        block["title"] = media.name
    report_dropped_name(media, block, context.report)
    return block


def _render_source(media: Media, context: RenderContext) -> JsonObject | None:
    if media.kind not in ("image", "document"):
        return None
    if media.data is not None:
        return _render_inline(media.kind, media.mime, media.data)
    if media.url is None:
        return None
    if media.url.startswith(("https://", "http://")):
        return {"type": "url", "url": media.url}
    if context.fetch is None:
        return None
    data, mime = context.fetch(media.url)
    return _render_inline(media.kind, mime, b64encode(data).decode())


def _render_inline(kind: str, mime: str | None, data: str) -> JsonObject | None:
    if kind == "image":
        mime = "image/jpeg" if mime == "image/jpg" else mime or "image/png"
        return {"type": "base64", "media_type": mime, "data": data} if mime in _IMAGE_TYPES else None
    if mime is None or mime == _PDF:
        return {"type": "base64", "media_type": _PDF, "data": data}
    if not mime.startswith("text/"):
        return None
    try:
        return {"type": "text", "media_type": "text/plain", "data": b64decode(data, validate=True).decode()}
    except ValueError:
        return None
