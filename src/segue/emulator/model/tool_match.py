"""Ranks tools by how well the words of their declarations match the user's text; rare words weigh more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from segue.canonical.request import Tool
from segue.emulator.model.arguments import count_candidates
from segue.emulator.model.candidates import find_candidates, tokenize
from segue.emulator.model.property_hints import hint_for
from segue.emulator.model.regex_text import make_text

__all__ = ["make_free_text", "match_tools", "rank_tools"]

_NAME, _PARAMETER, _DESCRIPTION, _CANDIDATE, _TOPIC, _MISSING = 4.0, 1.0, 1.0, 0.75, 0.3, 0.2
_SCORE_SHARE = 0.6
"""A tool whose score is at least so much of the best one's is called too."""
_STOP_TEXT = """
    a about all also an and any are as at be by can call current do does for from get give given has have how i if in
    into is it its like make me my new no not of on one or our please s set some tell that the their them then there
    this to tool up use used user using want was we were what when where which who will with would you your
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_SYNONYMS = (
    frozenset({"read", "open", "show", "cat", "view", "print"}),
    frozenset({"search", "find", "look", "lookup", "grep", "seek"}),
    frozenset({"delete", "remove", "drop"}),
    frozenset({"run", "execute", "exec", "bash", "shell", "command", "terminal"}),
    frozenset({"write", "save", "create", "store"}),
    frozenset({"edit", "change", "replace", "update", "fix"}),
    frozenset({"weather", "forecast", "temperature", "warm", "cold", "rain", "sunny"}),
    frozenset({"time", "clock", "late"}),
    frozenset({"calculate", "compute", "calculator", "math", "sum", "add", "multiply"}),
    frozenset({"mail", "email", "send"}),
    frozenset({"fetch", "download", "url", "web", "page"}),
)


def rank_tools(tools: Sequence[Tool], text: str) -> list[Tool]:
    """The tools to call, in the order of their declaration; at least one, where there is one."""
    if not tools:
        return []
    said = _weigh_tokens(tokenize(text[-4_000:]))
    shares = Counter(word for tool in tools for word in set(tokenize(tool.name)))
    spoken = Counter(word for tool in tools for word in set(tokenize(tool.description or "")))
    scores = [_score(tool, text, said, shares, spoken) for tool in tools]
    best = max(range(len(tools)), key=lambda index: scores[index][0])
    least = scores[best][0] * _SCORE_SHARE
    return [
        tool
        for index, (tool, (score, asked)) in enumerate(zip(tools, scores, strict=True))
        if index == best or (asked and score >= least)
    ]


def match_tools(tools: Sequence[Tool], text: str, *, other_tools: Iterable[Tool], by_name: bool) -> list[Tool]:
    """Of those that stand beside others, the ones that the words ask for: by a word of their name that no other tool
    has in its own, or by their descriptions."""
    common = {word for tool in other_tools for word in tokenize(tool.name)}
    heard = _weigh_tokens(tokenize(text[-4_000:]))
    if by_name:
        asked = [tool for tool in tools if any(word in heard for word in {*tokenize(tool.name)} - common)]
    else:
        asked = [tool for tool in tools if sum(heard.get(word, 0) for word in {*tokenize(tool.description or "")}) >= 1]
    return rank_tools(asked, text)


def _weigh_tokens(said: list[str]) -> dict[str, float]:
    """The words that tell something, and those that mean the like with half their weight."""
    heard = {word: 1.0 for word in said if word not in _STOP_WORDS}
    for word in list(heard):
        for alike in _SYNONYMS:
            if word in alike:
                heard = {**dict.fromkeys(alike, 0.5), **heard}
    return heard


def _score(
    tool: Tool, text: str, said: dict[str, float], shares: Counter[str], spoken: Counter[str]
) -> tuple[float, bool]:
    """How well a tool fits, and whether its own words were said at all."""
    name = sum(said.get(word, 0) / shares[word] for word in set(tokenize(tool.name)))
    described = sum(said.get(word, 0) / spoken[word] for word in set(tokenize(tool.description or "")))
    score = _NAME * name + _DESCRIPTION * described
    if tool.kind == "function":
        schema = tool.parameters or {}
        parameters = sum(said.get(word, 0) for word in set(_parameter_tokens(schema)))
        named, by_topic = count_candidates(schema, text)
        filled = min(named, 3) + (_TOPIC if by_topic else 0)
        lacking = max(0, len(_strings_in(schema.get("required"))) - named - by_topic)
        score += _PARAMETER * min(parameters, 2) + _CANDIDATE * filled - _MISSING * min(lacking, 3)
    return score, name > 0 or described >= 1


def _parameter_tokens(schema: Mapping[str, Any]) -> Iterator[str]:
    for name in _strings_in(schema.get("properties")):
        yield from tokenize(name)


def _strings_in(value: object) -> list[str]:
    """The texts in a list or the keys of an object; a schema may hold anything in their place."""
    held = cast("Iterable[object]", value) if isinstance(value, list | dict) else ()
    return [item for item in held if isinstance(item, str)]


def make_free_text(tool: Tool, prompt: str) -> str:
    """The input of a tool that takes free text: by its pattern if it has one, else what the words offer."""
    grammar = tool.grammar or {}
    if grammar.get("syntax") == "regex":
        text = make_text(str(grammar.get("definition", "")))
        if text is not None:
            return text
    offers = find_candidates(prompt[-4_000:])
    slot = hint_for(tool.name, {"description": tool.description or ""})
    for source in (*slot.sources, "code", "quoted", *slot.fallback_sources, "topic"):
        if offers.get(source):
            return offers[source][0].text
    return tool.name
