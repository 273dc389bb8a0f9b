"""`deepseek-text`: V3 and R1, V3.1, V3.2 and V4, and what copies of them write (TPL-07, TPL-08)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.declared_tools import DeclaredTools
from segue.wire.text.deepseek import DEEPSEEK_TEXT
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

S, SE = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
B, E, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"


def v3(name: str, arguments: str) -> str:
    return f"{B}function{SEP}{name}\n```json\n{arguments}\n```{E}"


def dsml(name: str, *parameters: tuple[str, str, str], section: str = "") -> str:
    inner = "".join(
        f'<｜DSML｜parameter name="{key}" string="{text}">{value}</｜DSML｜parameter>\n'
        for key, text, value in parameters
    )
    call = f'<｜DSML｜invoke name="{name}">\n{inner}</｜DSML｜invoke>\n'
    return f"<｜DSML｜{section}>\n{call}</｜DSML｜{section}>" if section else call


def plain(text: str) -> str:
    return text.replace("｜", "|").replace("▁", "_")


READ = {
    "V3": (S + v3("get", '{"a": 1}') + SE, [("get", {"a": 1})], ""),
    "V3, several": (f"ok\n{S}{v3('get', '{}')}\n{v3('put', '{}')}{SE}", [("get", {}), ("put", {})], "ok\n\n"),
    "R1, its first call without a beginning": (
        f"{S}function{SEP}get\n```json\n{{}}\n```{E}\n{v3('put', '{}')}{SE}",
        [("get", {}), ("put", {})],
        "\n",
    ),
    "V3.1": (f'{S}{B}get{SEP}{{"a": 1}}{E}{B}put{SEP}{{}}{E}{SE}', [("get", {"a": 1}), ("put", {})], ""),
    "V3.1, a tool that is called function": (f'{B}function{SEP}{{"a": 1}}{E}', [("function", {"a": 1})], ""),
    "V3.1, in a fence": (f'{B}get{SEP}```json\n{{"a": 1}}\n```{E}', [("get", {"a": 1})], ""),
    "V3.1, encoded twice": (f'{B}get{SEP}"{{\\"a\\": 1}}"{E}', [("get", {"a": 1})], ""),
    "V3.1, null": (f"{B}get{SEP}null{E}", [("get", {})], ""),
    "V3.1, nothing": (f"{B}get{SEP}{E}.", [("get", {})], "."),
    "V3, nothing in the fence": (v3("get", ""), [("get", {})], ""),
    "V3, no fence": (f'{B}function{SEP}get\n{{"a": 1}}{E}', [("get", {"a": 1})], ""),
    "plain bars and underscores": (plain(f'{S}{B}get{SEP}{{"a": 1}}{E}{SE}'), [("get", {"a": 1})], ""),
    "escaped underscores": (plain(f"{S}{v3('get', '{}')}{SE}").replace("_", "\\_"), [("get", {})], ""),
    "blanks": (f"{S}{v3('get', '{}')}{SE}".replace("▁", " "), [("get", {})], ""),
    "one bar of each": (f"{S}{v3('get', '{}')}{SE}".replace("｜>", "|>"), [("get", {})], ""),
    "the short section": (f"<｜tool▁calls｜>{v3('get', '{}')}", [("get", {})], ""),
    "ends missing at the end": (f'{S}{B}function{SEP}get\n```json\n{{"a": 1}}', [("get", {"a": 1})], ""),
    "tokens and fences in a string": (
        f'{B}get{SEP}{{"a": "{E}\n```\n{B}"}}{E}',
        [("get", {"a": f"{E}\n```\n{B}"})],
        "",
    ),
    "V3.2": (
        dsml(
            "get", ("a", "true", "10"), ("b", "false", "10"), ("c", "false", '{"x": [null]}'), section="function_calls"
        ),
        [("get", {"a": "10", "b": 10, "c": {"x": [None]}})],
        "",
    ),
    "V4": (dsml("get", ("a", "true", ""), section="tool_calls") + "\n", [("get", {"a": ""})], "\n"),
    "V3.2, several without a section": (
        dsml("get") + dsml("put", ("a", "true", "x")),
        [("get", {}), ("put", {"a": "x"})],
        "\n\n",
    ),
    "V3.2, HTML and line breaks in a value": (
        dsml("get", ("a", "true", '<p class="x">\n</p> & {')),
        [("get", {"a": '<p class="x">\n</p> & {'})],
        "\n",
    ),
    "V3.2, tags in a value": (
        dsml("get", ("a", "true", f"</｜DSML｜invoke>{B}</｜DSML｜function_calls>")),
        [("get", {"a": f"</｜DSML｜invoke>{B}</｜DSML｜function_calls>"})],
        "\n",
    ),
    "V3.2, JSON in place of parameters": (
        '<｜DSML｜invoke name="get">\n{"a": "</｜DSML｜invoke>"}\n</｜DSML｜invoke>',
        [("get", {"a": "</｜DSML｜invoke>"})],
        "",
    ),
    "V3.2, the last tag missing at the end": (
        dsml("get", ("a", "true", "x"), section="function_calls").partition("</｜DSML｜invoke>")[0],
        [("get", {"a": "x"})],
        "",
    ),
    "V3.2, the last tag cut off": (
        dsml("get", ("a", "true", "x")).partition("invoke>\n")[0] + "inv",
        [("get", {"a": "x"})],
        "",
    ),
    "V3.2, plain bars": (plain(dsml("get", ("a", "false", "1"), section="function_calls")), [("get", {"a": 1})], ""),
    "quoted": (
        f"`{B}get{SEP}{{}}{E}` and\n```\n{v3('get', '{}')}\n```",
        [],
        f"`{B}get{SEP}{{}}{E}` and\n```\n{v3('get', '{}')}\n```",
    ),
    "half a token": ("a <｜tool▁ca", [], "a <｜tool▁ca"),
    "a bar in a table": ("| <| x |> |\n", [], "| <| x |> |\n"),
}


@pytest.mark.parametrize("case", READ)
def test_calls_are_parsed_and_the_rest_is_text(case: str) -> None:
    text, expected, around = READ[case]
    pieces = read(text, DEEPSEEK_TEXT)
    assert (calls(pieces), plain_text(pieces), lost(pieces)) == (expected, around, [])


GET_A = '<｜DSML｜invoke name="get">\n<｜DSML｜parameter name="a" string="true">x'
LOST = {
    "an object that ends too early": (f'{B}get{SEP}{{"a": {E} x', [f'{B}get{SEP}{{"a": {E}'], []),
    "a new call inside one": (f'{B}get{SEP}{{"a": {B}put{SEP}{{}}{E}', [f'{B}get{SEP}{{"a": '], ["put"]),
    "a fence that is closed too early": (f"{v3('get', '{')}{v3('put', '{}')}", [v3("get", "{")], ["put"]),
    "cut off in a string": (f'ok {B}get{SEP}{{"a": "Par', [f'{B}get{SEP}{{"a": "Par'], []),
    "cut off in the name": (f"{B}get", [B], []),
    "cut off in the second name": (f"{B}function{SEP}ge", [f"{B}function{SEP}ge"], []),
    "no separator": (f"{B}get{E}{B}put{SEP}{{}}{E}", [f"{B}get{E}"], ["put"]),
    "no name": (f"{B}{SEP}{{}}{E}", [f"{B}{SEP}{{}}{E}"], []),
    "an empty section": (f"{S}\n{SE}.", [f"{S}\n{SE}"], []),
    "a section that is talked about": (f"{S} begins a section. {B}put{SEP}{{}}{E}", [S], ["put"]),
    "V3.2, a value without an end": (
        GET_A + "\n</｜DSML｜invoke>\n" + dsml("put", ("b", "true", "y")),
        [GET_A + "\n</｜DSML｜invoke>\n"],
        ["put"],
    ),
    "V3.2, two values without an end": (
        GET_A + '<｜DSML｜parameter name="b">y</｜DSML｜parameter></｜DSML｜invoke>' + dsml("put"),
        [GET_A + '<｜DSML｜parameter name="b">y</｜DSML｜parameter></｜DSML｜invoke>'],
        ["put"],
    ),
    "V3.2, cut off in a value": (GET_A, [GET_A], []),
    "V3.2, cut off in the tag": ('<｜DSML｜invoke name="ge', ["<｜DSML｜invoke "], []),
    "V3.2, a call inside one": (
        '<｜DSML｜invoke name="get">\n' + dsml("put"),
        ['<｜DSML｜invoke name="get">\n'],
        ["put"],
    ),
    "V3.2, words between": (
        '<｜DSML｜invoke name="get">words</｜DSML｜invoke>' + dsml("put"),
        ['<｜DSML｜invoke name="get">words</｜DSML｜invoke>'],
        ["put"],
    ),
    "V3.2, JSON without an end": (
        '<｜DSML｜invoke name="get">{"a": </｜DSML｜invoke>' + dsml("put"),
        ['<｜DSML｜invoke name="get">{"a": </｜DSML｜invoke>'],
        ["put"],
    ),
    "V3.2, no name": ('<｜DSML｜invoke id="get"></｜DSML｜invoke>', ['<｜DSML｜invoke id="get"></｜DSML｜invoke>'], []),
    "V3.2, an empty section": (
        "<｜DSML｜function_calls>\n</｜DSML｜function_calls>",
        ["<｜DSML｜function_calls>\n</｜DSML｜function_calls>"],
        [],
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_broken_call_stays_and_the_next_one_is_found(case: str) -> None:
    text, broken, names = LOST[case]
    pieces = read(text, DEEPSEEK_TEXT)
    assert (lost(pieces), [name for name, _ in calls(pieces)]) == (broken, names)


def test_untyped_parameter_gets_the_declared_type() -> None:
    text = "".join(
        f'<｜DSML｜invoke name="get"><｜DSML｜parameter name="{key}">10</｜DSML｜parameter></｜DSML｜invoke>'
        for key in "sno"
    )
    schema = {"properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}
    assert calls(read(text, DEEPSEEK_TEXT, DeclaredTools([Tool("get", parameters=schema)]))) == [
        ("get", {"s": "10"}),
        ("get", {"n": 10}),
        ("get", {"o": 10}),
    ]


def test_call_cut_off_before_required_content_is_no_call() -> None:
    text = dsml("get", ("a", "true", "x")).partition("</｜DSML｜invoke>")[0]
    required: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    assert calls(read(text, DEEPSEEK_TEXT, DeclaredTools([Tool("get", parameters={**required, "required": ["a"]})])))
    assert lost(read(text, DEEPSEEK_TEXT, DeclaredTools([Tool("get", parameters=required)]))) == [text]


@given(CALLS)
@examples(0.6)
def test_rendered_calls_read_back(named_arguments: list[NamedArguments]) -> None:
    pieces = scan_text(
        DEEPSEEK_TEXT.render_calls(make_calls(named_arguments)), DEEPSEEK_TEXT, declared_for(named_arguments)
    )
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, FoundCall)] == named_arguments
    assert len(pieces) == len(named_arguments)


def test_it_is_rendered_as_v3_1() -> None:
    rendered = DEEPSEEK_TEXT.render_calls([ToolCall("get", {"a": "é"}), ToolCall("put", {})])
    assert rendered == f'{S}{B}get{SEP}{{"a": "é"}}{E}{B}put{SEP}{{}}{E}{SE}'
    assert DEEPSEEK_TEXT.render_results([ResultText("get", "1", "ok"), ResultText("put", "2", "no")]) == (
        "<｜tool▁output▁begin｜>ok<｜tool▁output▁end｜><｜tool▁output▁begin｜>no<｜tool▁output▁end｜>"
    )
    said = DEEPSEEK_TEXT.render_tools([Tool("get", "Gets.", {"type": "object", "properties": {}})])
    assert '### get\nDescription: Gets.\n\nParameters: {"type": "object", "properties": {}}\n' in said


@pytest.mark.parametrize(
    "text",
    [
        S,
        B,
        SEP,
        f"{B}a{SEP}",
        f"{B}a{SEP}{{",
        f'{B}a{SEP}{{"',
        v3("a", "{}"),
        v3("a", "{"),
        "<",
        "<｜",
        f"{B}a{SEP}{{}} ",
        "<｜DSML｜invoke ",
        '<｜DSML｜invoke name="a">',
        GET_A,
        '<｜DSML｜parameter name="',
        dsml("a", ("b", "true", "c")),
        GET_A + '<｜DSML｜invoke name="b">' * 20,
        dsml("a", *([("b", "true", "c")] * 40)),
    ],
)
def test_work_grows_with_the_text(text: str) -> None:
    assert_linear(text, DEEPSEEK_TEXT)
