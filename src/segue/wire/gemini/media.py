"""`inlineData` and `fileData` ⇄ `Media`: images, audio, video and documents."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Literal
from urllib.parse import urlsplit

from segue.canonical.blocks import Block, Media, Native, Opaque
from segue.wire.base import Fetch
from segue.wire.gemini.capabilities import API
from segue.wire.gemini.fields import JsonObject, get_object_strict, get_text_strict
from segue.wire.media import DOCUMENT_TYPES, decode_data_url

# The base64 that the API accepts: either alphabet, with or without padding, unused bits zero.
BASE64_PATTERN = "|".join(
    rf"(?:[{digits}]{{4}})*(?:[{digits}][AQgw](?:==)?|[{digits}]{{2}}[AEIMQUYcgkosw048]=?)?"
    for digits in ("A-Za-z0-9+/", "A-Za-z0-9_-")
)

_Kind = Literal["image", "audio", "video", "document"]

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_MIME_BY_EXTENSION = {
    **{name: f"image/{name}" for name in ("png", "jpeg", "webp", "heic", "heif", "gif")},
    **{name: DOCUMENT_TYPES[name] for name in ("pdf", "txt", "csv", "md", "html")},
    **{name: f"audio/{name}" for name in ("wav", "flac", "ogg")},
    **{name: f"video/{name}" for name in ("mp4", "mov", "webm")},
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
}
_DEFAULT_MIME: dict[_Kind, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}
_YOUTUBE_HOSTS = frozenset({"youtube.com", "www.youtube.com", "m.youtube.com", "youtu.be"})
# Files that only Google can read: uploaded there or in Google Cloud Storage.
_PROVIDER_FILES = ("https://generativelanguage.googleapis.com/", "gs://", "files/")


# ------------------------------------------------------------------------------------------------------------------ in


def parse_inline(part: JsonObject) -> Block:
    blob, path = get_object_strict(part, "inlineData")
    data, mime, name = (get_text_strict(blob, key, path) for key in ("data", "mimeType", "displayName"))
    if data is None or not re.fullmatch(BASE64_PATTERN, data):
        return Opaque("inlineData", native=Native(API, part, data is None))
    return Media(_media_kind(mime), mime, data=data, name=name, native=Native(API, part))


def parse_file(part: JsonObject) -> Block:
    file, path = get_object_strict(part, "fileData")
    uri, mime, name = (get_text_strict(file, key, path) for key in ("fileUri", "mimeType", "displayName"))
    if uri is None:
        return Opaque("fileData", native=Native(API, part))
    is_provider_file = uri.startswith(_PROVIDER_FILES) or not uri.startswith(("https://", "http://"))
    return Media(
        "video" if mime is None and _host(uri) in _YOUTUBE_HOSTS else _media_kind(mime or _guess_mime(uri)),
        mime,
        url=None if is_provider_file else uri,
        file_id=uri if is_provider_file else None,
        name=name,
        native=Native(API, part),
    )


def _media_kind(mime: str | None) -> _Kind:
    match (mime or "").partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "document"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _guess_mime(url: str) -> str | None:
    """Return the media type of a URL by its extension, or None."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    return _MIME_BY_EXTENSION.get(path.rpartition(".")[2].lower())


# ----------------------------------------------------------------------------------------------------------------- out


def render_media(media: Media, fetch: Fetch | None, *, urls: bool) -> JsonObject | None:
    """Return a part for cross-API media; None if the API does not accept it. `urls`: whether the model fetches URLs."""
    if media.data is not None or media.url is None or media.url.startswith("data:"):
        return render_inline(media)
    mime = _normalize_mime(media.mime or _guess_mime(media.url))
    if _host(media.url) in _YOUTUBE_HOSTS or (
        urls and media.url.startswith("https://") and _is_supported(media.kind, mime)
    ):
        return {"fileData": {"mimeType": mime, "fileUri": media.url} if mime else {"fileUri": media.url}}
    if fetch is None:
        return None
    data, fetched = fetch(media.url)
    return render_inline(Media(media.kind, fetched or mime, data=b64encode(data).decode()))


def render_inline(media: Media) -> JsonObject | None:
    """Return an `inlineData` part, or None without valid bytes of a supported type."""
    data, mime = _inline_data(media)
    mime = _normalize_mime(mime) or _DEFAULT_MIME[media.kind]
    if data is None or not _is_supported(media.kind, mime) or not re.fullmatch(BASE64_PATTERN, data):
        return None
    return {"inlineData": {"mimeType": mime, "data": data}}


def _normalize_mime(mime: str | None) -> str | None:
    return "image/jpeg" if mime == "image/jpg" else mime


def _is_supported(kind: _Kind, mime: str | None) -> bool:
    """Return whether the API accepts this type; an unknown type is left to the API."""
    match kind:
        case "image":
            return mime is None or mime in _IMAGE_TYPES
        case "document":
            return mime is None or mime == "application/pdf" or mime.startswith("text/")
        case "audio" | "video":
            return True


def _inline_data(media: Media) -> tuple[str | None, str | None]:
    """Return base64 data and media type, also from a `data:` URL."""
    inline = media if media.data is not None or media.url is None else decode_data_url(media)
    return inline.data, inline.mime
