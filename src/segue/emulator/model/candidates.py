"""Finds candidates for arguments in the user's text: names, paths, numbers, dates, quoted texts, each in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Candidate", "Source", "find_candidates", "stem", "tokenize"]

Source: TypeAlias = Literal[
    "quoted", "code", "url", "email", "path", "date", "day", "time", "sum", "id", "number", "name", "topic", "whole"
]

# Each hides its finds from those after it: the digits of a date are no number, the words of an address no name.
_PATTERNS: tuple[tuple[Source, re.Pattern[str]], ...] = (
    ("url", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]", re.IGNORECASE)),
    ("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("date", re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?\b")),
    (
        "path",
        re.compile(
            r"(?<![\w/.~-])(?:[~.]{0,2}/)?(?:[\w.@-]+/)+(?:[\w.@*-]*[\w*])?|(?<!\S)\*{1,2}[/.][\w.*/-]*\w|(?<![\w/.-])(?!e\.g|i\.e)\.?[\w-]+(?:\.[\w-]+)*\.[a-z]\w{0,4}\b"
        ),
    ),
    ("time", re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")),
    (
        "sum",
        re.compile(
            r"(?<![\w.])(?!\d+-\d+(?![\d\s]*[-+*/^%×÷]))[(\d][\d\s.()]*(?:[-+*/^%×÷]\s*[\d.()][\d\s.()]*)+(?<!\s)(?<!\.)"
        ),
    ),
    ("id", re.compile(r"#\d+\b|\b(?=[\w-]*\d)[A-Za-z][\w-]*\w\b|\b(?=\d*[A-Za-z])\d\w*-\w+\b")),
    ("number", re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")),
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|(?<!\w)'([^'\n]+)'(?!\w)|‘([^’\n]+)’")
_CODE = re.compile(r"```(?:\w*\n)?(.+?)```|`([^`\n]+)`", re.DOTALL)
_DAY = re.compile(r"\b(?:today|tomorrow|yesterday|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS)
_WRITTEN = re.compile(
    rf"\b(?:(?P<first>\d{{1,2}})\.?\s+(?P<month>{_MONTH})\.?|(?P<other>{_MONTH})\.?\s+(?P<last>\d{{1,2}}))"
    r",?\s+(?P<year>\d{4})\b",
    re.IGNORECASE,
)
_CAPITAL = r"[^\W\d_a-z][\w’'-]*"
_NAME = re.compile(rf"{_CAPITAL}(?:[ ](?:(?:de|da|do|del|la|van|von|der|of)[ ])?{_CAPITAL})*")
_AFTER = re.compile(
    r"\b(?:in|at|near|for)\s+([\w'-]+(?:\s*(?:,|\band\b|\bor\b|&)\s*(?:in\s+)?[\w'-]+)*)", re.IGNORECASE
)
_TOPIC = re.compile(r"\b(?:about|for|on|regarding|concerning)\s+(?P<topic>(?:[^.?!\n]|[.?!](?!\s|$))+)", re.IGNORECASE)
_JOINED = re.compile(
    r"[\s,;&/+]*(?:\b(?:and|or|plus|vs|versus|as well as)\b\.?)?\s*(?:\b(?:in|at|for|of|from|on|the)\b\s*)?",
    re.IGNORECASE,
)
_JOINT = re.compile(r"[,;&/+]|\b(?:and|or|plus|vs|versus|as well as)\b", re.IGNORECASE)
_PLACED = re.compile(r"\b(?:in|at|for|near)\s+$", re.IGNORECASE)
_LEADING = re.compile(r"(?:^|[.!?:;\n]|[-*•])\s*$")
_NUMBERS = "zero - two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: number for number, word in enumerate(_NUMBERS.split()) if word != "-"}
_COMMON = """
    a all also an and any are as at be but by can check could do does find for from get give go has have hello hey hi
    how i i'd i'll i'm i've if in is it it's just let list look make may me my no not now of ok okay on open or our
    please read run search see send set shall show so tell thank thanks that the their them then there these they this
    those to today tomorrow tonight us use was we were what what's when where which who whose why will with would write
    well sure hm yes yesterday you your monday tuesday wednesday thursday friday saturday sunday
