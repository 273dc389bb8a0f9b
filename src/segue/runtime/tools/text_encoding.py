"""Decoding file contents to text and back; detecting images and other binary files."""

from __future__ import annotations

import codecs

from msgspec import Struct

from segue.errors import format_count

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_IMAGE_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BINARY_SIGNATURES = (
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\xfd7zXZ", "xz-compressed"),
    (b"(\xb5/\xfd", "zstd-compressed"),
    (b"SQLite format 3", "an SQLite database"),
)
_SNIFF_BYTES = 8192


class DecodedText(Struct, frozen=True):
    """A decoded text, with the encoding and byte order mark to encode it again."""

    text: str
    encoding: str
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        return self.bom + text.encode(self.encoding)

    @property
    def note(self) -> str:
        """A note on the encoding for the model; empty for UTF-8."""
        return "" if self.encoding == "utf-8" else f"read as {self.encoding}"


def decode(data: bytes) -> DecodedText | None:
    """Decode a file's content; None if it is binary."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            try:
                return DecodedText(data[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                break
    if b"\0" in data[:_SNIFF_BYTES]:
        return None
    try:
        return DecodedText(data.decode(), "utf-8")
    except UnicodeDecodeError:
        pass
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return DecodedText(data.decode("latin-1"), "latin-1")
    return DecodedText(text, "cp1252")


def describe_binary(data: bytes) -> str:
    """Describe a binary file by its signature."""
    return next((kind for start, kind in _BINARY_SIGNATURES if data.startswith(start)), "binary data")


def image_mime(data: bytes) -> str | None:
    """Return the MIME type of an image that models accept, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _IMAGE_SIGNATURES if data.startswith(start)), None)


def format_size(size: int) -> str:
    if size < 10_000:
        return format_count(size, "byte")
    return f"{size / 1000:,.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:,.0f} MB"
