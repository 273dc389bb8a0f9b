"""What is heard in the words of a reply besides its calls: reasoning between tags, and what is reported."""

from __future__ import annotations

import pytest

import segue
from segue.canonical.blocks import Text
from segue.wire.text.hearing import ThinkTags

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


def told(text: str, format: str, tools: object = None) -> tuple[str, str, list[tuple[str, object]]]:
    heard = segue.extract(text, format, tools=tools)
    return heard.thinking, heard.text, [(call.name, call.arguments) for call in heard.calls]


@pytest.mark.parametrize("format", TAGS)
def test_what_a_reply_begins_with_in_tags_is_reasoning_and_calls_in_it_are_none(format: str):
    opening, close = TAGS[format]
    text = f"{opening}Perhaps {CALLS[format]} or [ so <{close}\n\nHi. {CALLS[format]}"
    thought = f"Perhaps {CALLS[format]} or [ so <"
    assert told(text, format) == (thought, "Hi. ", [("f", {"x": 1})])
    assert told(text, "auto") == told(text, format)


@pytest.mark.parametrize("format", TAGS)
def test_tags_are_not_left_in_the_text_where_nothing_is_between_them(format: str):
    opening, close = TAGS[format]
    assert told(f"{opening}{close}Hi.", format) == ("", "Hi.", [])
    assert told(f"{opening}{close}Hi.", "auto") == ("", "Hi.", [])


@pytest.mark.parametrize("format", TAGS)
def test_tags_inside_of_the_words_are_words(format: str):
    opening, close = TAGS[format]
    text = f"Hi. {opening}a{close}"
    assert told(text, format) == ("", text, [])


@pytest.mark.parametrize("format", TAGS)
def test_tags_are_heard_in_any_split(format: str):
    opening, close = TAGS[format]
    text = f" {opening}a [/ </ <ch{close}\n\nb"
    for place in range(len(text)):
        tags = ThinkTags(listen=True)
        parts = [*tags.feed(text[:place]), *tags.feed(text[place:]), *tags.feed("", ended=True)]
        assert "".join(said for kind, said in parts if kind is not Text) == "a [/ </ <ch"
        assert "".join(said for kind, said in parts if kind is Text) == "b"


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def findings(text: str, format: str, tools: object = None) -> list[str]:
    return [finding.message for finding in segue.extract(text, format, tools=tools).report.findings]


def test_a_list_of_undeclared_calls_is_reported_once_if_nothing_else_is_said():
    text = '[nope(city="Bern"), no(x=1)]\n'
    assert told(text, "llama", TOOLS) == ("", text, [])
    (note,) = findings(text, "llama", TOOLS)
    assert "no such tool" in note
    assert not findings(f"Say:\n{text}", "llama", TOOLS)
    assert not findings(f"{text}so.", "llama", TOOLS)