"""
_FIRST_PARTS = frozenset(
    {"New", "San", "Los", "Las", "Saint", "St", "Rio", "São", "El", "Hong", "Buenos", "Tel", "Cape"}
)
_NO_NAMES = frozenset(_COMMON.split()) | frozenset(_MONTHS)


class Candidate(Struct, frozen=True):
    """A value and where it stands. Those of one `group` were told in one breath: «Lisbon and Oslo»."""

    text: str
    start: int
    end: int
    group: int = 0
    neighbors: tuple[str, str] = ("", "")
    """The stems of the words before and after the group."""


@lru_cache(maxsize=32)
def find_candidates(text: str) -> Mapping[Source, tuple[Candidate, ...]]:
    """All that these words offer, by what it is. Read once for all tools."""
    found: dict[Source, list[Candidate]] = {}
    found["code"] = [_from_match(match) for match in _CODE.finditer(text)]
    rest = _mask(text, found["code"])
    found["quoted"] = [_from_match(match) for match in _QUOTED.finditer(rest)]
    dates = [Candidate(date, match.start(), match.end()) for match in _WRITTEN.finditer(rest) if (date := _iso(match))]
    rest = _mask(rest, dates)
    for source, pattern in _PATTERNS:
        offers = [Candidate(match[0].strip(), match.start(), match.end()) for match in pattern.finditer(rest)]
        found[source] = offers
        rest = _mask(rest, offers)
    found["date"] = sorted([*found["date"], *dates], key=lambda offer: offer.start)
    found["day"] = [Candidate(match[0].lower(), match.start(), match.end()) for match in _DAY.finditer(rest)]
    found["number"] = sorted([*found["number"], *_find_written_numbers(rest)], key=lambda offer: offer.start)
    found["name"] = _find_names(
        _mask(rest, [offer for offer in found["quoted"] if " " in offer.text])
    ) or _find_after_preposition(rest)
    found["topic"] = _find_topics(text)
    whole = " ".join(text.split())
    found["whole"] = [Candidate(whole[:400], 0, len(text))] if whole else []
    return {source: _group(text, offers) for source, offers in found.items()}


def _from_match(match: re.Match[str]) -> Candidate:
    text = next(part for part in match.groups() if part is not None)
    return Candidate(text.strip() or text, match.start(), match.end())


def _mask(text: str, offers: list[Candidate]) -> str:
    for offer in offers:
        text = f"{text[: offer.start]}{'·' * (offer.end - offer.start)}{text[offer.end :]}"
    return text


def _iso(match: re.Match[str]) -> str | None:
    month = _MONTHS_BY_START[(match["month"] or match["other"])[:3].lower()]
    day = int(match["first"] or match["last"])
    return f"{match['year']}-{month:02}-{day:02}" if 1 <= day <= 28 or (day <= 30 and month != 2) else None


_MONTHS_BY_START = {month[:3]: number for number, month in enumerate(_MONTHS, start=1)}


def _find_written_numbers(text: str) -> list[Candidate]:
    words = re.finditer(r"[A-Za-z]+", text)
    return [
        Candidate(str(_NUMBER_WORDS[match[0].lower()]), match.start(), match.end())
        for match in words
        if match[0].lower() in _NUMBER_WORDS
    ]


def _find_names(text: str) -> list[Candidate]:
    """Capitalised words. The first of a sentence is one only where it can't be anything else."""
    names: list[Candidate] = []
    leading: list[Candidate] = []
    for match in _NAME.finditer(text):
        start, name = match.start(), re.sub(r"[’']s$", "", match[0]).rstrip("'’-")
        if " " in name and _LEADING.search(text[:start]) and name.split(" ")[0] not in _FIRST_PARTS:
            # «Compare Lisbon», and now and then an «Anna Smith».
            start, name = start + name.index(" ") + 1, name.partition(" ")[2]
        while name.split(" ")[0].lower() in _NO_NAMES:
            first, _, name = name.partition(" ")
            start += len(first) + 1
        if not name:
            continue
        offer = Candidate(name, start, start + len(name))
        begins = start == match.start() and _LEADING.search(text[:start]) is not None
        (leading if begins else names).append(offer)
    for offer in leading:
        after = text[offer.end :].strip(" .?!")
        listed = any(_is_conjunction(text[offer.end : name.start]) for name in names if name.start > offer.start)
        if " " in offer.text or not after or listed or (not names and text[offer.end :].startswith(",")):
            names.append(offer)
    placed = [name for name in names if _PLACED.search(text[: name.start])]
    return sorted(names, key=lambda name: (bool(placed) and name.start < placed[0].start, name.start))


def _find_after_preposition(text: str) -> list[Candidate]:
    """Where no name is written with a capital: the words after «in» or «for»."""
    offers: list[Candidate] = []
    for match in _AFTER.finditer(text):
        for word in re.finditer(r"[^\W\d_][\w'-]*", match[1]):
            if word[0].lower() not in _NO_NAMES and len(word[0]) > 2:
                start = match.start(1) + word.start()
                offers.append(Candidate(word[0], start, start + len(word[0])))
    return offers


def _find_topics(text: str) -> list[Candidate]:
    """What it is about: the words after «about» or «for», else the sentence that asks."""
    if match := _TOPIC.search(text):
        return [Candidate(match["topic"].strip(" ,;:\"'")[:200], match.start("topic"), match.end("topic"))]
    sentences = [match for match in re.finditer(r"(?:[^.?!\n]|[.?!](?!\s|$))+", text) if match[0].strip()]
    return [Candidate(" ".join(match[0].split())[:200], match.start(), match.end()) for match in sentences[-1:]]


def _is_conjunction(between: str) -> bool:
    return len(between) < 24 and _JOINED.fullmatch(between) is not None and _JOINT.search(between) is not None


def _group(text: str, offers: list[Candidate]) -> tuple[Candidate, ...]:
    grouped: list[Candidate] = []
    group = 0
    for index, offer in enumerate(offers):
        if index and not (
            offers[index - 1].end <= offer.start and _is_conjunction(text[offers[index - 1].end : offer.start])
        ):
            group += 1
        grouped.append(replace(offer, group=group))
    return tuple(replace(offer, neighbors=_find_neighbors(text, offer, grouped)) for offer in grouped)


def _find_neighbors(text: str, offer: Candidate, offers: list[Candidate]) -> tuple[str, str]:
    told = [other for other in offers if other.group == offer.group]
    before = tokenize(text[max(0, told[0].start - 40) : told[0].start])
    after = tokenize(text[told[-1].end : told[-1].end + 40])
    return before[-1] if before else "", after[0] if after else ""


# --------------------------------------------------------------------------------------------------------------- words


def tokenize(text: str) -> list[str]:
    """The words of a text or name in lower case, without endings: `getCityNames` is get, city, name."""
    parted = re.sub(r"(?<=[a-z\d])(?=[A-Z])", " ", text)
    return [stem(word) for word in re.findall(r"[^\W_]+", parted)]


def stem(word: str) -> str:
    word = word.lower()
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
