"""Content parts ⇄ blocks.

A part of an unknown type becomes an `Opaque` block that holds the whole part. Same-API, each part is sent as the
original object; a part of the other side's type (`output_text` in a user message) is parsed and repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never, cast

import msgspec

from segue.canonical.blocks import Block, Code, Media, Native, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.errors import InputError, ProjectionError
from segue.render.constraints import TEXTS
from segue.wire.code import fence_code
from segue.wire.json_values import (
    JsonObject,
    json_type_name,
    object_or_none,
    optional_object,
    optional_string,
    require_list,
    require_object,
    require_string,
    string_or_none,
)
from segue.wire.media import add_extension, report_dropped_name, report_unsupported
from segue.wire.merge import replace_modelled_fields
from segue.wire.mixed_body import parse_item, parse_reasoning_item
from segue.wire.openai_responses.context import OPENAI, ResponsesContext, ResponsesDialect
from segue.wire.openai_shared import AUDIO_TYPES, data_url, fetch_media, image_detail, split_data_url

_Side: TypeAlias = Literal["input", "output"]
# OAI-RESP-15
_TEXT_TYPES: dict[_Side, str] = {"input": "input_text", "output": "output_text"}
_TEXT_TYPE_NAMES = tuple(_TEXT_TYPES.values())
_TEXT_PART_TYPES = frozenset({"input_text", "output_text", "text"})
PART_KEYS = frozenset(
    {"type", "text", "refusal", "image_url", "detail", "file_id", "file_url", "file_data", "filename", "input_audio"}
    | {"image_url.url", "image_url.detail", "input_audio.data", "input_audio.format"}
)
# Types in use that are not listed for messages.
_UNLISTED_TYPES = frozenset({"input_audio", "computer_screenshot", "summary_text", "reasoning_text"})
# Types known to be invalid here, or parts without a required field. Any other may be newer than this table.
_REJECTED_TYPES = frozenset(
    {"input_image", "input_file", "image", "image_url", "file", "document", "tool_use", "tool_result", "thinking", ""}
)
_PDF = "application/pdf"
# Kinds of media that are not accepted as a file.
_MediaKind: TypeAlias = Literal["image", "audio", "video", "document"]
_NO_FILES: tuple[_MediaKind, ...] = ("image", "audio", "video")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_parts(value: object, side: _Side, path: str, dialect: ResponsesDialect = OPENAI) -> list[Block]:
    blocks: list[Block] = []
    for index, item in enumerate(require_list(value, path)):
        try:
            part = require_object(item)
            # An output's parts are never calls or results.
            may_be_item = path != "output" and part.get("type") not in _TEXT_TYPE_NAMES
            foreign = parse_item(part, dialect.body_api) if may_be_item else None
            if foreign is None and may_be_item and side == "output":
                foreign = parse_reasoning_item(part, dialect.body_api)
            blocks.append(foreign or _parse_part(part, side, dialect))
        except InputError as error:
            raise error.with_prefix(f"{path}[{index}]") from None
    return blocks


def are_intact(blocks: Iterable[Block], dialect: ResponsesDialect) -> bool:
    """Return whether each part can be sent unchanged."""
    return False not in [
        block.native is not None and block.native.intact and block.native.api == dialect.name for block in blocks
    ]


def _parse_part(part: JsonObject, side: _Side, dialect: ResponsesDialect) -> Block:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise InputError(f"a part's `type` must be a string, not {json_type_name(kind)}", path="type")
    if kind in _TEXT_PART_TYPES:
        return Text(
            require_string(part.get("text"), "text"), native=Native(dialect.name, part, kind == _TEXT_TYPES[side])
        )
    if kind == "refusal":
        return Text(
            require_string(part.get("refusal"), "refusal"),
            refusal=True,
            native=Native(dialect.name, part, side == "output"),
        )
    text = string_or_none(part.get("text")) or ""
    unknown = dialect.accepts_part is not None and not dialect.accepts_part(part)
    media = _parse_media(kind, part, dialect)
    if media is not None and (side == "output" or unknown):
        media = msgspec.structs.replace(media, native=Native(dialect.name, part, intact=False))
    refused = kind in _REJECTED_TYPES or (side == "output" and kind in _UNLISTED_TYPES) or unknown
    return media or Opaque(kind, text=text, native=Native(dialect.name, part, not refused))


def _parse_media(kind: str, part: JsonObject, dialect: ResponsesDialect) -> Media | None:
    match kind:
        case "input_image" | "image_url":
            # An object with the URL is the Chat Completions form.
            url_object = object_or_none(part.get("image_url"))
            url = optional_string(part.get("image_url"), "image_url") if url_object is None else url_object.get("url")
            if url_object is not None:
                optional_string(url, "image_url.url")
            return parse_image_url(part, url, dialect, intact=kind == "input_image" and url_object is None)
        case "input_file":
            return _parse_file(part, dialect)
        case "input_audio":
            audio = optional_object(part.get("input_audio"), kind) or {}
            data, form = (optional_string(audio.get(key), f"{kind}.{key}") for key in ("data", "format"))
            if data is None or form is None:
                return None
            mime, native = AUDIO_TYPES.get(form, f"audio/{form}"), Native(dialect.name, part)
            return Media("audio", mime=mime, data=data, native=native)
        case _:
            return None


def parse_image_url(
    part: JsonObject, url: object, dialect: ResponsesDialect = OPENAI, *, intact: bool = True
) -> Media | None:
    """Parse an image by URL, data URL or file id."""
    file_id = optional_string(part.get("file_id"), "file_id")
    native = Native(dialect.name, part, intact)
    detail = image_detail(part.get("detail"))
    if not isinstance(url, str):
        return Media("image", file_id=file_id, native=native, extra=detail) if file_id is not None else None
    mime, data = split_data_url(url)
    return Media("image", mime, data, url if data is None else None, file_id, native=native, extra=detail)


def are_strings_or_none(fields: JsonObject, *keys: str) -> bool:
    """Return whether each of these fields is a string, null or absent."""
    return all(fields.get(key) is None or isinstance(fields[key], str) for key in keys)


def _parse_file(part: JsonObject, dialect: ResponsesDialect) -> Media | None:
    data, url, file_id, name = (
        optional_string(part.get(key), key) for key in ("file_data", "file_url", "file_id", "filename")
    )
    if data is None and url is None and file_id is None:
        return None
    mime, decoded = split_data_url(data) if data is not None else (None, None)
    # OAI-RESP-16
    kind: _MediaKind = "document"
    for other in _NO_FILES:
        kind = other if (mime or "").startswith(f"{other}/") else kind
    native = Native(dialect.name, part, intact=kind == "document")
    return Media(kind, mime, decoded or data, url, file_id, name, native=native)


# ----------------------------------------------------------------------------------------------------------------- out


def render_content(blocks: Sequence[Block], context: ResponsesContext) -> str | list[JsonObject]:
    """Render one text as a string, anything else as a list of parts."""
    if not blocks:
        return ""
    if len(blocks) == 1 and context.own_native(blocks[0].native) is None:
        part = render_part(blocks[0], context)
        return part["text"] if part["type"] == "input_text" else [part]
    return [render_part(block, context) for block in blocks]


def render_part(block: Block, context: ResponsesContext) -> JsonObject:
    """Render a part of an input message or of a tool output."""
    if isinstance(block, ToolCall | ToolResponse):
        raise ProjectionError(f"{block.name or 'a tool'}: a tool call or result is not allowed in message content")
    native = context.own_native(block.native)
    if native is not None and native.intact:
        return cast("JsonObject", native.fragment)
    part = _render_new_part(block, context)
    return (
        part
        if native is None or isinstance(block, Opaque)
        else replace_modelled_fields(native.fragment, part, PART_KEYS)
    )


def _render_new_part(block: Text | Media | Code | Opaque | Thinking, context: ResponsesContext) -> JsonObject:
    match block:
        case Text():
            return _text_part(block.text)
        case Media():
            part = _render_media(block, context) or _text_part(report_unsupported(block, context.report))
            report_dropped_name(block, part, context.report)
            return part
        case Code():
            return _text_part(fence_code(block))
        case Opaque():
            return _text_part(report_unsupported(block, context.report))
        case Thinking():
            context.report.add("reasoning", "reasoning outside a reply rendered as text", level="changed")
            return _text_part(TEXTS.reasoning.format(content=block.text))
        case _:
            assert_never(block)


def _text_part(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _is_provider_file(media: Media, context: ResponsesContext) -> bool:
    return media.file_id is not None and media.native is not None and media.native.api in context.dialect.file_apis


def _render_media(media: Media, context: ResponsesContext) -> JsonObject | None:
    if media.kind == "image":
        detail = (media.extra or {}).get("detail", "auto")
        if media.data is None and media.url is None:
            part = {"type": "input_image", "detail": detail, "file_id": media.file_id}
            return part if _is_provider_file(media, context) else None
        url = media.url if media.data is None else data_url(media.mime or "image/png", media.data)
        return {"type": "input_image", "detail": detail, "image_url": url}
    if media.kind != "document":
        return None
    if media.data is None and media.url is not None and context.fetch is None:
        return {"type": "input_file", "file_url": media.url}
    data, mime = fetch_media(media, context.fetch)
    if data is None:
        return {"type": "input_file", "file_id": media.file_id} if _is_provider_file(media, context) else None
    mime = mime or _PDF
    return {"type": "input_file", "filename": add_extension(media.name, mime), "file_data": data_url(mime, data)}
