"""Decoding file contents to text and back; detecting images and other binary files."""

from __future__ import annotations

import codecs

from msgspec import Struct

__all__ = ["Encoded", "decode", "kind_of", "picture_mime", "size_words", "valid"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_KINDS = (
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\xfd7zXZ", "xz-compressed"),
    (b"(\xb5/\xfd", "zstd-compressed"),
    (b"SQLite format 3", "an SQLite database"),
)
_LOOK = 8192


class Encoded(Struct, frozen=True):
    """A decoded text, with the encoding and byte order mark to encode it again."""

    text: str
    encoding: str
    mark: bytes = b""

    def bytes_of(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)

    @property
    def note(self) -> str:
        """A note on the encoding for the model; empty for UTF-8."""
        return "" if self.encoding == "utf-8" else f"read as {self.encoding}"


def decode(data: bytes) -> Encoded | None:
    """Decodes a file's content; None if it is binary."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Encoded(data[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                break
    if b"\0" in data[:_LOOK]:
        return None
    try:
        return Encoded(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return Encoded(data.decode("latin-1"), "latin-1")
    return Encoded(text, "cp1252")


def kind_of(data: bytes) -> str:
    """Describes a binary file by its signature."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "binary data")


def picture_mime(data: bytes) -> str | None:
    """The MIME type of an image that models accept, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _PICTURES if data.startswith(start)), None)


def size_words(size: int) -> str:
    if size < 10_000:
        return f"{size:,} bytes"
    return f"{size / 1000:,.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:,.0f} MB"


def valid(text: str) -> str:
    """Replaces lone surrogates, which APIs reject."""
    return text.encode("utf-8", "replace").decode() if any("\ud800" <= char <= "\udfff" for char in text) else text
