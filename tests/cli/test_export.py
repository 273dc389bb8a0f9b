"""`segue export`: pages, the store's export format, and bodies of every API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import segue
from segue.wire.registry import WIRES
from tests.cli.bodies import OPEN
from tests.cli.process import is_one_line_error, run
from tests.cli.store_cli import StoreCli


@pytest.mark.parametrize("api", WIRES)
def test_exported_body_is_valid_for_every_api(store_cli: StoreCli, api: str):
    ended = store_cli("export", store_cli.add_conversation(), "--format", api)
    assert ended.code == 0
    assert segue.check(ended.out, api)
    assert "Buy bread." in ended.out


def test_exported_model_is_the_given_or_last_used(store_cli: StoreCli):
    id = store_cli.add_conversation()
    assert json.loads(store_cli("export", id, "--format", "anthropic").out)["model"] == "claude-sonnet-4-5"
    named = store_cli("export", id, "--format", "openai-chat", "--model", "gpt-4.1").out
    assert json.loads(named)["model"] == "gpt-4.1"
    assert "model" not in json.loads(store_cli("export", id, "--format", "openai-chat").out)


def test_json_has_body_and_report(store_cli: StoreCli):
    id = store_cli.add_conversation()
    report = store_cli("export", id, "--format", "kimi", "--json").json
    assert (report["id"], report["format"], report["report"]["target"]) == (id, "kimi", "kimi")
    assert report["body"] == json.loads(store_cli("export", id, "--format", "kimi").out)
    for form in ("html", "md"):
        assert (
            store_cli("export", id, "--format", form, "--json").json["body"]
            == store_cli("export", id, "--format", form).out
        )


def test_report_is_summarized_in_one_line(store_cli: StoreCli):
    id = store_cli("import", stdin=OPEN).out.strip()
    ended = store_cli("export", id, "--format", "anthropic", "--model", "claude-sonnet-4-5")
    output = f"segue diag {id} --to anthropic --model claude-sonnet-4-5"
    assert ended.err.startswith("segue: findings: ")
    assert " changed" in ended.err
    assert ended.err.endswith(f"; for details: {output}\n")
    assert ended.err.count("\n") == 1
    assert store_cli(*output.split()[1:]).code == 0
    assert store_cli("export", id, "--format", "anthropic", "--json").err == ""
    assert (
        store_cli("export", id, "--format", "openai-chat", "--out", str(store_cli.folder / "x.json")).err.count("\n")
        == 1
    )


def test_the_stores_own_form_has_every_event(store_cli: StoreCli):
    id = store_cli.add_conversation()
    output = json.loads(store_cli("export", id, "--format", "json").out)
    assert (output["segue"], output["kind"], output["id"], output["title"]) == (1, "events", id, "Shopping")
    events = store_cli("log", "show", id, "--all", "--json").json["events"]
    assert [{**event, "at": f"{event['at'][:23]}Z"} for event in output["events"]] == [
        {key: value for key, value in event.items() if key != "seq"} for event in events
    ]


def test_a_file_is_its_owners_alone_and_an_older_one_keeps_its_mode(store_cli: StoreCli):
    id = store_cli.add_conversation()
    new, old = store_cli.folder / "new.html", store_cli.folder / "old.html"
    old.write_text("x")
    old.chmod(0o644)
    for file in (new, old):
        ended = store_cli("export", id, "--format", "html", "--out", str(file))
        assert (ended.code, ended.out) == (0, "")
        assert file.read_text() == store_cli("export", id, "--format", "html").out
    assert (new.stat().st_mode & 0o777, old.stat().st_mode & 0o777) == (0o600, 0o644)
    report = store_cli("export", id, "--format", "md", "--out", str(new), "--json").json
    assert report == {"id": id, "format": "md", "out": str(new)}


def test_markdown_has_the_whole_conversation(store_cli: StoreCli):
    output = store_cli("export", store_cli.add_conversation(), "--format", "md").out
    wanted = ["# Shopping", "## System\n\nBe brief.", "## User\n\nWhat is in notes.txt?", "I look."]
    wanted += ["**read\\_file**", '```json\n{"path":"notes.txt"}\n```', "```\nBuy bread.\n```", "Bread."]
    places = [output.index(words) for words in wanted]
    assert places == sorted(places)


def test_export_changes_nothing(store_cli: StoreCli):
    id = store_cli.add_conversation()
    before = store_cli("log", "show", id, "--all", "--json").out
    for form in ("html", "md", "json", "anthropic", "gemini"):
        assert store_cli("export", id, "--format", form).code == 0
    assert store_cli("log", "show", id, "--all", "--json").out == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["ID"],
        ["ID", "--format", "docx"],
        ["ID", "--format", "html", "--model", "gpt-5"],
        ["nobody", "--format", "html"],
        ["ID", "--format", "html", "--out", "/nowhere/at/all.html"],
    ],
)
def test_impossible_arguments_are_usage_errors(store_cli: StoreCli, arguments: list[str]):
    id = store_cli.add_conversation()
    ended = store_cli("export", *(id if word == "ID" else word for word in arguments))
    assert (ended.code, ended.is_one_line_error) == (2, True)


def test_as_a_process(store_cli: StoreCli, tmp_path: Path):
    id = store_cli.add_conversation()
    out = tmp_path / "page.html"
    ended = run("export", id, "--format", "html", "--out", str(out), SEGUE_STORE=str(store_cli.path))
    assert (ended.code, ended.out, ended.err) == (0, b"", "")
    assert out.read_bytes().startswith(b"<!doctype html>")
    assert is_one_line_error(run("export", id, "--format", "pdf", SEGUE_STORE=str(store_cli.path)))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("pdf", "unknown format 'pdf'; expected one of html, md, json, openai-chat, "),
        ("htm", "unknown format 'htm'; did you mean 'html'?"),
        ("antropic", "unknown format 'antropic'; did you mean 'anthropic'?"),
        ("openruter", "unknown format 'openruter'; did you mean 'openrouter'?"),
    ],
)
def test_unknown_format_lists_or_suggests_formats(store_cli: StoreCli, form: str, message: str):
    ended = store_cli("export", "any", "--format", form)
    assert (ended.code, ended.is_one_line_error) == (2, True)
    assert message in ended.err
