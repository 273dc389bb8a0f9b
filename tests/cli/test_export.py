"""`segue export`: pages, the store's own form, and bodies of every API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import segue
from segue.wire.registry import WIRES
from tests.cli.bodies import OPEN
from tests.cli.kept import Kept
from tests.cli.process import is_one_line, run


@pytest.mark.parametrize("api", WIRES)
def test_a_body_of_every_api_would_be_taken(kept: Kept, api: str):
    ended = kept("export", kept.talk(), "--format", api)
    assert ended.code == 0
    assert segue.check(ended.out, api)
    assert "Buy bread." in ended.out


def test_the_model_is_the_one_that_is_named_or_was_asked(kept: Kept):
    id = kept.talk()
    assert json.loads(kept("export", id, "--format", "anthropic").out)["model"] == "claude-sonnet-4-5"
    named = kept("export", id, "--format", "openai-chat", "--model", "gpt-4.1").out
    assert json.loads(named)["model"] == "gpt-4.1"
    assert "model" not in json.loads(kept("export", id, "--format", "openai-chat").out)


def test_json_has_the_body_and_what_was_decided(kept: Kept):
    id = kept.talk()
    said = kept("export", id, "--format", "kimi", "--json").json
    assert (said["id"], said["format"], said["report"]["target"]) == (id, "kimi", "kimi")
    assert said["body"] == json.loads(kept("export", id, "--format", "kimi").out)
    for form in ("html", "md"):
        assert kept("export", id, "--format", form, "--json").json["body"] == kept("export", id, "--format", form).out


def test_what_was_decided_is_said_in_one_line(kept: Kept):
    id = kept("import", stdin=OPEN).out.strip()
    ended = kept("export", id, "--format", "anthropic", "--model", "claude-sonnet-4-5")
    told = f"segue diag {id} --to anthropic --model claude-sonnet-4-5"
    assert ended.err.startswith("segue: findings: ")
    assert "1 synthetic" in ended.err
    assert ended.err.endswith(f"; for details: {told}\n")
    assert ended.err.count("\n") == 1
    assert kept(*told.split()[1:]).code == 0
    assert kept("export", id, "--format", "anthropic", "--json").err == ""
    assert kept("export", id, "--format", "openai-chat", "--out", str(kept.folder / "x.json")).err.count("\n") == 1


def test_the_stores_own_form_has_every_event(kept: Kept):
    id = kept.talk()
    told = json.loads(kept("export", id, "--format", "json").out)
    assert (told["segue"], told["kind"], told["id"], told["title"]) == (1, "events", id, "Shopping")
    events = kept("log", "show", id, "--all", "--json").json["events"]
    assert [{**event, "at": f"{event['at'][:23]}Z"} for event in told["events"]] == [
        {key: value for key, value in event.items() if key != "seq"} for event in events
    ]


def test_a_file_is_its_owners_alone_and_an_older_one_keeps_its_mode(kept: Kept):
    id = kept.talk()
    new, old = kept.folder / "new.html", kept.folder / "old.html"
    old.write_text("x")
    old.chmod(0o644)
    for file in (new, old):
        ended = kept("export", id, "--format", "html", "--out", str(file))
        assert (ended.code, ended.out) == (0, "")
        assert file.read_text() == kept("export", id, "--format", "html").out
    assert (new.stat().st_mode & 0o777, old.stat().st_mode & 0o777) == (0o600, 0o644)
    said = kept("export", id, "--format", "md", "--out", str(new), "--json").json
    assert said == {"id": id, "format": "md", "out": str(new)}


def test_markdown_says_it_all(kept: Kept):
    told = kept("export", kept.talk(), "--format", "md").out
    wanted = ["# Shopping", "## System\n\nBe brief.", "## User\n\nWhat is in notes.txt?", "I look."]
    wanted += ["**read\\_file**", '```json\n{"path":"notes.txt"}\n```', "```\nBuy bread.\n```", "Bread."]
    places = [told.index(words) for words in wanted]
    assert places == sorted(places)


def test_looking_changes_nothing(kept: Kept):
    id = kept.talk()
    before = kept("log", "show", id, "--all", "--json").out
    for form in ("html", "md", "json", "anthropic", "gemini"):
        assert kept("export", id, "--format", form).code == 0
    assert kept("log", "show", id, "--all", "--json").out == before


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
def test_what_cannot_be_is_one_line_and_2(kept: Kept, arguments: list[str]):
    id = kept.talk()
    ended = kept("export", *(id if word == "ID" else word for word in arguments))
    assert (ended.code, ended.refused) == (2, True)


def test_as_a_process(kept: Kept, tmp_path: Path):
    id = kept.talk()
    out = tmp_path / "page.html"
    ended = run("export", id, "--format", "html", "--out", str(out), SEGUE_STORE=str(kept.path))
    assert (ended.code, ended.out, ended.err) == (0, b"", "")
    assert out.read_bytes().startswith(b"<!doctype html>")
    assert is_one_line(run("export", id, "--format", "pdf", SEGUE_STORE=str(kept.path)))
