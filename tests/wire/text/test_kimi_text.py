"""`kimi-text`: the tokens of K2 and the elements of K3 (TPL-09, TPL-10)."""

from __future__ import annotations

import pytest
from hypothesis import given

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.kimi import KIMI_TEXT
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

B, A, E = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
S, SE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
OPEN, CLOSE, SEP = "<|open|>", "<|close|>", "<|sep|>"


def k3(name: str, *arguments: tuple[str, str, str]) -> str:
    inner = "".join(
        f'{OPEN}argument key="{key}" type="{kind}"{SEP}{value}{CLOSE}argument{SEP}' for key, kind, value in arguments
    )
    return f'{OPEN}call tool="{name}" index="1"{SEP}{inner}{CLOSE}call{SEP}'


READ = {
    "a section with one call": (f'{S}{B}functions.get:0{A}{{"a": 1}}{E}{SE}', [("get", {"a": 1})], ""),
    "several, with words around": (
        f'before{S}{B}functions.get:0{A}{{"a": 1}}{E}{B}functions.put:1{A}{{}}{E}{SE}after',
        [("get", {"a": 1}), ("put", {})],
        "beforeafter",
    ),
    "line breaks between": (
        f"{S}\n{B}get:0{A}\n{{}}\n{E}\n{B}put:1{A} {{}} {E}\n{SE}",
        [("get", {}), ("put", {})],
        "\n",
    ),
    "the singular section": (
        f"<|tool_call_section_begin|>{B}functions.get:0{A}{{}}{E}<|tool_call_section_end|>.",
        [("get", {})],
        ".",
    ),
    "text before the first call": (f"{S}So: {B}get:0{A}{{}}{E}{SE}.", [("get", {})], "So: ."),
    "text between the calls": (
        f"{S}{B}get:0{A}{{}}{E} and {B}put:1{A}{{}}{E}{SE}",
        [("get", {}), ("put", {})],
        " and ",
    ),
    "text in place of calls": (f"Well, {S} I < can't. {SE}", [], "Well,  I < can't. "),
    "no section": (f"{B}functions.get:0{A}{{}}{E}", [("get", {})], ""),
    "leaked into a sentence": (f"I look {B}functions.get:0{A}{{}}{E} it up", [("get", {})], "I look  it up"),
    "the end missing at the end": (f'{S}{B}functions.get:0{A}{{"a": [1, 2]}}', [("get", {"a": [1, 2]})], ""),
    "the end of one missing": (f"{S}{B}get:0{A}{{}}{B}put:1{A}{{}}{E}{SE}", [("get", {}), ("put", {})], ""),
    "no arguments at all": (f"{B}functions.get:0{A}{E}", [("get", {})], ""),
    "null for arguments": (f"{B}functions.get:0{A}null{E}", [("get", {})], ""),
    "arguments encoded twice": (f'{B}get:0{A}"{{\\"a\\": 1}}"{E}', [("get", {"a": 1})], ""),
    "Python's words and a comma too many": (
        f"{B}get:0{A}{{'a': True, 'b': None,}}{E}",
        [("get", {"a": True, "b": None})],
        "",
    ),
    "tokens in a string": (f'{B}get:0{A}{{"a": "{E}{B}{SE}"}}{E}', [("get", {"a": f"{E}{B}{SE}"})], ""),
    "braces and quotes in a string": (f'{B}get:0{A}{{"a": "}}\\"}}{{"}}{E}', [("get", {"a": '}"}{'})], ""),
    "K3, all types": (
        f"{OPEN}tools{SEP}"
        + k3("get", ("s", "string", "10"), ("n", "number", "10"), ("b", "boolean", "true"), ("z", "null", "null"))
        + k3("put", ("o", "object", '{"x": [1]}'), ("a", "array", "[1]"))
        + f"{CLOSE}tools{SEP}",
        [("get", {"s": "10", "n": 10, "b": True, "z": None}), ("put", {"o": {"x": [1]}, "a": [1]})],
        "",
    ),
    "K3, one JSON block": (
        f'{OPEN}call tool="get" index="1"{SEP}{OPEN}json type="object"{SEP}{{"a": 1}}{CLOSE}json{SEP}{CLOSE}call{SEP}',
        [("get", {"a": 1})],
        "",
    ),
    "K3, an escaped attribute": (
        k3("get", ("a &quot;b&quot; &amp;", "string", "<b>&amp;")),
        [("get", {'a "b" &': "<b>&amp;"})],
        "",
    ),
    "K3, markers in a value": (
        k3("get", ("a", "string", f"{CLOSE}call{SEP}{B}{OPEN}tools{SEP}")),
        [("get", {"a": f"{CLOSE}call{SEP}{B}{OPEN}tools{SEP}"})],
        "",
    ),
    "K3, no parameters": (k3("now"), [("now", {})], ""),
    "quoted behind a back tick": (f"write `{B}get:0{A}{{}}{E}`", [], f"write `{B}get:0{A}{{}}{E}`"),
    "in a fence": (f"```\n{B}get:0{A}{{}}{E}\n```\n", [], f"```\n{B}get:0{A}{{}}{E}\n```\n"),
    "half a token": ("a <|tool_call", [], "a <|tool_call"),
}


@pytest.mark.parametrize("case", READ)
def test_calls_are_parsed_and_the_rest_is_text(case: str) -> None:
    text, expected, around = READ[case]
    pieces = read(text, KIMI_TEXT)
    assert (calls(pieces), plain_text(pieces), lost(pieces)) == (expected, around, [])


