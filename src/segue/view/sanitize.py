"""Sanitizes text and JSON for a terminal: the output has only printable characters, line ends and tabs.

Characters are replaced one by one, so an escape sequence that is split over two texts is removed too.
"""

from __future__ import annotations

import re
import unicodedata

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\N{SYMBOL FOR DELETE}"
# Characters without a glyph of their own.
_INVISIBLE = frozenset(
    "\N{SOFT HYPHEN}\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{WORD JOINER}\N{ZERO WIDTH SPACE}\ufeff"
)
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")


def sanitize(text: str) -> str:
    """Replace control characters by their Unicode pictures, unusual spaces by spaces, other unprintables by U+FFFD."""
    if _PLAIN.fullmatch(text):
        return text
    text = text.replace("\r\n", "\n")
    return "".join(char if char.isprintable() or char in "\n\t" else _replace_char(char) for char in text)


def escape_json(data: bytes) -> bytes:
    r"""Escape what is not printable in JSON as `\uXXXX`; the value stays the same.

    Carriage returns, which are blanks between values, become line ends.
    """
    text = data.decode(errors="replace")
    if _PLAIN.fullmatch(text):
        return data
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char.isprintable() or char in "\n\t" else _escape_char(char) for char in text).encode()


def _escape_char(char: str) -> str:
    digits = char.encode("utf-16-be").hex()
    return "".join(f"\\u{digits[place : place + 4]}" for place in range(0, len(digits), 4))


def sanitize_line(text: str) -> str:
    """Sanitize and join to one line with single spaces."""
    return " ".join(sanitize(text).split())


def _replace_char(char: str) -> str:
    number = ord(char)
    if number < 0x20:
        return chr(_CONTROL_PICTURES + number)
    if number == _DELETE:
        return _DELETE_PICTURE
    if char in _INVISIBLE:
        return ""
    return " " if unicodedata.category(char) == "Zs" else _REPLACEMENT
