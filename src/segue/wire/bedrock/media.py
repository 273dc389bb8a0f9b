"""Images, videos, audio and documents ⇄ `Media`, and search results as text.

A document of plain text is parsed as `Text`; same-API its native fragment is sent. Bytes are base64 text in JSON.
Converse fetches files from S3 only, which no other provider can read.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Literal, cast

from segue.canonical.blocks import Block, Media, Native, Opaque, Text
from segue.canonical.json import are_identical
from segue.render.report import Report
from segue.wire.base import RenderContext
from segue.wire.bedrock.capabilities import API
from segue.wire.json_values import JsonObject, object_or_none, string_or_none
from segue.wire.media import DOCUMENT_TYPES, decode_data_url, join_lines, report_unsupported

_Kind = Literal["image", "audio", "video", "document"]
MEDIA_KINDS: tuple[_Kind, ...] = ("image", "document", "video", "audio")

_DOCUMENTS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
_MIMES: dict[_Kind, dict[str, str]] = {
    "image": {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")},
    "document": {name: DOCUMENT_TYPES[name] for name in _DOCUMENTS},
    "video": {
        "mkv": "video/x-matroska",
        "mov": "video/quicktime",
        "mp4": "video/mp4",
        "webm": "video/webm",
        "flv": "video/x-flv",
        "mpeg": "video/mpeg",
        "mpg": "video/mpeg",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        **{name: f"audio/{name}" for name in ("opus", "wav", "aac", "flac", "mp4", "ogg", "webm")},
        "mp3": "audio/mpeg",
        "mka": "audio/x-matroska",
    },
}
_FORMATS = {kind: {mime: name for name, mime in reversed(table.items())} for kind, table in _MIMES.items()}
_FORMATS["image"]["image/jpg"] = "jpeg"
_FORMATS["audio"] |= {"audio/mp3": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}
_DEFAULT_FORMATS: dict[_Kind, str] = {"image": "png", "document": "pdf", "video": "mp4", "audio": "mp3"}

# «can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets», no two
# consecutive blanks; names are unique in a request.
_VALID_NAME = re.compile(r"(?!.*  )[a-zA-Z0-9 \-()\[\]]{1,200}")
_NAME_LIMIT = 200


# ------------------------------------------------------------------------------------------------------------------ in


def parse_media(kind: _Kind, block: JsonObject, inner: JsonObject) -> Block:
    """Return the media of a block `{kind: inner}`; in `guardContent` that block is nested in `block`."""
    if kind == "document" and (text := _document_text(inner)):
        return Text(text, native=Native(API, block))
    source = object_or_none(inner.get("source")) or {}
    form = str(inner.get("format"))
    mime = _MIMES[kind].get(form) or _newer_mime(kind, form)
    name = string_or_none(inner.get("name"))
    # BED-09: a MIME type in place of a format is rejected.
    native = Native(API, block, intact=form not in _FORMATS[kind])
    match source:
        case {"bytes": str(data)}:
            return Media(kind, mime, data=data, name=name, native=native)
        case {"s3Location": {"uri": str(uri)}}:
            return Media(kind, mime, file_id=uri, name=name, native=native)
        case _:
            return Opaque(kind, text=name or "", native=Native(API, block))


def _newer_mime(kind: _Kind, form: str) -> str:
    """Return the MIME type of a format that the service model does not list; clients also write the type itself."""
    return form if "/" in form else f"{'application' if kind == 'document' else kind}/{form}"


def _document_text(inner: JsonObject) -> str:
    source = object_or_none(inner.get("source")) or {}
    match source:
        case {"text": str(body)}:
            pass
        case {"content": [*parts]}:
            body = _join_texts(parts)
        case _:
            return ""
    return join_lines(inner.get("name"), inner.get("context"), body)


def parse_search_result(block: JsonObject, inner: JsonObject) -> Block:
    parts: Any = inner.get("content")
    texts = _join_texts(cast("list[Any]", parts)) if isinstance(parts, list) else None
    text = join_lines(inner.get("title"), inner.get("source"), texts)
    return Text(text, native=Native(API, block)) if text else Opaque("searchResult", native=Native(API, block))


def _join_texts(parts: list[Any]) -> str:
    return join_lines(*(part.get("text") for part in map(object_or_none, parts) if part is not None))


# ----------------------------------------------------------------------------------------------------------------- out


def render_media(media: Media, context: RenderContext) -> JsonObject:
    """Return the block for media of another API; unsupported media becomes text and is reported."""
    if media.url is not None and media.url.startswith("data:"):
        media = decode_data_url(media)
    elif media.data is None and media.url is not None and context.fetch is not None:
        data, mime = context.fetch(media.url)
        media = Media(media.kind, mime, data=b64encode(data).decode(), name=media.name or _file_name(media.url))
    form = format_name(media)
    if form is None or not (media.data or str(media.file_id).startswith("s3://")):
        return {"text": report_unsupported(media, context.report)}
    source: JsonObject = {"bytes": media.data} if media.data else {"s3Location": {"uri": media.file_id}}
    if media.kind == "document":
        return {"document": {"format": form, "name": media.name or "document", "source": source}}
    return {media.kind: {"format": form, "source": source}}


def format_name(media: Media) -> str | None:
    """Return the API's name of the media format; None if the API does not support it."""
    if media.mime is None:
        return _DEFAULT_FORMATS[media.kind]
    mime = media.mime.partition(";")[0].strip().lower()
    form = _FORMATS[media.kind].get(mime)
    return "txt" if form is None and media.kind == "document" and mime.startswith("text/") else form


def _file_name(url: str) -> str:
    return url.partition("?")[0].rstrip("/").rpartition("/")[2]


def rename_documents(messages: list[JsonObject], report: Report) -> list[JsonObject]:
    """Return the messages with valid and unique document names, also inside tool results."""
    taken: set[str] = set()

    def rename_items(items: list[Any]) -> list[Any]:
        renamed = [_rename_document(item, taken, report, rename_items) for item in items]
        return items if are_identical(renamed, items) else renamed

    rendered: list[JsonObject] = []
    for message in messages:
        content = rename_items(message["content"])
        rendered.append(message if content is message["content"] else {**message, "content": content})
    return rendered


def _rename_document(
    item: JsonObject, taken: set[str], report: Report, rename_items: Callable[[list[Any]], list[Any]]
) -> JsonObject:
    result, document = object_or_none(item.get("toolResult")), object_or_none(item.get("document"))
    if result is not None and isinstance(result.get("content"), list):
        renamed = rename_items(result["content"])
        return item if renamed is result["content"] else {**item, "toolResult": {**result, "content": renamed}}
    if document is None:
        return item
    name = _unique_name(str(document.get("name") or ""), taken)
    taken.add(name)
    if name == document.get("name"):
        return item
    report.add(
        "adjusted",
        f"document renamed to {name!r}: names must be valid and unique",
        subject=str(document.get("name") or ""),
    )
    return {**item, "document": {**document, "name": name}}


def _unique_name(name: str, taken: set[str]) -> str:
    """Return the name itself if it is valid and not taken, else a valid unique one."""
    if not _VALID_NAME.fullmatch(name):
        stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
        name = " ".join(re.sub(r"[^a-zA-Z0-9\-()\[\]]", " ", stem).split())[:_NAME_LIMIT].strip() or "document"
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name[: _NAME_LIMIT - 8]} {count}"
    return unique
