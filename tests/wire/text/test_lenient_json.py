"""Lenient JSON as models write it: unambiguous input is parsed, ambiguous input is rejected."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.wire.text.lenient_json import InvalidJsonError, JsonScanner, parse_lenient
from tests.budget import examples


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ("{'a': 'b \"c\" \\'d\\''}", {"a": "b \"c\" 'd'"}),
        ('{"a": True, "b": None, "c": "True"}', {"a": True, "b": None, "c": "True"}),
        ("{a: 1, b_2: 'x: y'}", {"a": 1, "b_2": "x: y"}),
        ("(1, (2,))", [1, [2]]),
        ('"a\n\tb"', "a\n\tb"),
        (r'"\d \\d \x41 \u00e9 \/ \q"', r"\d \d A é / \q"),
        (r"'\\'", "\\"),
        ('"\\ud83d"', "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_unambiguous_json_is_parsed(text: str, value: object):
    assert parse_lenient(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", "{", '"a', "'a", '"a\\"', '{"a" 1}', "{1}", "a b", '{"a": 1} x', "[" * 600 + "]" * 600]
)
def test_ambiguous_json_is_rejected(text: str):
    with pytest.raises(InvalidJsonError):
        parse_lenient(text)


@pytest.mark.parametrize(
    ("text", "end"), [('{"a": "}"} x', 10), ("[{}, []] x", 8), ("{'a': '\\'}'} x", 12), (" {} {}", 3)]
)
def test_a_value_ends_where_its_brackets_do(text: str, end: int):
    for size in (1, 2, 100):
        scan = JsonScanner()
        places = ((start, scan.feed(text[start : start + size])) for start in range(0, len(text), size))
        assert next(start + place for start, place in places if place is not None) == end
        assert not scan.broken


@pytest.mark.parametrize(
    ("text", "end"),
    [('{"a": <', 6), ('{"a": \\', 6), ('{"a" "b"}', 5), ('{"a": 1 {', 8), ("{{", 1), ("}", 0), ('{"a": oh "', 9)],
)
def test_value_ends_where_it_becomes_invalid(text: str, end: int):
    scan = JsonScanner("<")
    assert (scan.feed(text), scan.broken) == (end, True)


@examples(1)
@given(st.text(alphabet="\"'\\ab{}[]:, \n(=)<TrueNone1.-", max_size=40))
def test_any_text_is_read_or_refused(text: str):
    with contextlib.suppress(InvalidJsonError):
        parse_lenient(text)
