"""Text that can't drive a terminal: what comes out is printable, a line end or a tab, and nothing else.

Each character is judged by itself, so a sequence that comes in pieces is as harmless as one that comes whole.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["harmless", "harmless_line"]

_REPLACED = "\N{REPLACEMENT CHARACTER}"
_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = 0x7F, "\N{SYMBOL FOR DELETE}"
# They join, part or mark what stands beside them, and are nothing themselves.
_UNSEEN = frozenset(
    "\N{SOFT HYPHEN}\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{WORD JOINER}\N{ZERO WIDTH SPACE}\ufeff"
)
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")


def harmless(text: str) -> str:
    """The text as it may be shown. Controls become pictures of themselves, odd blanks blanks, overrides a mark."""
    if _PLAIN.fullmatch(text):
        return text
    text = text.replace("\r\n", "\n")
    return "".join(char if char.isprintable() or char in "\n\t" else _shown(char) for char in text)


def harmless_line(text: str) -> str:
    """The same on one line, with single blanks."""
    return " ".join(harmless(text).split())


def _shown(char: str) -> str:
    number = ord(char)
    if number < 0x20:
        return chr(_PICTURES + number)
    if number == _DELETE:
        return _DELETE_PICTURE
    if char in _UNSEEN:
        return ""
    return " " if unicodedata.category(char) == "Zs" else _REPLACED