LOST = {
    "an object that ends too early": (f'{B}get:0{A}{{"a": {E} x', [f'{B}get:0{A}{{"a": {E}'], []),
    "a new call inside one": (f'{B}get:0{A}{{"a": {B}put:1{A}{{}}{E}', [f'{B}get:0{A}{{"a": '], ["put"]),
    "cut off in a string": (f'ok {B}get:0{A}{{"a": "Par', [f'{B}get:0{A}{{"a": "Par'], []),
    "cut off before the arguments": (f"{B}get:0", [B], []),
    "no JSON": (f"{B}get:0{A}Paris{E}{B}put:1{A}{{}}{E}", [f"{B}get:0{A}Paris{E}"], ["put"]),
    "no arguments": (f"{B}get:0{E}{B}put:1{A}{{}}{E}", [f"{B}get:0{E}"], ["put"]),
    "no id": (f"{B}{A}{{}}{E}", [f"{B}{A}{{}}{E}"], []),
    "an empty section": (f"{S}{SE} x", [f"{S}{SE}"], []),
    "a section that is talked about": (f"{S} begins a section.", [S], []),
    "a section with too much text": (f"{S} {'x' * 2000}{B}put:1{A}{{}}{E}", [S], ["put"]),
    "K3, a value without an end": (
        f'{OPEN}call tool="get" index="1"{SEP}{OPEN}argument key="a" type="string"{SEP}x{CLOSE}call{SEP}'
        + k3("put", ("b", "string", "y")),
        [f'{OPEN}call tool="get" index="1"{SEP}{OPEN}argument key="a" type="string"{SEP}x{CLOSE}call{SEP}'],
        ["put"],
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_broken_call_stays_and_the_next_one_is_found(case: str) -> None:
    text, broken, names = LOST[case]
    pieces = read(text, KIMI_TEXT)
    assert (lost(pieces), [name for name, _ in calls(pieces)]) == (broken, names)


IDS = {
    "functions.get:3": "get",
    "get:3": "get",
    "functions.get": "get",
    "get": "get",
    "functions.a.b:12": "a.b",
    " functions.get:3\n": "get",
    "functions.get:call_7": "get",
    "call_abc": "call_abc",
}


@pytest.mark.parametrize("raw_id", IDS)
def test_the_name_is_in_the_id_and_the_id_stays_as_it_is_written(raw_id: str) -> None:
    (found,) = scan_text(f"{B}{raw_id}{A}{{}}{E}", KIMI_TEXT)
    assert isinstance(found, FoundCall)
    assert (found.name, found.raw_id) == (IDS[raw_id], raw_id.strip())


@pytest.mark.parametrize(
    ("raw_id", "name"),
    [
        ("functions.x.get:0", "get"),
        ("ns:get:0", "ns:get"),
        ("ns:get", "ns:get"),
        ("functions.no:0", "no"),
        ("get:x", "get"),
    ],
)
def test_declared_names_resolve_an_odd_id(raw_id: str, name: str) -> None:
    (found,) = scan_text(f"{B}{raw_id}{A}{{}}{E}", KIMI_TEXT, DeclaredTools([Tool("get"), Tool("ns:get")]))
    assert isinstance(found, FoundCall)
    assert found.name == name


@given(CALLS)
@examples(0.6)
def test_rendered_calls_read_back(named_arguments: list[NamedArguments]) -> None:
    pieces = scan_text(KIMI_TEXT.render_calls(make_calls(named_arguments)), KIMI_TEXT, declared_for(named_arguments))
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == named_arguments
    assert len(pieces) == len(named_arguments)


def test_a_call_is_rendered_under_its_id_and_so_is_its_result() -> None:
    own, foreign = ToolCall("get", {"a": 1}, id="functions.get:4"), ToolCall("get", {}, id="toolu_1:x")
    assert KIMI_TEXT.render_calls([own, foreign]) == (
        f'{S}{B}functions.get:4{A}{{"a": 1}}{E}{B}functions.get:toolu_1%3Ax{A}{{}}{E}{SE}'
    )
    assert KIMI_TEXT.render_results(
        [ResultText("get", "functions.get:4", "ok"), ResultText("get", "toolu_1:x", "no")]
    ) == ("## Return of functions.get:4\nok\n\n## Return of functions.get:toolu_1%3Ax\nno")


def test_tools_are_declared_as_json() -> None:
    rendered = KIMI_TEXT.render_tools(
        [Tool("get", "Gets.", {"type": "object", "properties": {"a": {"type": "string"}}})]
    )
    assert '{"type": "function", "function": {"name": "get", "description": "Gets.", "parameters": {' in rendered


@pytest.mark.parametrize(
    "text",
    [
        B,
        S,
        f"{B}a{A}",
        f"{B}a{A}{{",
        f'{B}a{A}{{"',
        f"{B}a{A}{{'\\",
        "<",
        f"{B}a{A}{{}}",
        f"{B}a{A}{{}} ",
        k3("a")[:60],
        f"{OPEN}argument key=",
        f'{OPEN}call tool="a"{SEP}',
        k3("a", ("b", "string", f"{OPEN}call "))[:-20],
    ],
)
def test_work_grows_with_the_text(text: str) -> None:
    assert_linear(text, KIMI_TEXT)
