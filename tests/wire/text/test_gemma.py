"""`gemma`: Gemma 4 and FunctionGemma (TPL-11)."""

from __future__ import annotations

import pytest
from hypothesis import given

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.gemma import GEMMA
from segue.wire.text.regions import FoundCall
from segue.wire.text.scan import scan_text
from segue.wire.text.text_format import ResultText
from tests.budget import examples
from tests.wire.text.parsing import (
    CALLS,
    NamedArguments,
    assert_linear,
    calls,
    declared_for,
    lost,
    make_calls,
    plain_text,
    read,
)

B, C, Q = "<|tool_call>", "<tool_call|>", '<|"|>'
FO, FC, FQ = "<start_function_call>", "<end_function_call>", "<escape>"

READ = {
    "a string": (f"{B}call:get{{city:{Q}Paris{Q}}}{C}", [("get", {"city": "Paris"})], ""),
    "all kinds of values": (
        f"{B}call:get{{a:1,b:-2.5e3,c:true,d:false,e:null,f:None,g:[1,{Q}x{Q},[]],h:{{i:{{}}}}}}{C}",
        [
            (
                "get",
                {"a": 1, "b": -2500.0, "c": True, "d": False, "e": None, "f": None, "g": [1, "x", []], "h": {"i": {}}},
            )
        ],
        "",
    ),
    "several, with words around": (
        f"Let me see.\n{B}call:get{{}}{C}{B}call:put{{}}{C}!",
        [("get", {}), ("put", {})],
        "Let me see.\n!",
    ),
    "FunctionGemma": (
        f"{FO}call:get{{city:{FQ}Paris, {{x}}{FQ},n:3}}{FC}",
        [("get", {"city": "Paris, {x}", "n": 3})],
        "",
    ),
    "markers and braces in a string": (
        f"{B}call:get{{a:{Q}}}{C}{B}'\"\\{Q}}}{C}",
        [("get", {"a": f"}}{C}{B}'\"\\"})],
        "",
    ),
    "the other quote in a string": (f"{B}call:get{{a:{Q}{FQ}{Q}}}{C}", [("get", {"a": FQ})], ""),
    "blanks and line breaks": (f"{B} call:get {{\n a : {Q}x{Q} ,\n b : 1\n}}\n{C}", [("get", {"a": "x", "b": 1})], ""),
    "quoted keys": (f'{B}call:get{{{Q}a b{Q}:1,"c:d":2}}{C}', [("get", {"a b": 1, "c:d": 2})], ""),
    "JSON": (f'{B}call:get{{"a": "x\\n", "b": [true]}}{C}', [("get", {"a": "x\n", "b": [True]})], ""),
    "bare words": (
        f"{B}call:get{{city:New York,time:10:30,it:don't}}{C}",
        [("get", {"city": "New York", "time": "10:30", "it": "don't"})],
        "",
    ),
    "a comma too many": (f"{B}call:get{{a:[1,2,],b:1,}}{C}", [("get", {"a": [1, 2], "b": 1})], ""),
    "the end missing at the end": (f"{B}call:get{{a:1}}", [("get", {"a": 1})], ""),
    "no call: before the name": (f"{B}get{{a:1}}{C}", [("get", {"a": 1})], ""),
    "quoted": (
        f"`{B}call:get{{}}{C}`\n```\n{B}call:get{{}}{C}\n```",
        [],
        f"`{B}call:get{{}}{C}`\n```\n{B}call:get{{}}{C}\n```",
    ),
    "Python in a fence": (
        "Sure:\n```tool_code\nget(city='Paris', days=3, all=True)\n```\nDone.",
        [("get", {"city": "Paris", "days": 3, "all": True})],
        "Sure:\n\nDone.",
    ),
    "Python in a fence, printed, with its module": (
        '```tool_code\nprint(default_api.get(city="a, (b)", of=[1, {"x": None}]))\n```',
        [("get", {"city": "a, (b)", "of": [1, {"x": None}]})],
        "",
    ),
    "Python in a fence, several": ("```tool_code\nget(a=1)\n\nput()\n```\n", [("get", {"a": 1}), ("put", {})], "\n"),
    "Python in a fence, a list": ("```tool_code\n[get(a=1), put()]\n```", [("get", {"a": 1}), ("put", {})], ""),
    "another fence": ("```tool\nget()\n```\n```python\nget()\n```", [], "```tool\nget()\n```\n```python\nget()\n```"),
    "a fence that is not at the start of a line": ("a ```tool_code get() ```", [], "a ```tool_code get() ```"),
    "a fence in a fence": ("````\n```tool_code\nget()\n```\n````", [], "````\n```tool_code\nget()\n```\n````"),
    "half a fence": ("```tool_", [], "```tool_"),
    "half a token": ("a <|tool_c", [], "a <|tool_c"),
}


@pytest.mark.parametrize("case", READ)
def test_calls_are_parsed_and_the_rest_is_text(case: str) -> None:
    text, expected, around = READ[case]
    pieces = read(text, GEMMA)
    assert (calls(pieces), plain_text(pieces), lost(pieces)) == (expected, around, [])


