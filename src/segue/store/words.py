"""Words to search for: which texts of an event are found, what counts as a word, and the piece of text that is shown.

Both engines are given words that were cut and folded here, so that they find the same; all that they do is to look them
up. A word of the query stands for every word that begins with it; what hangs together (`read_file`, 東京) is looked for
in a row.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec import UNSET, Struct

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.jsontext import write_text
from segue.store.events import Cancelled, Completed, Event, Known, Said, Titled

__all__ = ["PART", "PARTS", "Shown", "parts_of", "query_of", "show", "text_of_event"]

PART = 4_000
"""Words in one part of the index: more would exceed what PostgreSQL keeps of the places of a word."""
PARTS = 4_096
"""Parts of one event. What comes after sixteen million words is not found."""
LONGEST = 64
_AROUND = 60
_SHOWN = 160
"""How much of what was found is shown, however long it is."""

# Written without spaces, so each character is a word; those of other scripts go on over the marks that belong to them.
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0e31-\u0e3a"
)
_SOUTHERN = "\u0900-\u0963\u0966-\u0dff\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_WORD = re.compile(f"[{_SINGLE}]|(?:(?![{_SINGLE}])[^\\W_])(?:(?![{_SINGLE}])[^\\W_]|[{_MARKS}{_SOUTHERN}])*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]+")


class Shown(Struct, frozen=True):
    """A piece of a text, and where in it the words stand that were looked for (from and up to)."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def text_of_event(event: Event) -> str:
    """All that can be found of an event: the words of its message, arguments and results, or its title."""
    if isinstance(event, Titled):
        return event.text
    if isinstance(event, Said | Completed | Known | Cancelled):
        return "\n".join(filter(None, _texts(event.message)))
    return ""


def _texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        yield from _texts_of_block(block)


def _texts_of_block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield block.text
        case Code():
            yield block.code
        case ToolCall():
            yield block.name
            yield block.arguments_text if block.arguments_text is not None else _as_text(block.arguments)
        case ToolResponse():
            for inner in block.content or ():
                yield from _texts_of_block(inner)
            if block.structured is not UNSET:
                yield _as_text(block.structured)
        case Opaque():
            yield block.text
        case Media():
            yield block.name or ""
        case Thinking():
            return
        case _:  # pragma: no cover
            assert_never(block)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else write_text(value)


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    """The folded words of a text, and where they stand in it."""
    for found in (_PLAIN_WORD if text.isascii() else _WORD).finditer(text):
        if word := _folded(found[0]):
            yield word, found.start(), found.end()


def _folded(word: str) -> str:
    """The word without case and marks; long ones by their beginning."""
    if word.isascii():
        return word[:LONGEST].lower()
    taken_apart = unicodedata.normalize("NFKD", word[:LONGEST].casefold())
    bare = "".join(char for char in taken_apart if unicodedata.category(char) != "Mn")
    # NFKD may bring signs that part words (½ is 1, a stroke and 2); the engines are to see one word.
    return "".join(filter(str.isalnum, bare))[:LONGEST]


def parts_of(text: str) -> Iterator[list[str]]:
    """The words of a text for the index."""
    part: list[str] = []
    count = 0
    for word, _, _ in _words(text):
        part.append(word)
        if len(part) == PART:
            yield part
            part, count = [], count + 1
            if count == PARTS:
                return
    if part:
        yield part


def query_of(words: str) -> list[tuple[str, ...]]:
    """What is looked for: all of these, each a row of words of which the last may go on. Signs mean nothing."""
    rows = (tuple(word for word, _, _ in _words(piece)) for piece in words.split())
    return list(dict.fromkeys(row for row in rows if row))


def show(text: str, query: Iterable[tuple[str, ...]]) -> Shown:
    """The piece of the text around the first place where something of the query stands."""
    found = _found(text, list(query))
    if not found:
        return Shown(_one_line(text[: 2 * _AROUND]) + ("…" if len(text) > 2 * _AROUND else ""))
    first = found[0]
    start = max(0, first[0] - _AROUND)
    end = min(len(text), first[1] + _AROUND, first[0] + _SHOWN)
    if start and (space := text.find(" ", start, first[0])) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", first[1], end)) >= 0:
        end = space
    head = "…" if start else ""
    shift = len(head) - start
    marks = tuple((left + shift, min(right, end) + shift) for left, right in found if start <= left < end)
    return Shown(head + _one_line(text[start:end]) + ("…" if end < len(text) else ""), marks)


def _one_line(text: str) -> str:
    """The same length on one line, and nothing in it that a terminal obeys."""
    return "".join(char if char.isprintable() else " " for char in text)


def _found(text: str, query: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    words = list(_words(text))
    alone = tuple(row[0] for row in query if len(row) == 1)
    rows = [row for row in query if len(row) > 1]
    found: list[tuple[int, int]] = []
    for at, (word, start, end) in enumerate(words):
        if alone and word.startswith(alone):
            found.append((start, end))
            continue
        for row in rows:
            here = [other for other, _, _ in words[at : at + len(row)]]
            if len(here) == len(row) and tuple(here[:-1]) == row[:-1] and here[-1].startswith(row[-1]):
                found.append((start, words[at + len(row) - 1][2]))
    return found
