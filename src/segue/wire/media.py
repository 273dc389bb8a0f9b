"""What wires share when they say pictures, sounds and files."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.blocks import Media
from segue.render.report import Report

__all__ = ["file_name", "report_lost_name", "sound_type"]

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
# A title may well end in a number (`Release 1.2`), which no file is known by.
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}\Z")


def report_lost_name(media: Media, said: Mapping[str, Any], report: Report) -> None:
    """Writes down that the name of a file is not in what is said of it."""
    if media.name and not _holds(said, media.name):
        report.add("dropped", f"the name of {media.kind} content has no place here", subject=media.name)


def _holds(said: Mapping[str, Any], name: str) -> bool:
    """Whether one of the texts in here is the name, or tells it."""
    for key, value in said.items():
        if value == name or (key in ("text", "filename") and isinstance(value, str) and name in value):
            return True
        if isinstance(value, dict) and _holds(cast("dict[str, Any]", value), name):
            return True
    return False


def file_name(name: str | None, mime: str) -> str:
    """The name of a file, with an ending by which its type is told."""
    ending = _EXTENSIONS.get(mime.partition(";")[0].strip().lower())
    if name is None or not name.strip():
        name = "document"
    return name if ending is None or _ENDING.search(name) else f"{name}.{ending}"


def sound_type(data: str) -> str | None:
    """The type of a sound in base64, by its first bytes; None where they do not tell it."""
    try:
        head = b64decode(data[:16].encode())
    except (Error, ValueError):
        return None
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    # A tag of ID3, or the eleven bits that every frame of MPEG audio begins with, of its third layer.
    framed = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2
    if head[:3] == b"ID3" or framed:
        return "audio/mpeg"
    if head[:4] in (b"fLaC", b"OggS"):
        return "audio/flac" if head[:4] == b"fLaC" else "audio/ogg"
    return None