LOST = {
    "an object that ends too early": (f"{B}call:get{{a:{C} x", [f"{B}call:get{{a:{C}"], []),
    "a new call inside one": (f"{B}call:get{{a:[{B}call:put{{}}{C}", [f"{B}call:get{{a:["], ["put"]),
    "cut off in a string": (f"ok {B}call:get{{a:{Q}Par", [f"{B}call:get{{a:{Q}Par"], []),
    "cut off in the name": (f"{B}call:ge", [B], []),
    "no arguments": (f"{B}call:get{C}{B}call:put{{}}{C}", [f"{B}call:get{C}"], ["put"]),
    "no name": (f"{B}call:{{}}{C}", [f"{B}call:{{}}{C}"], []),
    "a name of several words": (f"{B}I shall call {{}}{C}", [f"{B}I shall call {{}}{C}"], []),
    "a value without a key": (f"{B}call:get{{1}}{C}{B}call:put{{}}{C}", [f"{B}call:get{{1}}{C}"], ["put"]),
    "a key without a value": (f"{B}call:get{{a:}}{C}", [f"{B}call:get{{a:}}{C}"], []),
    "a bracket of the wrong kind": (f"{B}call:get{{a:[1}}}}{C}", [f"{B}call:get{{a:[1}}}}{C}"], []),
    "code that is more than calls": (
        f"```tool_code\nimport os\nx = get(a=1)\n```\n{B}call:put{{}}{C}",
        ["```tool_code\nimport os\nx = get(a=1)\n```"],
        ["put"],
    ),
    "code without an end": ("```tool_code\nget(a=1)", ["```tool_code\nget(a=1)"], []),
    "nested too deep": (
        f"{B}call:get{{a:{'[' * 600}{']' * 600}}}{C}",
        [f"{B}call:get{{a:{'[' * 600}{']' * 600}}}{C}"],
        [],
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_broken_call_stays_and_the_next_one_is_found(case: str) -> None:
    text, broken, names = LOST[case]
    pieces = read(text, GEMMA)
    assert (lost(pieces), [name for name, _ in calls(pieces)]) == (broken, names)


@given(CALLS)
@examples(0.6)
def test_rendered_calls_read_back(named_arguments: list[NamedArguments]) -> None:
    pieces = scan_text(GEMMA.render_calls(make_calls(named_arguments)), GEMMA, declared_for(named_arguments))
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == named_arguments
    assert len(pieces) == len(named_arguments)


def test_it_is_rendered_as_gemma_4() -> None:
    call = ToolCall("get", {"z": [1.5, None], "A": {"x": True, "y": "a\n"}, "b c": Q})
    assert GEMMA.render_calls([call, ToolCall("now", {})]) == (
        f'{B}call:get{{A:{{x:true,y:{Q}a\n{Q}}},{Q}b c{Q}:"\\u003c|\\"|>",z:[1.5,None]}}{C}{B}call:now{{}}{C}'
    )
    assert GEMMA.render_results([ResultText("get", "1", "ok"), ResultText("put", "2", "no")]) == (
        f"<|tool_response>response:get{{value:{Q}ok{Q}}}<tool_response|>"
        f"<|tool_response>response:put{{value:{Q}no{Q}}}<tool_response|>"
    )


def test_tools_are_declared_as_the_template_does() -> None:
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["c", "f"], "description": "Which."},
            "at": {"type": "array", "items": {"type": "object", "properties": {"lat": {"type": "number"}}}},
            "o": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        },
        "required": ["unit"],
    }
    assert GEMMA.render_tools([Tool("get", "Gets.", schema)]) == (
        f"<|tool>declaration:get{{description:{Q}Gets.{Q},parameters:{{properties:{{"
        f"at:{{items:{{properties:{{lat:{{type:{Q}NUMBER{Q}}}}},type:{Q}OBJECT{Q}}},type:{Q}ARRAY{Q}}},"
        f"o:{{properties:{{x:{{type:{Q}INTEGER{Q}}}}},required:[{Q}x{Q}],type:{Q}OBJECT{Q}}},"
        f"unit:{{description:{Q}Which.{Q},enum:[{Q}c{Q},{Q}f{Q}],type:{Q}STRING{Q}}}}},"
        f"required:[{Q}unit{Q}],type:{Q}OBJECT{Q}}}}}<tool|>"
    )


@pytest.mark.parametrize(
    "text",
    [
        B,
        f"{B}call:",
        f"{B}call:a{{",
        f"{B}call:a{{b:{Q}",
        f"{B}call:a{{b:[",
        f"{B}call:a{{}} ",
        "<",
        "<|",
        Q,
        f'{B}a{{"',
        FO,
        f"{B}a{{b:'\\",
        "```",
        "```tool_code\n",
        "```tool_code\na(\n```\n",
    ],
)
def test_work_grows_with_the_text(text: str) -> None:
    assert_linear(text, GEMMA)
