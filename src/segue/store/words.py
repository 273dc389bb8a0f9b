"""Full-text search: the searchable text of events, tokenization, queries and snippets.

Both engines index the tokens made here, so that they find the same events. A query word matches every word that begins
with it; a word that consists of several tokens (`read_file`, 東京) is searched as a phrase.
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
"""Tokens in one part of the index: PostgreSQL limits the positions that a `tsvector` can hold."""
PARTS = 4_096
"""Parts of one event. Text after the first sixteen million words is not indexed."""
LONGEST = 64
_AROUND = 60
_SHOWN = 160
"""Longest part of a match that a snippet shows."""

# Scripts without spaces: each character is a token. In other scripts a token includes its combining marks.
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0e31-\u0e3a"
)
_SOUTHERN = "\u0900-\u0963\u0966-\u0dff\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_WORD = re.compile(f"[{_SINGLE}]|(?:(?![{_SINGLE}])[^\\W_])(?:(?![{_SINGLE}])[^\\W_]|[{_MARKS}{_SOUTHERN}])*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9]+")


class Shown(Struct, frozen=True):
    """An excerpt of a text, and the positions of the matches in it (start, stop)."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def text_of_event(event: Event) -> str:
    """The text of an event that is indexed: message text, arguments and results, or a title."""
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
    """Yields the folded tokens of a text with their start and stop positions."""
    for found in (_PLAIN_WORD if text.isascii() else _WORD).finditer(text):
        if word := _folded(found[0]):
            yield word, found.start(), found.end()


def _folded(word: str) -> str:
    """The token in lower case, without combining marks, truncated to the maximum length."""
    if word.isascii():
        return word[:LONGEST].lower()
    decomposed = unicodedata.normalize("NFKD", word[:LONGEST].casefold())
    bare = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    # NFKD may add separators (½ becomes 1, a slash and 2); the engines must get one token.
    return "".join(filter(str.isalnum, bare))[:LONGEST]


def parts_of(text: str) -> Iterator[list[str]]:
    """Yields the tokens of a text in parts for the index."""
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


def query_of(text: str) -> list[tuple[str, ...]]:
    """Parses a query into phrases that must all match; the last token of each matches as a prefix.

    Punctuation has no meaning.
    """
    phrases = (tuple(word for word, _, _ in _words(part)) for part in text.split())
    return list(dict.fromkeys(phrase for phrase in phrases if phrase))


def show(text: str, query: Iterable[tuple[str, ...]]) -> Shown:
    """The excerpt of the text around the first match, on one line."""
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
    """Replaces line breaks and control characters by spaces, keeping the length."""
    return "".join(char if char.isprintable() else " " for char in text)


def _found(text: str, query: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    words = list(_words(text))
    prefixes = tuple(phrase[0] for phrase in query if len(phrase) == 1)
    phrases = [phrase for phrase in query if len(phrase) > 1]
    found: list[tuple[int, int]] = []
    for at, (word, start, end) in enumerate(words):
        if prefixes and word.startswith(prefixes):
            found.append((start, end))
            continue
        for phrase in phrases:
            here = [other for other, _, _ in words[at : at + len(phrase)]]
            if len(here) == len(phrase) and tuple(here[:-1]) == phrase[:-1] and here[-1].startswith(phrase[-1]):
                found.append((start, words[at + len(phrase) - 1][2]))
    return found
