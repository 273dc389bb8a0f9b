"""Scalars for a schema: values of the user's text, then those of the schema, then generated ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from segue.emulator.model.pattern_text import make_text
from segue.emulator.model.prompt_values import PromptValue, Source, find_values, tokenize
from segue.wire.schema.json_schema import Node

_VARIANTS = 8
_BESIDE = 20
"""Characters before and after a number that can name its property: «3 days»."""
_DEFAULT_SOURCES: tuple[Source, ...] = ("quoted", "code")
_SOURCE_ROWS: tuple[tuple[str, tuple[Source, ...]], ...] = (
    ("url uri link href website endpoint", ("url",)),
    ("email mail recipient cc sender to from", ("email", "name", "path")),
    ("path file filename filepath directory dir folder glob", ("path", "quoted", "code")),
    ("source target origin destination", ("path", "name", "quoted")),
    ("date day deadline due until since", ("date",)),
    ("time hour when timestamp datetime start end", ("time", "date")),
    ("zone timezone tz", ("zone", "name")),
    ("city location place town country region state address airport station area", ("name", "quoted")),
    ("name person user author customer company team symbol ticker currency language", ("name", "quoted")),
    ("expression formula calculation equation math", ("sum", "code", "quoted", "topic")),
    ("command cmd code script shell sql patch", _DEFAULT_SOURCES),
    ("query q search keyword term topic question prompt pattern subject title", (*_DEFAULT_SOURCES, "topic")),
    ("content body message text note comment description task instruction input", (*_DEFAULT_SOURCES, "topic")),
    ("id identifier order ticket issue ref reference number key sku", ("id", "number", "quoted")),
)
_SOURCES = {word: sources for words, sources in _SOURCE_ROWS for word in words.split()}
# Of each format: the sources of its values, what completes such a value, and an example with a digit at `%`.
_FORMATS: Mapping[str, tuple[tuple[Source, ...], str, str]] = {
    "date": (("date",), "", "2026-01-1%"),
    "date-time": (("date",), "T00:00:00Z", "2026-01-1%T09:00:00Z"),
    "time": (("time",), ":00Z", "09:0%:00Z"),
    "duration": ((), "", "PT%H"),
    "email": (("email",), "", "name%@example.com"),
    "uri": (("url",), "", "https://example.com/%"),
    "uuid": ((), "", "123e4567-e89b-42d3-a456-42661417400%"),
    "ipv4": ((), "", "192.0.2.%"),
    "ipv6": ((), "", "2001:db8::%"),
    "hostname": ((), "", "host%.example.com"),
}


def sources_for(name: str, node: Node) -> tuple[Source, ...] | None:
    """Return the sources for a property, by the last known word of its name (`home_city`) or by its description."""
    words = [*reversed(tokenize(name)), *tokenize(f"{node.get('title', '')} {node.get('description', '')}")]
    return next((_SOURCES[word] for word in words if word in _SOURCES), None)


class ScalarSource:
    """Candidates for the scalars of one value, in order; the generator tries them and reports those that it uses.

    A value of the text is used once. `replaced` maps values of the text to others that are offered in their place.
    """

    def __init__(self, text: str, replaced: Mapping[PromptValue, PromptValue]) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._values = {
            source: [replaced.get(value, value) for value in values] for source, values in find_values(text).items()
        }
        self.used: list[PromptValue] = []

    def mark_used(self, value: Any) -> None:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            found = (one for values in self._values.values() for one in values if one.value == value)
            self.used += [one for one in found if one not in self.used][:1]

    def following(self, value: PromptValue) -> PromptValue | None:
        """Return the next value of the same list in the text."""
        values = self._values[value.source]
        place = values.index(value) + 1
        return values[place] if place < len(values) and values[place].group == value.group else None

    def _unused(self, sources: Sequence[Source], *, optional: bool) -> Iterator[PromptValue]:
        """Yield values that are not used yet; for an optional property only of sources of which none is used."""
        texts = {value.text for value in self.used}
        closed = {value.source for value in self.used} if optional else frozenset[Source]()
        for source in sources:
            if source not in closed:
                yield from (value for value in self._values[source] if value.text not in texts)

    # ------------------------------------------------------------------------------------------------------ candidates

    def enum_values(self, values: list[Any], node: Node, *, optional: bool) -> Iterator[Any]:
        """Yield the values that the text mentions, longest first; then all, unless the property is optional."""
        mentioned = [value for value in values if self._mentions(value)]
        yield from sorted(mentioned, key=lambda value: len(str(value)), reverse=True)
        if not optional:
            yield from (*schema_values(node), *values)

    def _mentions(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return False
        words = tokenize(str(value))
        starts = range(len(self._tokens) - len(words) + 1)
        return bool(words) and any(self._tokens[start : start + len(words)] == words for start in starts)

    def strings(self, node: Node, name: str, *, optional: bool) -> Iterator[str]:
        known, completion, _ = _FORMATS.get(node.get("format", ""), (None, "", ""))
        sources = known if known is not None else sources_for(name, node)
        if optional and sources is None:
            return
        sources = _DEFAULT_SOURCES if sources is None else sources
        for value in self._unused([source for source in sources if source != "topic"], optional=optional):
            yield from (value.text, f"{value.text}{completion}") if completion else (value.text,)
        if not optional:
            yield from (value for value in schema_values(node) if isinstance(value, str))
            yield from (value.text for value in self._unused(["topic"] if "topic" in sources else [], optional=False))
            yield from _make_strings(node, name)

    def numbers(self, node: Node, name: str, *, whole: bool, optional: bool) -> Iterator[Any]:
        """Yield numbers beside the name of the property («3 days») first; an optional property gets only those."""
        unused = list(self._unused(["number"], optional=False))
        beside = [value for value in unused if self._is_next_to(value, tokenize(name))]
        yield from (value.value for value in beside or (() if optional else unused))
        if not optional:
            yield from schema_values(node)
            yield from _make_numbers(node, whole=whole)

    def _is_next_to(self, value: PromptValue, tokens: list[str]) -> bool:
        before = tokenize(self._text[max(0, value.start - _BESIDE) : value.start])[-1:]
        after = tokenize(self._text[value.end : value.end + _BESIDE])[:1]
        return any(token in tokens for token in (*before, *after))

    def booleans(self, node: Node, name: str, *, optional: bool) -> Iterator[bool]:
        if any(token.startswith(word) for word in tokenize(name) if len(word) > 3 for token in self._tokens):
            yield True
        if not optional:
            yield from (value for value in schema_values(node) if isinstance(value, bool))
            yield from (False, True)


def schema_values(node: Node) -> Iterator[Any]:
    """Yield the default and the examples of a schema, valid or not."""
    if "default" in node:
        yield node["default"]
    yield from node.get("examples", ())


# ----------------------------------------------------------------------------------------------------------- generated


def _make_strings(node: Node, name: str) -> Iterator[str]:
    """Yield texts, the plainest first. Not all are valid."""
    least, most = node.get("minLength", 0), node.get("maxLength", math.inf)
    if form := _FORMATS.get(node.get("format", "")):
        yield from (form[2].replace("%", str(number)) for number in range(1, _VARIANTS))
    plain = " ".join(re.findall(r"[^\W_]+", name)) or "text"
    for number in range(1, _VARIANTS):
        yield _fit_length(plain if number == 1 else f"{plain} {number}", least, most, number)
    if "pattern" in node:
        texts = [make_text(node["pattern"], length=length) for length in (least, least + 1, least + 4)]
        yield from filter(None, texts)
        yield from (_fit_length(text, least, most, 1) for text in texts if text)
    yield ""


def _fit_length(text: str, least: int, most: float, number: int) -> str:
    if len(text) > most:
        end = str(number) if number > 1 else ""
        return (text[: max(0, int(most) - len(end))] + end)[: int(most)]
    return text if len(text) >= least else (f"{text} " * (least // (len(text) + 1) + 1))[: least - 1] + text[-1:]


def _make_numbers(node: Node, *, whole: bool) -> Iterator[int | float]:
    """Yield 1, 0, multiples near the bounds, and numbers between the bounds. Not all are valid."""
    low = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    high = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    step = node.get("multipleOf", 1)
    yield from (1, 0)
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0
    for unit in (step, step * 10):
        for count in (0, 1, 2, 3, -1, -2, -3, 4, 5):
            number = (-(-start // unit) + count) * unit
            if number / step == number // step:  # Not so for floats that are multiples only in decimal.
                yield int(number) if number == int(number) else number
    if not whole:
        middle = (low + high) / 2 if math.isfinite(low + high) else start
        yield from filter(math.isfinite, (middle, start + 0.5, start - 0.5, low, high, (low + middle) / 2))
