"""Hints for a property by its name, description and format, and generated values for it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from msgspec import Struct

from segue.emulator.model.candidates import Source, tokenize
from segue.emulator.model.regex_text import make_text
from segue.wire.schema.json_schema import Node

__all__ = ["PropertyHint", "find_format", "fit_format", "hint_for", "make_numbers", "make_strings"]

_VARIANTS = 8
_EXACT = 2**53


class PropertyHint(Struct, frozen=True):
    """Where a text for it is looked for: in `sources` first; in `weak` ones where nothing better is at hand."""

    sources: tuple[Source, ...] = ("quoted", "code")
    fallback_sources: tuple[Source, ...] = ()
    is_named: bool = False
    """Whether the name said so."""


def _build_hints(*rows: tuple[str, tuple[Source, ...], tuple[Source, ...]]) -> dict[str, PropertyHint]:
    return {word: PropertyHint(sources, weak, is_named=True) for words, sources, weak in rows for word in words.split()}


_HINTS = _build_hints(
    ("url uri link href website endpoint", ("url",), ()),
    ("email mail recipient cc sender to from", ("email", "name", "path"), ()),
    ("path file filename filepath directory dir folder glob", ("path", "quoted", "code"), ()),
    ("source target origin destination", ("path", "name", "quoted"), ()),
    ("date day deadline due birthday until since", ("date", "day"), ()),
    ("time hour when timestamp datetime start end", ("time", "date", "day"), ()),
    ("zone timezone tz", ("path", "name"), ()),
    ("city location place town country region state address airport station area", ("name", "quoted"), ()),
    ("name person user author customer company team symbol ticker currency language", ("name", "quoted"), ()),
    ("expression formula calculation equation math", ("sum", "code", "quoted"), ("topic",)),
    ("command cmd code script shell sql patch", ("code", "quoted"), ()),
    ("query q search keyword term topic question prompt pattern subject title", ("quoted", "code"), ("topic",)),
    ("content body message text note comment description task instruction input", ("quoted", "code"), ("topic",)),
    ("id identifier order ticket issue ref reference number key sku", ("id", "number", "quoted"), ()),
)
_OPEN = PropertyHint()


def hint_for(name: str, node: Node) -> PropertyHint:
    """By the last word of the name that says something (`home_city` is a city), else by what is said of it."""
    said = chain(reversed(tokenize(name)), *(tokenize(str(node.get(key, ""))) for key in ("title", "description")))
    return next((_HINTS[word] for word in said if word in _HINTS), _OPEN)


# ------------------------------------------------------------------------------------------------------------- formats


class _Format(Struct, frozen=True):
    sources: tuple[Source, ...]
    pattern: re.Pattern[str]
    example: str
    """With the number of the variant at `%`."""


_FORMATS: dict[str, _Format] = {
    "date": _Format(("date",), re.compile(r"\d{4}-\d\d-\d\d"), "2026-01-1%"),
    "date-time": _Format(
        ("date",), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "2026-01-1%T09:00:00Z"
    ),
    "time": _Format(("time",), re.compile(r"\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "09:0%:00Z"),
    "duration": _Format((), re.compile(r"P(?:\d+[YMWD])*(?:T(?:\d+[HMS])+)?"), "PT%H"),
    "email": _Format(("email",), re.compile(r"[^@\s]+@[^@\s]+"), "name%@example.com"),
    "uri": _Format(("url",), re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "https://example.com/%"),
    "uuid": _Format(
        (),
        re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
        "123e4567-e89b-42d3-a456-42661417400%",
    ),
    "ipv4": _Format((), re.compile(r"(?:\d{1,3}\.){3}\d{1,3}"), "192.0.2.%"),
    "ipv6": _Format((), re.compile(r"[0-9a-f:]*:[0-9a-f:]+", re.IGNORECASE), "2001:db8::%"),
    "hostname": _Format((), re.compile(r"[A-Za-z0-9.-]+"), "host%.example.com"),
}
_FORMAT_ALIASES = {"url": "uri", "iri": "uri", "uri-reference": "uri", "idn-email": "email"}


def find_format(name: str | None) -> _Format | None:
    return _FORMATS.get(_FORMAT_ALIASES.get(name or "", name or ""))


def fit_format(text: str, name: str | None) -> str | None:
    """What the words offer, as the format writes it; None where it is no such thing."""
    form = find_format(name)
    if form is None:
        return text
    if name == "date":
        text = text[:10]
    elif name == "date-time" and "T" not in text:
        text = f"{text}T00:00:00Z"
    elif name == "date-time" and len(text) == 16:
        text = f"{text}:00Z"
    elif name == "date-time" and not text.endswith("Z") and text.count(":") == 2 and "+" not in text:
        text = f"{text}Z"
    elif name == "time":
        text = f"{text.zfill(5)}:00Z" if text.count(":") == 1 else f"{text}Z"
    return text if form.pattern.fullmatch(text) else None


# ------------------------------------------------------------------------------------------------------------- made up


def make_strings(node: Node, name: str, prompt: Iterable[str]) -> Iterator[str]:
    """Texts for a node, the plainest first. Not all of them fit it."""
    least, most = node.get("minLength", 0), node.get("maxLength", math.inf)
    pattern = node.get("pattern")
    if pattern is not None:
        yield from prompt
    form = find_format(node.get("format"))
    if form is not None:
        yield from (form.example.replace("%", str(number)) for number in range(1, _VARIANTS))
    plain = " ".join(re.findall(r"[^\W_]+", name)) or "text"
    for number in range(1, _VARIANTS):
        yield _of_length(plain if number == 1 else f"{plain} {number}", least, most, number)
    if pattern is not None:
        for length in (least, least + 1, least + 4):
            text = make_text(pattern, length=length)
            if text is not None:
                yield text
                yield _of_length(text, least, most, 1)
    yield ""


def _of_length(text: str, least: int, most: float, number: int) -> str:
    if len(text) > most:
        end = str(number) if number > 1 else ""
        return (text[: max(0, int(most) - len(end))] + end)[: int(most)]
    return text if len(text) >= least else (f"{text} " * (least // (len(text) + 1) + 1))[: least - 1] + text[-1:]


def make_numbers(node: Node, *, whole: bool) -> Iterator[Any]:
    """Numbers for a node, 1 first where it may be."""
    low = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    high = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    step = node.get("multipleOf", 1)
    yield from (1, 0)
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0
    for unit in (step, step * 10):
        near = -(-start // unit)
        for count in (0, 1, 2, 3, -1, -2, -3, 4, 5):
            number = (near + count) * unit
            yield int(number) if abs(number) < _EXACT and number == int(number) else number
    if not whole:
        middle = (low + high) / 2 if math.isfinite(low + high) else start
        tried = (middle, start + 0.5, start - 0.5, low, high, (low + middle) / 2, (middle + high) / 2)
        yield from filter(math.isfinite, tried)
