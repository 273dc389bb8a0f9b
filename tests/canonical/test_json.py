"""Parsing JSON: rejected input with its error, and repaired input."""

from __future__ import annotations

from typing import Any

import pytest

from segue.canonical.json import encode_json, parse_argument_text, parse_json, reject_duplicate_key, to_plain_json
from segue.errors import InputError


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"a": }', "line 1, column 7"),
        (b'{\n "a": 1,\n}', "line 3"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": Infinity}', "not JSON"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"\x00\x01\x02", "binary"),
        (b'{"a":' * 501 + b"1" + b"}" * 501, "500 levels"),
        (b"[" * 100_000, "500 levels"),
        (b'{"a": 1} x', "not JSON"),
    ],
)
def test_bad_input_is_one_clear_line(data: bytes, says: str):
    with pytest.raises(InputError) as caught:
        parse_json(data)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_brackets_in_strings_are_no_depth():
    text = b'{"a": "' + b'[{\\\\\\"' * 2000 + b'"}'
    assert parse_json(text)[0]["a"].count("[") == 2000


def test_five_hundred_levels_are_fine():
    assert parse_json(b"[" * 500 + b"]" * 500)[1] == 0


@pytest.mark.parametrize(
    ("data", "text", "count"),
    [
        (rb'"\ud83d\ude00"', "\U0001f600", 0),
        (rb'"a\ud83d b"', "a\ufffd b", 1),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd", 2),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600", 1),
        (rb'"\\ud83d"', r"\ud83d", 0),
        (rb'"\ud83d\n"', "\ufffd\n", 1),
    ],
)
def test_half_a_character_becomes_a_replacement_and_is_counted(data: bytes, text: str, count: int):
    assert parse_json(data) == (text, count)


def test_ints_and_floats_keep_their_type():
    assert (
        encode_json(parse_json(b"[1,1.0,123456789012345678901234567890]")[0])
        == b"[1,1.0,123456789012345678901234567890]"
    )


@pytest.mark.parametrize(
    ("text", "value", "exact"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ("", {}, ""),
        ("[1]", [1], None),
        ('{"a":', None, '{"a":'),
        ("[" * 600 + "]" * 600, None, "[" * 600 + "]" * 600),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}, None),
    ],
)
def test_argument_text_that_is_not_json_stays_text(text: str, value: Any, exact: str | None):
    assert parse_argument_text(text) == (value, exact)


def test_invalid_python_value_is_reported_by_path():
    for bad, path in [({"a": [float("nan")]}, "a[0]"), ({"a": {"b": {1, 2}.__class__}}, "a.b"), ({"a": {1: 2}}, "a")]:
        with pytest.raises(InputError) as caught:
            to_plain_json(bad)
        assert caught.value.path == path


def test_unserializable_value_is_named_by_type():
    with pytest.raises(InputError) as caught:
        to_plain_json([object()])
    assert str(caught.value) == "[0]: a value of type 'object' can't be written as JSON"


@pytest.mark.parametrize("template", ['{"input":%s,"x":{"input":1}}', '{ "input": %s, "x": {"input":1} }'])
def test_a_nested_key_is_no_duplicate(template: str) -> None:
    reject_duplicate_key((template % "[]").encode(), "input")
    with pytest.raises(InputError, match="duplicate key `input`"):
        reject_duplicate_key((template % '[],"input":[]').encode(), "input")
