"""`segue apis` and `segue formats`: the registry as tables and as JSON."""

from __future__ import annotations

import segue
from segue.wire.tool_formats import load_tool_formats
from tests.cli.process import is_one_line_error, run
from tests.cli.terminal import run_in_terminal

APIS = [row for row in segue.formats() if row.kind != "text"]


def test_every_row_of_the_registry_is_a_line():
    ended = run("apis")
    assert (ended.code, ended.err) == (0, "")
    assert [line.split()[0] for line in ended.lines] == ["name", *(row.name for row in APIS)]


def test_columns_align_with_headers():
    head, *rows = run("apis").lines
    kinds = [row.kind for row in APIS]
    assert [line[head.index("kind") :].split()[0] for line in rows] == kinds


def test_json_is_a_list_of_rows():
    rows = run("apis", "--json").json
    assert [row["name"] for row in rows] == [row.name for row in APIS]
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert {"kind", "title", "provider", "default_model", "tool_format", "on"} < rows[0].keys()


def test_a_terminal_gets_colour():
    shown = run_in_terminal("apis")
    assert "\x1b[" in shown
    assert all(row.name in shown and row.default_model in shown for row in APIS)


def test_no_color_is_honoured():
    assert "\x1b[" not in run_in_terminal("apis", NO_COLOR="1")


def test_model_name_is_parsed():
    ended = run("apis", "--model", "moonshotai/Kimi-K2-Instruct")
    assert (ended.code, ended.err) == (0, "")
    assert [line.split() for line in ended.lines] == [
        ["wire", "openai-chat"],
        ["dialect", "kimi"],
        ["tool", "format", "kimi"],
        ["family", "kimi"],
        ["line", "k2"],
        ["version", "2"],
    ]


def test_a_model_s_name_as_json():
    assert run("apis", "--model", "claude-sonnet-4-5", "--json").json == {
        "model": "claude-sonnet-4-5",
        "wire": "anthropic",
        "dialect": None,
        "tool_format": "anthropic",
        "family": "claude",
        "line": "sonnet",
        "version": "4.5",
    }


def test_an_unknown_model_gets_the_default():
    ended = run("apis", "--model", "my-own-model")
    assert ended.code == 0
    assert [line.split()[-1] for line in ended.lines] == ["openai-chat", "-", "openai", "-", "-", "-"]


def test_profiles_are_listed():
    from segue.wire.registry import SERVERS

    head, *rows = [line.split() for line in run("apis", "--profiles").lines]
    assert head == ["name", "API"]
    assert rows == [[name, SERVERS[name].name] for name in sorted(SERVERS)]
    assert ["vllm", "openai-chat"] in rows
    assert run("apis", "--profiles", "--json").json == [{"name": name, "api": api} for name, api in rows]


def test_one_list_at_a_time():
    ended = run("apis", "--types", "--model", "claude-sonnet-4-5")
    assert is_one_line_error(ended)
    assert "--model and --types" in ended.err


def test_formats_are_those_of_the_option():
    rows = run("formats", "--json").json
    assert [row["name"] for row in rows] == [*load_tool_formats()]
    assert [line.split()[0] for line in run("formats").lines] == ["name", *(row["name"] for row in rows)]
    assert {row["name"] for row in rows if row["kind"] == "text"} == {
        r.name for r in segue.formats() if r.kind == "text"
    }
    for row in rows:
        for api in row["apis"]:
            converted = segue.convert(BODY, target=api, tool_format=row["name"])
            assert converted.report.tool_format == row["name"]


BODY = {"model": "gpt-4.1", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
