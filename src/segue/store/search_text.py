"""Full-text search: the searchable text of events, tokenization, queries and snippets.

Both engines index the tokens that this module produces, so that they find the same events. A query word matches every
word that begins with it; a word that consists of several tokens (`read_file`, 東京) is searched as a phrase.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import assert_never

from msgspec import UNSET, Struct

from segue.canonical.blocks import Block, Code, Media, Message, Opaque, Text, Thinking, ToolCall, ToolResponse
from segue.canonical.json import encode_json_text
from segue.store.events import CallCancelled, CallCompleted, Event, MessageAdded, Renamed, ResultRecorded

PART_SIZE = 4_000
"""Tokens in one part of the index: PostgreSQL limits the positions that a `tsvector` can hold."""
MAX_PARTS = 4_096
"""Parts of one event. Text after the first sixteen million words is not indexed."""
_MAX_WORD_LENGTH = 64
_MAX_FOLDED_WORDS = 10_000
_CHUNK_LENGTH = 1 << 16
_CONTEXT_LENGTH = 60
_SNIPPET_LENGTH = 160
"""The maximum length of a snippet from the start of the first match."""

# Scripts without spaces: each character is a token. In other scripts a token includes its combining marks.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0e31-\u0e3a"
)
_MORE_MARKS = "\u0900-\u0963\u0966-\u0dff\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
# The first alternative only saves time: most words of most texts are ASCII.
_WORD = re.compile(
    "[A-Za-z0-9]++(?=[\\x00-\\x7f]|\\Z)"
    f"|[{_CJK}]|(?:(?![{_CJK}])[^\\W_])(?:(?![{_CJK}])[^\\W_]|[{_MARKS}{_MORE_MARKS}])*"
)
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_BLANK = re.compile(r"\s")


class Snippet(Struct, frozen=True):
    """An excerpt of a text, and the positions of the matches in it (start, stop)."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def searchable_text(event: Event) -> str:
    """Return the text of an event that is indexed: message text, arguments and results, or a title."""
    if isinstance(event, Renamed):
        return event.text
    if isinstance(event, MessageAdded | CallCompleted | ResultRecorded | CallCancelled):
        return "\n".join(filter(None, _message_texts(event.message)))
    return ""


def _message_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        yield from _block_texts(block)


def _block_texts(block: Block) -> Iterator[str]:
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
                yield from _block_texts(inner)
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
    return value if isinstance(value, str) else encode_json_text(value)


def _tokenize(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the folded tokens of a text with their start and stop positions."""
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        if word := _fold(match[0]):
            yield word, match.start(), match.end()


def _fold(word: str) -> str:
    """Return the token in lower case, without combining marks, truncated to the maximum length."""
    return word[:_MAX_WORD_LENGTH].lower() if word.isascii() else _fold_marks(word)


@lru_cache(maxsize=1024)
def _fold_marks(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word[:_MAX_WORD_LENGTH].casefold())
    bare = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    # NFKD may add separators (½ becomes 1, a slash and 2); the engines must get one token.
    return "".join(filter(str.isalnum, bare))[:_MAX_WORD_LENGTH]


def index_parts(text: str) -> Iterator[list[str]]:
    """Yield the tokens of a text in parts for the index."""
    tokens = _iter_tokens(text)
    for _ in range(MAX_PARTS):
        if not (part := [token[:_MAX_WORD_LENGTH] for token in islice(tokens, PART_SIZE)]):
            return
        yield part


def _iter_tokens(text: str) -> Iterator[str]:
    """Return the folded tokens of a text, without their positions; ASCII tokens are not truncated."""
    if text.isascii():
        return chain.from_iterable(_find_words(_ASCII_WORD, text.lower()))
    return filter(None, map(_FoldedWords().__getitem__, chain.from_iterable(_find_words(_WORD, text))))


def _find_words(pattern: re.Pattern[str], text: str) -> Iterator[list[str]]:
    """Yield the words of a text in lists, so that those of a long text are never in memory at once."""
    start = 0
    while start < len(text):
        blank = _BLANK.search(text, start + _CHUNK_LENGTH)
        end = blank.start() if blank is not None else len(text)
        yield pattern.findall(text, start, end)
        start = end


class _FoldedWords(dict[str, str]):
    """The folded tokens of the words of one text, which repeats most of them."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MAX_FOLDED_WORDS:
            self.clear()
        folded = self[word] = _fold(word)
        return folded


def parse_query(text: str) -> list[tuple[str, ...]]:
    """Parse a query into phrases that must all match; the last token of each matches as a prefix.

    Punctuation has no meaning.
    """
    phrases = (tuple(word for word, _, _ in _tokenize(part)) for part in text.split())
    return list(dict.fromkeys(phrase for phrase in phrases if phrase))


def make_snippet(text: str, query: Iterable[tuple[str, ...]]) -> Snippet:
    """Return the excerpt of the text around the first match, on one line."""
    matches = _find_matches(text, list(query))
    if not matches:
        return Snippet(_one_line(text[: 2 * _CONTEXT_LENGTH]) + ("…" if len(text) > 2 * _CONTEXT_LENGTH else ""))
    first = matches[0]
    start = max(0, first[0] - _CONTEXT_LENGTH)
    end = min(len(text), first[1] + _CONTEXT_LENGTH, first[0] + _SNIPPET_LENGTH)
    if start and (space := text.find(" ", start, first[0])) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", first[1], end)) >= 0:
        end = space
    head = "…" if start else ""
    shift = len(head) - start
    marks = tuple((left + shift, min(right, end) + shift) for left, right in matches if start <= left < end)
    return Snippet(head + _one_line(text[start:end]) + ("…" if end < len(text) else ""), marks)


def _one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces, keeping the length."""
    return "".join(char if char.isprintable() else " " for char in text)


def _find_matches(text: str, query: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    words = list(_tokenize(text))
    prefixes = tuple(phrase[0] for phrase in query if len(phrase) == 1)
    phrases = [phrase for phrase in query if len(phrase) > 1]
    matches: list[tuple[int, int]] = []
    for at, (word, start, end) in enumerate(words):
        if prefixes and word.startswith(prefixes):
            matches.append((start, end))
            continue
        for phrase in phrases:
            following = [other for other, _, _ in words[at : at + len(phrase)]]
            if (
                len(following) == len(phrase)
                and tuple(following[:-1]) == phrase[:-1]
                and following[-1].startswith(phrase[-1])
            ):
                matches.append((start, words[at + len(phrase) - 1][2]))
    return matches
