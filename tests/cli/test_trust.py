"""`segue trust`: trusted files, revocation and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import is_one_line_error
from tests.cli.project import Project

PRINTED = ['  tools.allow = ["shell"]', '  mcp.files = {"command":["mcp-files"]}']
COUNTS = {"tools.allow": ["shell"], "mcp.files": {"command": ["mcp-files"]}}
MCP = '[mcp.files]\ncommand = ["mcp-files"]\n[tools]\nallow = ["shell"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_a_file_is_trusted_until_it_changes(project: Project):
    project.write_config(MCP)
    assert trust_of(project) is False
    ended = project.run("trust")
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [f"{project.file}: trusted until it changes", *PRINTED]
    assert trust_of(project) is True
    project.write_config(MCP + "# another word\n")
    assert trust_of(project) is False


def trust_of(project: Project) -> bool:
    [row] = project.run("doctor", "--json").json["config"]
    return row["trusted"]


def test_trust_can_be_revoked(project: Project):
    project.write_config(MCP)
    project.run("trust", str(project.file))
    assert project.run("trust", "--revoke").lines == [f"{project.file}: no longer trusted"]
    assert trust_of(project) is False
    assert project.run("trust", "--revoke").lines == [f"{project.file}: was not trusted"]


def test_json_prints_the_same(project: Project):
    project.write_config(MCP)
    output = {"file": str(project.file), "trusted": True, "counts": COUNTS}
    assert project.run("trust", "--json").json == output
    assert project.run("trust", "--revoke", "--json").json == {
        "file": str(project.file),
        "trusted": False,
        "counts": {},
    }


def test_control_characters_in_values_are_escaped(project: Project):
    project.write_config('[tools]\nallow = ["shell(\\u202e\\u001b[2J)"]\n')
    out = project.run("trust").out.decode()
    assert "shell(" in out
    assert "\u202e" not in out
    assert "\x1b" not in out


def test_a_store_of_a_file_that_is_not_trusted_is_not_made_nor_read(project: Project):
    project.write_config('store = "../planted/chats.db"')
    planted = project.folder.parent / "planted"
    ended = project.run("run", "--no-tools", "Hi", SEGUE_STORE="")
    assert ended.code == 0
    assert "ignored settings: store;" in ended.err
    assert not planted.exists()
    listed = project.run("log", SEGUE_STORE="")
    assert "its store setting is ignored" in listed.err
    assert len(listed.lines) >= 1
    project.run("trust")
    assert project.run("run", "--no-tools", "Hi", SEGUE_STORE="").code == 0
    assert (planted / "chats.db").exists()


def test_without_a_file_there_is_nothing_to_trust(project: Project):
    assert is_one_line_error(project.run("trust"))
    assert is_one_line_error(project.run("trust", "missing.toml"))


def test_a_file_that_can_not_be_read_is_not_trusted(project: Project):
    project.write_config("modell = 3")
    ended = project.run("trust")
    assert is_one_line_error(ended)
    assert "did you mean model?" in ended.err
