"""Test helpers for text formats: summarize the segments of a text, and generate texts and calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.regions import BrokenCall, FoundCall, Segment
from segue.wire.text.registry import FORMATS
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import TextFormat
from segue.wire.text.xml import XML_VARIANTS
from tests.wire.text.parsing import text_of

EACH: dict[str, TextFormat] = {form.name: form for form in FORMATS} | {
    f"xml as {name} writes it": form for name, form in XML_VARIANTS.items() if name != "qwen"
}
"""All formats, and the other variants of `xml`."""

CALL = ToolCall("get_weather", {"city": "Paris", "days": 3, "detail": {"wind": True, "of": ["a", None]}})
OTHER = ToolCall("look", {"at": 'it\'s "here"\n</b>'})


def type_of(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def declared_for(calls: Iterable[ToolCall]) -> DeclaredTools:
    """Tools with exactly the parameters that these calls use."""
    tools: dict[str, dict[str, Any]] = {}
    for call in calls:
        known = tools.setdefault(call.name, {})
        for key, value in call.arguments.items():
            known.setdefault(key, {"type": type_of(value)})
    schemas = {name: {"type": "object", "properties": known, "required": [*known]} for name, known in tools.items()}
    return DeclaredTools(Tool(name, parameters=schema) for name, schema in schemas.items())


DECLARED = declared_for([CALL, OTHER])


def cut(text: str, places: Iterable[int]) -> list[str]:
    stops = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:stop] for start, stop in pairwise(stops)]


def summarize_pieces(text: str, form: TextFormat, declared: DeclaredTools | None = None) -> list[Any]:
    """Text as it is, calls as name and arguments, broken calls as a list of their text. No character is missing."""
    pieces = scan_text(text, form, declared)
    assert text_of(pieces) == text
    return [_summarize_piece(piece) for piece in pieces]


def _summarize_piece(piece: Segment) -> Any:
    match piece:
        case FoundCall():
            return (piece.name, piece.arguments if piece.arguments_text is None else piece.arguments_text)
        case BrokenCall():
            return [piece.raw_text]
        case _:
            return piece


UNTAGGED = (
    *("```json\n", "\n```\n", "\n", '{"name": "get_weather", "arguments": {"city": "a"}}', '{"name": "look"'),
    *("call:", "look", '(at="b")', "&lt;tool_call&gt;", "&lt;", "&", "\\u003c", "\\", "<|channel>thought\n"),
    *("<channel|>", "```tool_code\n", 'print(look(at="b"))', "<|tool_calls_section_begin|>", "\\n"),
)
"""Parts of calls without the tags of a format, or with escaped ones."""


def fragments(form: TextFormat) -> list[str]:
    """Difficult input: the format's own markers, whole and in part, and punctuation."""
    calls = form.render_calls([CALL, OTHER] if not form.one_call_per_reply else [CALL])
    steps = range(0, len(calls), max(1, len(calls) // 12))
    parts = [calls[start:stop] for start in steps for stop in steps if start < stop]
    return [
        *form.markers,
        calls,
        *parts,
        *"\"'{}[]<>\\`\n ,:;(=)",
        "```\n",
        "~~~",
        '{"',
        '"}',
        "</",
        "words",
        "é😀",
        *UNTAGGED,
    ]


def texts(form: TextFormat) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(fragments(form)), max_size=12).map("".join)


def _nasty(form: TextFormat) -> st.SearchStrategy[str]:
    return st.one_of(st.text(max_size=12), st.lists(st.sampled_from(fragments(form)), max_size=4).map("".join))


def call_lists(form: TextFormat) -> st.SearchStrategy[list[ToolCall]]:
    """Calls with arguments of any kind. One key of one tool always has values of one type."""
    texts = _nasty(form)
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | texts
    values = st.recursive(
        leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=6
    )
    names = st.sampled_from(["look", "get_weather", "a-b_c.d"])
    keys = st.one_of(st.sampled_from(["city", "a_b", "x-y"]), texts)
    calls = st.builds(ToolCall, names, st.dictionaries(keys, values, max_size=3))
    return st.lists(calls, min_size=1, max_size=1 if form.one_call_per_reply else 3).filter(_has_consistent_types)


def _has_consistent_types(calls: list[ToolCall]) -> bool:
    types: dict[tuple[str, str], str] = {}
    pairs = [((call.name, key), type_of(value)) for call in calls for key, value in _items(call.arguments)]
    return all(types.setdefault(place, kind) == kind for place, kind in pairs)


def _items(arguments: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return arguments.items()
