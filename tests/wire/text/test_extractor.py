"""Text extraction besides calls: reasoning between tags, EOS tokens, and findings."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import segue
from segue.canonical.blocks import Text, ToolCall
from segue.wire.stream.events import BlockEnd, BlockStart, TextDelta
from segue.wire.text.extractor import TextExtractor, ThinkTagSplitter
from segue.wire.text.llama import LLAMA
from segue.wire.text.mistral import MISTRAL_TEXT
from segue.wire.text.registry import FORMATS
from segue.wire.text.text_format import TextFormat

TAGS = {
    "mistral-text": ("[THINK]", "[/THINK]"),
    "gemma": ("<|channel>thought\n", "<channel|>"),
    "hermes": ("<think>", "</think>"),
}
CALLS = {
    "mistral-text": '[TOOL_CALLS]f[ARGS]{"x": 1}',
    "gemma": "<|tool_call>call:f{x:1}<tool_call|>",
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>',
}


def extract(text: str, format: str, tools: object = None) -> tuple[str, str, list[tuple[str, object]]]:
    parsed = segue.extract(text, format, tools=tools)
    return parsed.thinking, parsed.text, [(call.name, call.arguments) for call in parsed.calls]


@pytest.mark.parametrize("format", TAGS)
def test_leading_tagged_text_is_reasoning_without_calls(format: str):
    opening, close = TAGS[format]
    text = f"{opening}Perhaps {CALLS[format]} or [ so <{close}\n\nHi. {CALLS[format]}"
    thought = f"Perhaps {CALLS[format]} or [ so <"
    assert extract(text, format) == (thought, "Hi. ", [("f", {"x": 1})])
    assert extract(text, "auto") == extract(text, format)


@pytest.mark.parametrize("format", TAGS)
def test_empty_reasoning_tags_are_removed(format: str):
    opening, close = TAGS[format]
    assert extract(f"{opening}{close}Hi.", format) == ("", "Hi.", [])
    assert extract(f"{opening}{close}Hi.", "auto") == ("", "Hi.", [])


@pytest.mark.parametrize("format", TAGS)
def test_tags_inside_the_text_stay_text(format: str):
    opening, close = TAGS[format]
    text = f"Hi. {opening}a{close}"
    # Gemma 4 has special tokens for this, which are reasoning anywhere.
    assert extract(text, format) == (("a", "Hi. ", []) if format == "gemma" else ("", text, []))


@pytest.mark.parametrize("format", TAGS)
def test_tags_are_found_in_any_split(format: str):
    opening, close = TAGS[format]
    text = f" {opening}a [/ </ <ch{close}\n\nb"
    for place in range(len(text)):
        tags = ThinkTagSplitter(enabled=True)
        parts = [*tags.feed(text[:place]), *tags.feed(text[place:]), *tags.feed("", ended=True)]
        assert "".join(text_ for kind, text_ in parts if kind is not Text) == "a [/ </ <ch"
        assert "".join(text_ for kind, text_ in parts if kind is Text) == "b"


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def findings(text: str, format: str, tools: object = None) -> list[str]:
    return [finding.message for finding in segue.extract(text, format, tools=tools).report.findings]


def test_list_of_undeclared_calls_is_reported_once():
    text = '[nope(city="Bern"), no(x=1)]\n'
    assert extract(text, "llama", TOOLS) == ("", text, [])
    (note,) = findings(text, "llama", TOOLS)
    assert "unknown tool" in note
    assert not findings(f"Say:\n{text}", "llama", TOOLS)
    assert not findings(f"{text}so.", "llama", TOOLS)


ENDED = [(form, token) for form in FORMATS for token in form.eos_tokens]


def streamed(parts: Iterable[str], form: TextFormat) -> tuple[str, list[str]]:
    """The text and the names of the calls extracted from a stream."""
    hearing = TextExtractor(form, turn_key="turn")
    events = hearing.feed([BlockStart(0, Text("")), *(TextDelta(0, part) for part in parts), BlockEnd(0, Text(""))])
    blocks = [event.block for event in events if isinstance(event, BlockEnd)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "".join(block.text for block in blocks if isinstance(block, Text))
    return text, [block.name for block in blocks if isinstance(block, ToolCall)]


@pytest.mark.parametrize(("form", "token"), ENDED, ids=lambda value: getattr(value, "name", value))
def test_eos_token_is_removed_from_the_text(form: TextFormat, token: str):
    call = form.render_calls([ToolCall("f", {"x": 1})])
    cases = {
        f"Hi.{token}": ("Hi.", []),
        f"Hi.{token}{token}\n": ("Hi.", []),
        f"Hi. {call}{token}": ("Hi. ", ["f"]),
        f"{call}\n{token}\nSo.": ("\nSo.", ["f"]),
        f"Say {token} so.": (f"Say {token} so.", []),
        f"Hi.{token[:-1]}": (f"Hi.{token[:-1]}", []),
    }
    if form is LLAMA:
        cases[f"Hi. {call}{token}"] = (f"Hi. {call}", [])
    for text, expected in cases.items():
        assert streamed([text], form) == expected, text
        assert streamed(text, form) == expected, text
        assert streamed([text[:-3], text[-3:]], form) == expected, text


def test_struck_out_text_keeps_its_closing_tag():
    assert streamed(["Now <", "s>old</s>"], MISTRAL_TEXT) == ("Now <s>old</s>", [])


def test_eos_token_is_removed_from_a_whole_reply():
    assert extract("Hi.<|im_end|>", "hermes") == ("", "Hi.", [])


WEATHER = {
    "type": "object",
    "properties": {"days": {"type": "integer"}, "at": {"type": ["number", "null"]}, "any": {}, "city": {"$ref": "#/d"}},
    "d": {"type": "string"},
}
TYPED = [{"type": "function", "function": {"name": "f", "parameters": WEATHER}}]


def xml(**values: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"


def test_a_value_that_is_not_of_its_declared_type_stays_text_and_is_reported():
    text = xml(days="three", at="1", any="x", city="3", more="y")
    arguments = {"days": "three", "at": 1, "any": "x", "city": "3", "more": "y"}
    assert extract(text, "xml", TYPED) == ("", "", [("f", arguments)])
    assert findings(text, "xml", TYPED) == ["argument days does not have its declared type (integer)"]
    assert not findings(xml(days="3", at="null"), "xml", TYPED)
    assert not findings(text, "xml")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("[1]", "arguments are not a JSON object"),
        ("3", "arguments are not a JSON object"),
        ('"what?"', "arguments are not valid JSON, kept as text"),
        ("{}", None),
        ('""', None),
        ("null", None),
    ],
)
def test_arguments_that_are_no_object_are_reported(arguments: str, why: str | None):
    text = f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'
    assert findings(text, "hermes") == ([] if why is None else [why])


TWICE = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"x": 1, "x": 2}}\n</tool_call>',
    "hermes, as a string": '<tool_call>\n{"name": "f", "arguments": "{\\"x\\": 1, \\"x\\": 2}"}\n</tool_call>',
    "hermes, loosely": "<tool_call>\n{'name': 'f', 'arguments': {x: 1, 'x': 2,}}\n</tool_call>",
    "llama": "[f(x=1, x=2)]",
    "mistral-text": '[TOOL_CALLS]f[ARGS]{"x": 1, "x": 2}',
    "mistral-text, a list": '[TOOL_CALLS][{"name": "f", "arguments": {"x": 1, "x": 2}}]',
    "gemma": "<|tool_call>call:f{x:1,x:2}<tool_call|>",
    "xml": "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=x>\n2\n</parameter>\n"
    "</function>\n</tool_call>",
    "xml, MiniMax": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<x>1]<]minimax[>[</x>'
    "]<]minimax[>[<x>2]<]minimax[>[</x>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
    "kimi-text": '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"x": 1, "x": 2}<|tool_call_end|>',
    "deepseek-text": '<｜DSML｜invoke name="f"><｜DSML｜parameter name="x">1</｜DSML｜parameter>'
    '<｜DSML｜parameter name="x">2</｜DSML｜parameter></｜DSML｜invoke>',
}


@pytest.mark.parametrize("case", TWICE)
def test_duplicate_key_is_reported(case: str):
    format = case.split(",", maxsplit=1)[0]
    assert extract(TWICE[case], format) == ("", "", [("f", {"x": 2})])
    assert findings(TWICE[case], format) == ["duplicate argument x: the last value is used"]
