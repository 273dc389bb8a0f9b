"""`xml`: calls as tags, in the variants of Qwen3-Coder, GLM, Claude and MiniMax (TPL-03, TPL-05, TPL-06)."""

from __future__ import annotations

from typing import Any

import pytest

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.xml import XML, XML_VARIANTS
from tests.wire.text.formats import summarize_pieces

PREFIX = "antml" + ":"


def qwen(inner: str, name: str = "f") -> str:
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def prefixed(text: str) -> str:
    return text.replace("</", f"<//{PREFIX}").replace("<", f"<{PREFIX}").replace(f"<{PREFIX}//{PREFIX}", f"</{PREFIX}")


ONE = "<parameter=x>\na\n</parameter>\n"
INNER = qwen(ONE, "g")
INVOKE = '<function_calls>\n<invoke name="f">\n<parameter name="x">a & <b>\n</parameter>\n</invoke>\n</function_calls>'

CASES: dict[str, tuple[str, list[Any]]] = {
    "Qwen3-Coder": (f"Hi {qwen(ONE)} bye", ["Hi ", ("f", {"x": "a"}), " bye"]),
    "values on one line": (
        qwen("<parameter=x>a</parameter><parameter=y> b </parameter>"),
        [("f", {"x": "a", "y": " b "})],
    ),
    "line breaks of its own": (qwen("<parameter=x>\n\na\n\n</parameter>\n"), [("f", {"x": "\na\n"})]),
    "no parameters": (qwen(""), [("f", {})]),
    "without the outer tag": ("<function=f>\n</function>\nok", [("f", {}), "\nok"]),
    "without the outer opening tag": ("<function=f></function>\n</tool_call>ok", [("f", {}), "ok"]),
    "two functions in one tag": (
        "<tool_call><function=f></function>\n<function=g></function></tool_call>",
        [("f", {}), ("g", {})],
    ),
    "HTML in a value": (
        qwen("<parameter=x>\n<a href='b'>c</a> &lt; < >\n</parameter>\n"),
        [("f", {"x": "<a href='b'>c</a> &lt; < >"})],
    ),
    "a whole call in a value": (qwen(f"<parameter=x>\nsay\n{INNER}\n</parameter>\n"), [("f", {"x": f"say\n{INNER}"})]),
    "a closing tag in a value": (
        qwen("<parameter=x>\na </parameter> b\n</parameter>\n"),
        [("f", {"x": "a </parameter> b"})],
    ),
    "an opening tag in a value": (
        qwen("<parameter=x>\na <parameter=y> b\n</parameter>\n"),
        [("f", {"x": "a <parameter=y> b"})],
    ),
    "an escaped tag in a value": (
        qwen("<parameter=x>\n<\\/parameter>\n</parameter>\n"),
        [("f", {"x": "</parameter>"})],
    ),
    "other back slashes in a value": (
        qwen("<parameter=x>\n<\\/script>\n</parameter>\n"),
        [("f", {"x": "<\\/script>"})],
    ),
    "what values look like": (
        qwen(
            "".join(f"<parameter={k}>{v}</parameter>" for k, v in {"a": 1, "b": "true", "c": "[1]", "d": "1x"}.items())
        ),
        [("f", {"a": 1, "b": True, "c": [1], "d": "1x"})],
    ),
    "no end of the function": (
        "<tool_call><function=f><parameter=x>a</parameter></tool_call>.",
        [("f", {"x": "a"}), "."],
    ),
    "no outer end at the end": (
        "<tool_call><function=f><parameter=x>a</parameter></function>\n",
        [("f", {"x": "a"}), "\n"],
    ),
    "cut off in a value": ("<tool_call><function=f><parameter=x>a", [["<tool_call><function=f><parameter=x>a"]]),
    "cut off behind a value": (
        "<tool_call><function=f><parameter=x>a</parameter>",
        [["<tool_call><function=f><parameter=x>a</parameter>"]],
    ),
    "cut off, and another call": (
        f"<tool_call><function=f><parameter=x>a\n{qwen('', 'g')}",
        [["<tool_call><function=f><parameter=x>a\n"], ("g", {})],
    ),
    "words where a parameter should be": (
        f"<tool_call><function=f> oh {qwen('', 'g')}",
        [["<tool_call><function=f> "], "oh ", ("g", {})],
    ),
    "the tag in a sentence": ("a <function=x b", ["a ", ["<function=x b"]]),
    "GLM 4.6": (
        (
            "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>a <b></arg_value>\n"
            "<arg_key>n</arg_key>\n<arg_value>5</arg_value>\n</tool_call>"
        ),
        [("f", {"x": "a <b>", "n": 5})],
    ),
    "GLM 4.7": (
        "<tool_call>f<arg_key>x</arg_key><arg_value>\na</arg_value></tool_call><tool_call>g</tool_call>",
        [("f", {"x": "\na"}), ("g", {})],
    ),
    "GLM without the last tag": ("<tool_call>f<arg_key>x</arg_key><arg_value>a</arg_value>", [("f", {"x": "a"})]),
    "GLM in a sentence": ("the <tool_call> tag is", ["the ", ["<tool_call> tag "], "is"]),
    "JSON": ('<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>', [("f", {"x": 1})]),
    "invoke": (INVOKE, [("f", {"x": "a & <b>\n"})]),
    "invoke alone": ('<invoke name="f"></invoke> ok', [("f", {}), " ok"]),
    "entities in a name, not in a value": (
        '<invoke name="a&amp;b"><parameter name="k&quot;">&lt;</parameter></invoke>',
        [("a&b", {'k"': "&lt;"})],
    ),
    "MiniMax": (
        (
            '<minimax:tool_call>\n<invoke name="f">\n<parameter name="x">1</parameter>\n</invoke>\n'
            '<invoke name="g">\n</invoke>\n</minimax:tool_call>'
        ),
        [("f", {"x": 1}), ("g", {})],
    ),
    "Seed": ("<seed:tool_call><function=f><parameter=x>a</parameter></function></seed:tool_call>", [("f", {"x": "a"})]),
}


