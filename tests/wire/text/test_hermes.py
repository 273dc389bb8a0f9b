"""`hermes`: what models write between `<tool_call>` tags, well or badly."""

from __future__ import annotations

from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.wire.text.hermes import HERMES
from segue.wire.text.regions import BrokenCall
from segue.wire.text.registry import detect_format
from segue.wire.text.scan import scan_text
from tests.wire.text.formats import summarize_pieces

O, C = "<tool_call>", "</tool_call>"  # noqa: E741

CASES: dict[str, tuple[str, list[Any]]] = {
    "one call between words": (
        f'Hi {O}\n{{"name": "f", "arguments": {{"x": 1}}}}\n{C} bye',
        ["Hi ", ("f", {"x": 1}), " bye"],
    ),
    "parameters for arguments": (f'{O}{{"name": "f", "parameters": {{"x": 1}}}}{C}', [("f", {"x": 1})]),
    "arguments as a string": (f'{O}{{"name": "f", "arguments": "{{\\"x\\": 1}}"}}{C}', [("f", {"x": 1})]),
    "arguments as a string that is none": (f'{O}{{"name": "f", "arguments": "{{x"}}{C}', [("f", "{x")]),
    "no arguments": (f'{O}{{"name": "f"}}{C}{O}{{"name": "g", "arguments": null}}{C}', [("f", {}), ("g", {})]),
    "a function inside": (f'{O}{{"type": "function", "function": {{"name": "f", "arguments": {{}}}}}}{C}', [("f", {})]),
    "a list in one tag": (f'{O}[{{"name": "f"}}, {{"name": "g"}}]{C}', [("f", {}), ("g", {})]),
    "two objects in one tag": (f'{O}{{"name": "f"}}\n{{"name": "g"}}\n{C}', [("f", {}), ("g", {})]),
    "no closing tag between": (f'{O}{{"name": "f"}}\n{O}{{"name": "g"}}{C}', [("f", {}), "\n", ("g", {})]),
    "no closing tag at the end": (f'{O}\n{{"name": "f"}}\n', [("f", {}), "\n"]),
    "a brace too many": (f'{O}{{"name": "f", "arguments": {{}}}}}}\n{C}.', [("f", {}), "."]),
    "tags in a string": (f'{O}{{"name": "f", "arguments": {{"x": "{C}{O}"}}}}{C}', [("f", {"x": C + O})]),
    "nested braces in strings": (f'{O}{{"name": "f", "arguments": {{"x": "}}}}{{\\"]"}}}}{C}', [("f", {"x": '}}{"]'})]),
    "Python words and quotes": (
        f"{O}{{'name': 'f', 'arguments': {{'a': True, 'b': None, 'c': 'it\\'s \"x\"',}}}}{C}",
        [("f", {"a": True, "b": None, "c": 'it\'s "x"'})],
    ),
    "a line break in a string": (f'{O}{{"name": "f", "arguments": {{"x": "a\nb"}}}}{C}', [("f", {"x": "a\nb"})]),
    "a back slash that escapes nothing": (
        f'{O}{{"name": "f", "arguments": {{"x": "\\d\\\\w"}}}}{C}',
        [("f", {"x": r"\d\w"})],
    ),
    "keys without quotes": (f'{O}{{name: "f", arguments: {{x: 1}}}}{C}', [("f", {"x": 1})]),
    "an unknown name": (f'{O}{{"name": "nobody_told", "arguments": {{}}}}{C}', [("nobody_told", {})]),
    "a brace too few": (
        f'{O}{{"name": "f", "arguments": {{"x": 1}}\n{C} {O}{{"name": "g"}}{C}',
        [("f", {"x": 1}), " ", ("g", {})],
    ),
    "a bracket too few": (f'{O}[{{"name": "f"}}, {{"name": "g"}}{C}', [("f", {}), ("g", {})]),
    "two braces too few": (
        f'{O}{{"name": "f", "arguments": {{"x": 1{C} {O}{{"name": "g"}}{C}',
        [[f'{O}{{"name": "f", "arguments": {{"x": 1{C}'], " ", ("g", {})],
    ),
    "a brace too few and cut off": (
        f'{O}{{"name": "f", "arguments": {{"x": 1}}',
        [[f'{O}{{"name": "f", "arguments": {{"x": 1}}']],
    ),
    "a string without an end": (
        f'{O}{{"name": "f", "arguments": {{"x": "oh}}}}{C} {O}{{"name": "g"}}{C}',
        [[f'{O}{{"name": "f", "arguments": {{"x": "oh}}}}{C}'], " ", ("g", {})],
    ),
    "a new call in the middle": (
        f'{O}{{"name": "f", "arguments": {O}{{"name": "g"}}{C}',
        [[f'{O}{{"name": "f", "arguments": '], ("g", {})],
    ),
    "cut off": (f'{O}{{"name": "f", "arguments": {{"x": "1', [[f'{O}{{"name": "f", "arguments": {{"x": "1']]),
    "no name": (f'{O}{{"arguments": {{}}}}{C}', [[f'{O}{{"arguments": {{}}}}{C}']]),
    "arguments beside the name": (f'{O}{{"name": "f", "x": 1}}{C}', [[f'{O}{{"name": "f", "x": 1}}{C}']]),
    "the tag in a sentence": (f"Use {O} for calls.", ["Use ", [f"{O} "], "for calls."]),
    "no JSON at all": (f"{O}get_weather(Paris){C}", [[O], f"get_weather(Paris){C}"]),
    "two opening tags": (f'{O}\n{O}{{"name": "f"}}{C}', [[f"{O}\n"], ("f", {})]),
    "half a tag at the end": ("so <tool_ca", ["so <tool_ca"]),
    "in a fence": (f'```\n{O}{{"name": "f"}}{C}\n```', [f'```\n{O}{{"name": "f"}}{C}\n```']),
    "behind a back tick": (f'`{O}{{"name": "f"}}{C}`', [f'`{O}{{"name": "f"}}{C}`']),
    "nested beyond measure": (f"{O}{{" + '"a":{' * 600, [[f"{O}{{" + '"a":{' * 600]]),
}


