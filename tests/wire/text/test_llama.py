"""`llama`: bare JSON, the Python tag, functions in tags and Python lists (TPL-02)."""

from __future__ import annotations

from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.llama import LLAMA
from segue.wire.text.registry import detect_format
from tests.wire.text.formats import summarize_pieces

DECLARED = DeclaredTools([Tool("f"), Tool("g")])
F, G = '{"name": "f", "parameters": {"x": 1}}', '{"name": "g", "parameters": {}}'
f, g = ("f", {"x": 1}), ("g", {})

CASES: dict[str, tuple[str, list[Any]]] = {
    "alone": (f"{F}<|eot_id|>", [f]),
    "arguments for parameters": (F.replace("parameters", "arguments"), [f]),
    "over several lines": ('{\n  "name": "f",\n  "parameters": {\n    "x": 1\n  }\n}\n', [f, "\n"]),
    "on a line of its own": (f"Sure:\n  {F}\nok", ["Sure:\n  ", f, "\nok"]),
    "in a sentence": (f"I say {F}", [f"I say {F}"]),
    "parted by semicolons": (f"{F}; {G};{F}<|eom_id|>", [f, g, f]),
    "parted by line breaks": (f"{F}\n\n{G}\n", [f, g, "\n"]),
    "a list": (f"[{F}, {G}]", [f, g]),
    "markers and braces in strings": (
        '{"name": "f", "parameters": {"x": "}{\\"<|eot_id|>\\n{"}}',
        [("f", {"x": '}{"<|eot_id|>\n{'})],
    ),
    "an unknown name": ('{"name": "h", "parameters": {}}', [['{"name": "h", "parameters": {}}']]),
    "an unknown name before words": ('{"name": "h", "parameters": {}} so', ['{"name": "h", "parameters": {}} so']),
    "other JSON": ('{"name": "Bob", "age": 3}\n[1, 2]', ['{"name": "Bob", "age": 3}\n[1, 2]']),
    "a broken call and a good one": (
        f'{{"name": "f", "parameters": {{"x": \n{G}',
        [['{"name": "f", "parameters": {"x": \n'], g],
    ),
    "a string without an end": (
        f'{{"name": "f", "parameters": {{"x": "a}}}}\n{G}',
        [['{"name": "f", "parameters": {"x": "a}}\n'], g],
    ),
    "cut off": ('{"name": "f", "param', [['{"name": "f", "param']]),
    "the Python tag and JSON": (f"<|python_tag|>{F}<|eom_id|>", [f]),
    "the Python tag and an unknown name": ('<|python_tag|>{"name": "h", "parameters": {}}', [("h", {})]),
    "a tool of its own": (
        '<|python_tag|>brave_search.call(query="a) b")<|eom_id|>',
        [("brave_search", {"query": "a) b"})],
    ),
    "the Python tag and code": ("<|python_tag|>print(1)", [["<|python_tag|>print"], "(1)"]),
    "a function in a tag": ('<function=f>{"x": 1}</function><|eot_id|>ok', [f, "ok"]),
    "a closing tag in its string": ('<function=f>{"x": "</function>"}</function>', [("f", {"x": "</function>"})]),
    "a function without its end": ('<function=f>{"x": 1}', [f]),
    "a broken function and a good one": (
        '<function=f>{"x": </function><function=g>{}</function>',
        [['<function=f>{"x": </function>'], g],
    ),
    "a Python list": ("[f(x=1), g()]<|eom_id|>", [f, g]),
    "a Python list between tokens": ("<|python_start|>[f(x=1), g()]<|python_end|><|eot|>", [f, g]),
    "an unknown name between tokens": ("<|python_start|>[h(x=1)]<|python_end|>", [("h", {"x": 1})]),
    "JSON between tokens": (f"Sure.<|python_start|>{F}<|python_end|>\n<|eom|>", ["Sure.", f]),
    "Python values": (
        "[f(a='it\\'s', b=[1, (2, 3)], c={'k': None}, d=True, e=-1.5)]",
        [("f", {"a": "it's", "b": [1, [2, 3]], "c": {"k": None}, "d": True, "e": -1.5})],
    ),
    "brackets in Python strings": ('[f(x="])"), g()]', [("f", {"x": "])"}), g]),
    "a Python list of unknown names": ("[h(x=1)]", [["[h(x=1)]"]]),
    "a Python list of unknown names before words": ("[h(x=1)] is it", ["[h(x=1)] is it"]),
    "a sum for a value": ("[f(x=1+2)]", [["[f(x=1+2)]"]]),
    "arguments without a name": ("[f(1)]", [["[f(1)]"]]),
    "a call within a call": ("[f(x=g())]", [["[f(x=g())]"]]),
    "links and lists": ("[f] (x)\n[f](http://x)\n[ ] todo\n[1]: y", ["[f] (x)\n[f](http://x)\n[ ] todo\n[1]: y"]),
    "in a fence": (f"```json\n{F}\n```", [f"```json\n{F}\n```"]),
}


@pytest.mark.parametrize("case", CASES)
def test_parse(case: str):
    text, expected = CASES[case]
    assert summarize_pieces(text, LLAMA, DECLARED) == expected


def test_without_tools_any_name_with_arguments_is_a_call():
    assert summarize_pieces('{"name": "h", "parameters": {}}', LLAMA) == [("h", {})]
    assert summarize_pieces('{"name": "h"}', LLAMA) == ['{"name": "h"}']
    assert summarize_pieces("[h(x=1)]", LLAMA) == [("h", {"x": 1})]


@pytest.mark.parametrize("text", ["[h(x=1+2)]", '[h(x=g("y"))]', "[h(x=1), h(x=y)]"])
def test_without_tools_a_list_of_calls_is_reported_as_missed(text: str):
    assert summarize_pieces(text, LLAMA) == [[text]]


@pytest.mark.parametrize("text", ["[h(x)]", "[h(x)](y)", "[h(x==1)]", "[h(x=1"])
def test_without_tools_other_brackets_are_text(text: str):
    assert summarize_pieces(text, LLAMA) == [text]


def test_code_goes_to_the_tool_that_runs_it():
    declared = DeclaredTools([Tool("code_interpreter")])
    text = "<|python_tag|>import math\nmath.sqrt(2)<|eom_id|>"
    assert summarize_pieces(text, LLAMA, declared) == [("code_interpreter", {"code": "import math\nmath.sqrt(2)"})]


def test_format_is_detected_by_llama_4_tokens():
    assert detect_format('Well.\n<|python_start|>[get_weather(city="Rome")]<|python_end|><|eot|>') is LLAMA


def test_render_like_the_template():
    assert LLAMA.render_calls([ToolCall("f", {"x": [1, "é"]})]) == '{"name": "f", "parameters": {"x": [1, "é"]}}'


def test_a_reply_holds_one_call():
    """TPL-02."""
    assert LLAMA.one_call_per_reply
