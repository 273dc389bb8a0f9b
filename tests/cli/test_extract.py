"""`segue extract`: tool calls in text, and the text format settings."""

from __future__ import annotations

import json

import pytest

from tests.cli.bodies import GOOD
from tests.cli.process import is_one_line_error, run

TEXT = b'I look.\n<tool_call>{"name": "f", "arguments": {"x": 1,}}</tool_call>\n<tool_call>{"name"'
UNTYPED = b"<tool_call><function=f><parameter=x>10</parameter></function></tool_call>"


def test_calls_and_the_text_that_is_left():
    ended = run("extract", stdin=TEXT)
    assert ended.code == 0
    assert (ended.json["format"], ended.json["calls"][0]["arguments"]) == ("hermes", {"x": 1})
    assert ended.json["text"].startswith("I look.")
    assert '<tool_call>{"name"' in ended.json["text"]
    assert "kept as text" in ended.err


def test_declared_tools_give_types(tmp_path):
    assert run("extract", "--format", "xml", stdin=UNTYPED).json["calls"][0]["arguments"] == {"x": 10}
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tools.write_text(json.dumps([{"name": "f", "input_schema": schema}]))
    output = run("extract", "--format", "xml", "--tools", str(tools), "--json", stdin=UNTYPED).json
    assert output["calls"][0]["arguments"] == {"x": "10"}
    assert output["report"]["findings"] == []


def test_text_without_calls_stays_text():
    output = run("extract", stdin=b"Hello.").json
    assert (output["format"], output["text"], output["calls"]) == (None, "Hello.", [])


@pytest.mark.parametrize(
    "arguments", [("--format", "nope"), ("--tools", "missing.json"), ("--format",), ("missing.txt",)]
)
def test_impossible_arguments_are_usage_errors(arguments):
    assert is_one_line_error(run("extract", *arguments, stdin=TEXT))


def test_nul_characters_are_text():
    output = run("extract", stdin=b"a\0b\n" + TEXT).json
    assert (output["text"][:4], len(output["calls"])) == ("a\0b\n", 1)


def test_text_that_is_no_text():
    assert is_one_line_error(run("extract", stdin=b"abc \xff\xfe"))


@pytest.fixture
def in_project(tmp_path, monkeypatch):
    """A working directory below a project's file, with an empty home."""

    def write_settings(settings: str) -> None:
        (tmp_path / ".segue.toml").write_text(settings)
        (tmp_path / "below").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "below")
        monkeypatch.setenv("HOME", str(tmp_path))

    return write_settings


CONVERT = ("convert", "--from", "openai-chat", "--to", "openai-chat")
HERMES = '[providers.openai-chat]\ntool_format = "hermes"\n'


def test_the_tool_format_of_a_provider_is_a_setting(in_project):
    in_project(HERMES)
    output = run(*CONVERT, stdin=GOOD).out
    assert b"<tool_call>" in output
    assert b"tool_calls" not in output


def test_flag_overrides_variable_overrides_file(in_project):
    in_project(HERMES)
    assert b"<function=" in run(*CONVERT, stdin=GOOD, SEGUE_TOOL_FORMAT="xml").out
    assert b"tool_calls" in run(*CONVERT, "--tool-format", "auto", stdin=GOOD, SEGUE_TOOL_FORMAT="xml").out


def test_user_config_is_the_fallback(in_project, tmp_path):
    in_project('[providers.mistral]\ntool_format = "mistral"\n')
    (tmp_path / ".config" / "segue").mkdir(parents=True)
    (tmp_path / ".config" / "segue" / "config.toml").write_text(HERMES)
    assert b"<tool_call>" in run(*CONVERT, stdin=GOOD).out


@pytest.mark.parametrize(
    "settings",
    [
        "x = [",
        "providers = 3",
        "[providers]\nopenai-chat = 3",
        "[providers.openai-chat]\ntool_format = 3",
        "[providers.openai-chat]\ntool_fromat = 'hermes'",
        "[providers.openai-chat]\ntool_format = 'nope'",
    ],
)
def test_invalid_setting_is_usage_error(in_project, settings):
    in_project(settings)
    assert is_one_line_error(run(*CONVERT, stdin=GOOD))
