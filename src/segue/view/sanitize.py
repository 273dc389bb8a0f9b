"""Sanitizes text for a terminal: the output has only printable characters, line ends and tabs.

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
