"""Bytes of files as text, and back: encodings, line ends, and what is no text at all."""

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
    """A text, with what it takes to write it as it was."""

    text: str
    encoding: str
    mark: bytes = b""

    def bytes_of(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)

    @property
    def note(self) -> str:
        """What a reader should know of how it was read."""
        return "" if self.encoding == "utf-8" else f"read as {self.encoding}"


def decode(data: bytes) -> Encoded | None:
    """The text of a file, None where it is not one."""
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
    """What a file that is no text looks like."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "binary data")


def picture_mime(data: bytes) -> str | None:
    """The type of a picture that models can look at."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _PICTURES if data.startswith(start)), None)


def size_words(size: int) -> str:
    if size < 10_000:
        return f"{size:,} bytes"
    return f"{size / 1000:,.0f} kB" if size < 10_000_000 else f"{size / 1_000_000:,.0f} MB"


def valid(text: str) -> str:
    """The text without halves of characters, which no API takes."""
    return text.encode("utf-8", "replace").decode() if any("\ud800" <= letter <= "\udfff" for letter in text) else text
