"""Values in the user's text that can become arguments: quoted texts, paths, names, numbers, in order of appearance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Source: TypeAlias = Literal[
    "code", "quoted", "url", "email", "date", "zone", "path", "time", "sum", "id", "number", "name", "topic"
]

# Each pattern hides its matches from the next ones: the digits of a date are no number.
_PATTERNS: tuple[tuple[Source, re.Pattern[str]], ...] = (
    ("code", re.compile(r"```(?:\w*\n)?(.+?)```|`([^`\n]+)`", re.DOTALL)),
    ("quoted", re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|(?<!\w)'([^'\n]+)'(?!\w)")),
    ("url", re.compile(r"\bhttps?://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]", re.IGNORECASE)),
    ("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("date", re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?\b")),
    ("zone", re.compile(r"\b(?:Africa|America|Asia|Atlantic|Australia|Etc|Europe|Pacific)/[A-Z]\w+\b")),
    (
        "path",
        re.compile(
            r"(?<![\w/.~-])(?:(?:~|\.{1,2})?/)?(?:[\w.@-]+/)+(?:[\w.@-]*\w)?|(?<![\w/.-])\.?[\w-]+\.[a-z]\w{0,4}\b"
        ),
    ),
    ("time", re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")),
    ("sum", re.compile(r"(?<![\w.])[\d(][\d\s.()]*(?:[+*/^-]\s*[\d(][\d\s.()]*)+(?<![\s.])")),
    ("id", re.compile(r"#\d+\b|\b(?=[\w-]*\d)[A-Za-z][\w-]*\w\b")),
    ("number", re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")),
)
_CAPITALISED = r"[^\W\d_a-z][\w’'-]*"
_NAME = re.compile(rf"{_CAPITALISED}(?:[ ](?:(?:de|da|do|del|la|van|von|of)[ ])?{_CAPITALISED})*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n])\s*$")
_STANDS_ALONE = re.compile(r"\s*(?:,|(?:and|or)\s+[^\W\d_a-z]|[.?!]?\s*$)")
_NO_NAME_TEXT = """
    A All And Are Can Check Could Do Does Find For From Get Give Hello Hey Hi How I If In Is It Let List Look Make My
    No Now Ok Okay On Open Or Please Read Run Search Send Set Show So Tell Thank Thanks That The Then There They This To
    Use Was We Well What When Where Which Who Why Will With Would Write Yes You Your
"""
_NO_NAMES = frozenset(_NO_NAME_TEXT.split())
_TOPIC = re.compile(r"\b(?:about|for|on)\s+(?P<topic>(?:[^.?!\n]|[.?!](?!\s|$))+)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:[^.?!\n]|[.?!](?!\s|$))+")
_JOINT = re.compile(r"\s*(?:,|&|,?\s*\b(?:and|or)\b)\s*(?:(?:in|at|for)\s+)?", re.IGNORECASE)
_MAX_JOINT = 20
_MAX_TOPIC = 200


class PromptValue(Struct, frozen=True):
    """A value and its place. Values joined by a comma or «and» have the same `group`."""

    text: str
    source: Source
    start: int
    end: int
    group: int = 0

    @property
    def value(self) -> str | int | float:
        if self.source != "number":
            return self.text
        plain = self.text.replace(",", "")
        return float(plain) if "." in plain else int(plain)


_PromptValues: TypeAlias = Mapping[Source, tuple[PromptValue, ...]]


@lru_cache(maxsize=32)
def find_values(text: str) -> _PromptValues:
    found: dict[Source, tuple[PromptValue, ...]] = {}
    rest = text
    for source, pattern in _PATTERNS:
        matches = list(pattern.finditer(rest))
        values = (PromptValue(_matched_text(match), source, *match.span()) for match in matches)
        found[source] = _set_groups(text, values)
        rest = pattern.sub(lambda match: "·" * len(match[0]), rest)
    found["name"] = _set_groups(text, _find_names(rest))
    found["topic"] = tuple(_find_topic(text))
    return found


def _matched_text(match: re.Match[str]) -> str:
    return next((part for part in match.groups() if part is not None), match[0]).strip()


def _find_names(text: str) -> Iterator[PromptValue]:
    """Yield capitalised words. The first word of a sentence is no name, unless it stands alone or in a list."""
    for match in _NAME.finditer(text):
        start, name = match.start(), match[0].removesuffix("'s").removesuffix("’s")
        first, _, others = name.partition(" ")
        is_leading = _SENTENCE_START.search(text[:start]) is not None
        if first in _NO_NAMES or (is_leading and (others or not _STANDS_ALONE.match(text, start + len(name)))):
            start, name = start + len(first) + 1, others
        if name:
            yield PromptValue(name, "name", start, start + len(name))


def _find_topic(text: str) -> Iterator[PromptValue]:
    """Yield the words after «about» or «for», else the last sentence."""
    if match := _TOPIC.search(text):
        yield PromptValue(match["topic"].strip(" ,;:\"'")[:_MAX_TOPIC], "topic", *match.span("topic"))
    elif sentences := [match for match in _SENTENCE.finditer(text) if match[0].strip()]:
        yield PromptValue(" ".join(sentences[-1][0].split())[:_MAX_TOPIC], "topic", *sentences[-1].span())


def _set_groups(text: str, values: Iterator[PromptValue]) -> tuple[PromptValue, ...]:
    grouped: list[PromptValue] = []
    group = 0
    for value in values:
        between = text[grouped[-1].end : value.start] if grouped else ""
        if len(between) > _MAX_JOINT or not _JOINT.fullmatch(between):
            group += 1
        grouped.append(replace(value, group=group))
    return tuple(grouped)


def tokenize(text: str) -> list[str]:
    """Return the words of a text or name in lower case and singular: `getCityNames` is get, city, name."""
    return [stem(word) for word in re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z\d])(?=[A-Z])", " ", text))]


def stem(word: str) -> str:
    word = word.lower()
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
