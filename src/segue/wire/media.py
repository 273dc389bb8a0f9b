"""Steps that the wires share for media: file names, `data:` URLs and audio types."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.blocks import Media, Opaque
from segue.render.constraints import TEXTS
from segue.render.report import Report

_EXTENSIONS = {
    "application/pdf": "pdf",
    "application/json": "json",
    "application/xml": "xml",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/xml": "xml",
}
DOCUMENT_TYPES = {extension: mime for mime, extension in _EXTENSIONS.items()}
"""The media types of documents by their extensions."""
# Begins with a letter, because a title may end in a number (`Release 1.2`).
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}\Z")


def report_dropped_name(media: Media, rendered: Mapping[str, Any], report: Report) -> None:
    """Report a file name that the rendered part does not contain."""
    if media.name and not _contains_name(rendered, media.name):
        message = f"file name of the {media.kind} dropped: the target has no field for it"
        report.add("dropped", message, subject=media.name)


def describe_unsupported(block: Media | Opaque) -> str:
    """Return the text that takes the place of content which an API does not accept."""
    details = (block.name, block.url or block.file_id) if isinstance(block, Media) else (block.text,)
    return " ".join(part for part in (TEXTS.unsupported.format(kind=block.kind), *details) if part)


def report_unsupported(block: Media | Opaque, report: Report) -> str:
    """Report content that the API does not accept, and return the text that takes its place."""
    survives = block.url if isinstance(block, Media) else block.text
    message = f"{block.kind} rendered as text: the API does not accept it here"
    report.add("text", message, subject=block.kind, level="changed" if survives else "lost")
    return describe_unsupported(block)


def _contains_name(rendered: Mapping[str, Any], name: str) -> bool:
    """Return whether one of the texts in the part is or contains the name."""
    for key, value in rendered.items():
        if value == name or (key in ("text", "filename") and isinstance(value, str) and name in value):
            return True
        if isinstance(value, dict) and _contains_name(cast("dict[str, Any]", value), name):
            return True
    return False


def decode_data_url(media: Media) -> Media:
    """Return the media with a `data:` URL decoded to its data and media type."""
    # Imported here, because few bodies need it.
    from urllib.parse import unquote_to_bytes

    head, _, payload = (media.url or "").removeprefix("data:").partition(",")
    mime, *parameters = head.split(";")
    data = payload if "base64" in parameters else b64encode(unquote_to_bytes(payload)).decode()
    return Media(media.kind, mime or media.mime, data=data, name=media.name)


def add_extension(name: str | None, mime: str) -> str:
    """Return the file name, with an extension for its media type if it has none."""
    extension = _EXTENSIONS.get(mime.partition(";")[0].strip().lower())
    if name is None or not name.strip():
        name = "document"
    return name if extension is None or _EXTENSION.search(name) else f"{name}.{extension}"


def detect_audio_type(data: str) -> str | None:
    """Return the media type of base64 audio by its first bytes; None if unknown."""
    try:
        head = b64decode(data[:16].encode())
    except (Error, ValueError):
        return None
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    # An ID3 tag, or the sync bits of an MPEG audio layer III frame.
    is_mpeg_frame = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2
    if head[:3] == b"ID3" or is_mpeg_frame:
        return "audio/mpeg"
    if head[:4] in (b"fLaC", b"OggS"):
        return "audio/flac" if head[:4] == b"fLaC" else "audio/ogg"
    return None


def join_lines(*parts: object) -> str:
    """Join the texts that are not blank."""
    return "\n".join(part for part in parts if isinstance(part, str) and part.strip())
