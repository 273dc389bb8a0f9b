"""Selects the tools whose declarations match the user's text; words that many tools share count less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

from segue.canonical.request import Tool
from segue.emulator.model.prompt_values import find_values, tokenize
from segue.emulator.model.scalars import sources_for
from segue.wire.schema.json_schema import Node

_MAX_TEXT = 4_000
_NAME, _DESCRIPTION, _VALUE, _TOPIC, _MISSING = 4.0, 1.0, 0.75, 0.3, 0.2
_SCORE_SHARE = 0.6
"""A tool with at least this share of the best score is called too."""
_STOP_TEXT = """
    a about all also an and any are as at be by can call current do does for from get give has have how i if in into is
    it its like make me my new no not of on one or our please s set some tell that the their them then there this to
    tool up use used user using want was we were what when where which who will with would you your
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def select_tools(tools: Sequence[Tool], text: str) -> list[Tool]:
    """Return the tools to call, in the order of their declaration; at least one if there are any."""
    if not tools:
        return []
    tokens = _significant_tokens(text)
    name_counts = Counter(word for tool in tools for word in set(tokenize(tool.name)))
    description_counts = Counter(word for tool in tools for word in set(tokenize(tool.description or "")))
    scores: list[float] = []
    mentioned: list[bool] = []
    for tool in tools:
        name = sum(1 / name_counts[word] for word in tokens.intersection(tokenize(tool.name)))
        described = sum(1 / description_counts[word] for word in tokens.intersection(tokenize(tool.description or "")))
        scores.append(_NAME * name + _DESCRIPTION * described + _score_values(tool, text))
        mentioned.append(name > 0 or described >= 1)
    best = scores.index(max(scores))
    least = scores[best] * _SCORE_SHARE
    return [tool for index, tool in enumerate(tools) if index == best or (mentioned[index] and scores[index] >= least)]


def find_mentioned_tools(tools: Iterable[Tool], text: str, *, other_tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools with a word in their names that is in the text and in no name of the other tools."""
    tokens = _significant_tokens(text).difference(*(tokenize(tool.name) for tool in other_tools))
    return [tool for tool in tools if tokens.intersection(tokenize(tool.name))]


def _significant_tokens(text: str) -> set[str]:
    return set(tokenize(text[-_MAX_TEXT:])) - _STOP_WORDS


def _score_values(tool: Tool, text: str) -> float:
    """Return the score for the values that the text has for the tool's properties, less those that it lacks."""
    schema = tool.parameters or {}
    properties: object = schema.get("properties")
    required: object = schema.get("required")
    if not isinstance(properties, dict):
        return 0
    values = find_values(text[-_MAX_TEXT:])
    score, has_topic = 0.0, False
    for name, node in cast("Node", properties).items():
        sources = sources_for(name, cast("Node", node) if isinstance(node, dict) else {}) or ()
        found = [place for place, source in enumerate(sources, start=1) if values[source] and source != "topic"]
        if found:
            score += _VALUE / found[0]
        elif "topic" in sources:
            has_topic = True
        elif isinstance(required, list) and name in required:
            score -= _MISSING
    return score + _TOPIC if has_topic and score <= 0 else score