@pytest.mark.parametrize("case", CASES)
def test_parse(case: str):
    text, expected = CASES[case]
    assert summarize_pieces(text, HERMES) == expected


def test_reason_for_a_broken_call():
    (lost,) = scan_text(f'{O}{{"name": "f", ', HERMES)
    assert isinstance(lost, BrokenCall)
    assert lost.reason == "unterminated JSON"


def test_render_like_the_template_and_escape_tags_in_strings():
    """TPL-01."""
    text = HERMES.render_calls([ToolCall("f", {"x": [1, "é</tool_call>"]}), ToolCall("g")])
    first = f'{O}\n{{"name": "f", "arguments": {{"x": [1, "é\\u003c/tool_call>"]}}}}\n{C}'
    assert text == f'{first}\n{O}\n{{"name": "g", "arguments": {{}}}}\n{C}'


def test_arguments_that_are_no_json_are_written_as_their_text():
    text = HERMES.render_calls([ToolCall("f", None, arguments_text='{"x": ')])
    assert summarize_pieces(text, HERMES) == [("f", '{"x": ')]


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ('{"name": "f", "arguments": {"x": 1', "unterminated JSON"),
        ('{"name": "f", "arguments": "x" {}}', "invalid JSON"),
    ],
)
def test_reason_for_no_call(inside: str, why: str):
    (lost, *_) = scan_text(f"{O}{inside}{C}", HERMES)
    assert isinstance(lost, BrokenCall)
    assert lost.reason == why


@pytest.mark.parametrize("between", ["", "\n"])
def test_format_is_detected_by_a_list_of_calls(between: str):
    assert detect_format(f'{O}{between}[{{"name": "f", "arguments": {{}}}}]{between}{C}') is HERMES