@pytest.mark.parametrize("case", CASES)
def test_parse(case: str):
    text, expected = CASES[case]
    assert summarize_pieces(text, XML) == expected


def test_parse_prefixed_tags():
    text = prefixed('<function_calls><invoke name="f"><parameter name="x">1</parameter></invoke></function_calls>')
    assert text.count(PREFIX) == 6
    assert summarize_pieces(text, XML) == [("f", {"x": 1})]


DECLARED = DeclaredTools(
    [
        Tool(
            "f",
            parameters={
                "properties": {
                    "s": {"type": "string"},
                    "n": {"type": "integer"},
                    "o": {"$ref": "#/$defs/o"},
                    "m": {"type": ["string", "null"]},
                    "e": {"enum": ["1", "2"]},
                    "u": {"anyOf": [{"type": "string"}, {"type": "array"}]},
                },
                "required": ["s"],
                "$defs": {"o": {"type": "object"}},
            },
        )
    ]
)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("s", "10", "10"),
        ("s", "null", "null"),
        ("s", '{"a": 1}', '{"a": 1}'),
        ("n", "10", 10),
        ("n", "ten", "ten"),
        ("o", "{'a': True,}", {"a": True}),
        ("m", "null", None),
        ("m", "10", "10"),
        ("e", "1", "1"),
        ("u", "[1]", [1]),
        ("u", "10", "10"),
        ("unknown", "10", 10),
        ("unknown", '"10"', '"10"'),
        ("unknown", "1, 2", "1, 2"),
    ],
)
def test_values_have_the_declared_type(key: str, text: str, value: object):
    call = qwen(f"<parameter={key}>\n{text}\n</parameter>\n")
    assert summarize_pieces(call, XML, DECLARED) == [("f", {key: value})]


def test_a_parameter_without_its_end_ends_before_the_next_declared_one():
    text = qwen("<parameter=s>\na\n<parameter=n>\n1\n</parameter>\n")
    assert summarize_pieces(text, XML, DECLARED) == [("f", {"s": "a", "n": 1})]


def test_the_last_parameter_without_its_end_ends_with_the_call():
    assert summarize_pieces(qwen("<parameter=s>\na\n"), XML, DECLARED) == [("f", {"s": "a"})]


def test_unclosed_call_is_valid_if_nothing_required_is_missing():
    head = "<tool_call>\n<function=f>\n"
    assert summarize_pieces(f"{head}<parameter=s>\na\n</parameter>", XML, DECLARED) == [("f", {"s": "a"})]
    lacking = f"{head}<parameter=n>\n1\n</parameter>"
    assert summarize_pieces(lacking, XML, DECLARED) == [[lacking]]


CALLS = [ToolCall("f", {"x": "</parameter>", "n": {"a": [True]}}), ToolCall("g")]
WRITTEN = {
    "qwen": "<tool_call>\n<function=f>\n<parameter=x>\n<\\/parameter>\n</parameter>\n"
    '<parameter=n>\n{"a": [true]}\n</parameter>\n'
    "</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>",
    "glm": "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value><\\/parameter></arg_value>\n"
    '<arg_key>n</arg_key>\n<arg_value>{"a": [true]}</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>',
    "minimax": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="x"><\\/parameter></parameter>\n'
    '<parameter name="n">{"a": [true]}</parameter>\n</invoke>\n<invoke name="g">\n</invoke>\n</minimax:tool_call>',
}


@pytest.mark.parametrize("spelling", XML_VARIANTS)
def test_render_each_variant(spelling: str):
    assert XML_VARIANTS[spelling].render_calls(CALLS) == WRITTEN[spelling]


def test_non_object_arguments_are_rejected():
    text = XML.render_calls([ToolCall("f", 5), ToolCall("f", None, arguments_text='{"x')])
    assert [piece for piece in summarize_pieces(text, XML) if isinstance(piece, tuple)] == [
        ("f", {"value": 5}),
        ("f", {"_raw": '{"x'}),
    ]
