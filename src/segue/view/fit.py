"""Fits lines into the columns of a terminal. Paths give way first: the beginning is left out, the last part stays."""

from __future__ import annotations

import re
import unicodedata

_ELLIPSIS = "…"
_MAX_PATH = 4096
# Settings to be copied, URLs, and paths from the root, the home or the working folder.
_PATH = re.compile(r"""\[".*?"\]|\S+://\S+|(?<![\w/:.~-])((?:~|\.{1,2})?(?:/[^\s/"'`«»<>|;:,()\[\]{}]+){2,}/?)""")


def shorten_paths(text: str, width: int) -> str:
    """Return a line with its paths shortened until it has `width` columns, the longest path first.

    No other word is changed, nor what stands in `["…"]`, so the line may still be wider. A line that is one word with a
    slash is a path itself.
    """
    if display_width(text) <= width:
        return text
    is_path = "/" in text and "://" not in text and not re.search(r"\s", text)
    paths = {text} if is_path else {found[1] for found in _PATH.finditer(text) if found[1]}
    for path in sorted(paths, key=len, reverse=True):
        excess = display_width(text) - width
        if excess > 0:
            short = shorten_path(path, display_width(path) - excess)
            text = short if is_path else _replace_path(text, path, short)
    return text


def _replace_path(text: str, path: str, short: str) -> str:
    return _PATH.sub(lambda found: short if found[1] == path else found[0], text)


def shorten_path(path: str, width: int) -> str:
    """Return the last parts of a path that fit; if not even the last one does, that one."""
    if display_width(path) <= width:
        return path
    kept = ""
    for part in reversed(path.rstrip("/").split("/")):
        longer = f"/{part}{kept}"
        if kept and display_width(f"{_ELLIPSIS}{longer}") > width:
            break
        kept = longer
    short = f"{_ELLIPSIS}{kept}"
    return short if display_width(short) < display_width(path) else path


def truncate(text: str, width: int, *, keeps_blanks: bool = False) -> str:
    """Truncate a text to one line of `width` columns, at its end after its paths are shortened.

    Runs of blanks and line ends become one blank, unless it is a line that `keeps_blanks`.
    """
    if width <= 0:
        return ""
    limit = 4 * width + _MAX_PATH
    line = shorten_paths(text[:limit] if keeps_blanks else " ".join(text[:limit].split()), width)
    if display_width(line) <= width and len(text) <= limit:
        return line
    taken, at = 0, 0
    while at < len(line) and taken + char_width(line[at]) < width:
        taken += char_width(line[at])
        at += 1
    return f"{line[:at].rstrip()}{_ELLIPSIS}"


def wrap(text: str, width: int) -> list[str]:
    """Wrap a text of one line at its blanks, and a word that is longer than a line within it."""
    lines: list[str] = []
    while True:
        part, text = break_line(text, max(1, width))
        lines.append(part)
        if not text:
            return lines


def break_line(line: str, width: int) -> tuple[str, str]:
    """Return the part of a line that fits, and the rest."""
    if display_width(line) <= width:
        return line, ""
    used, blank = 0, -1
    for index, char in enumerate(line):
        used += char_width(char)
        if used > width:
            if char == " ":
                return line[:index].rstrip(), line[index:].lstrip()
            if blank > 0 and line[:blank].strip():
                return line[:blank].rstrip(), line[blank:].lstrip()
            return line[: max(1, index)], line[max(1, index) :]
        if char == " ":
            blank = index
    return line, ""


def display_width(text: str) -> int:
    """Return the width of a text in terminal columns."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def char_width(char: str) -> int:
    """Return the width of a character in terminal columns."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
