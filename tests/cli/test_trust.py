"""`segue trust`: what is trusted, until when, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import is_one_line
from tests.cli.project import Project

MCP = '[mcp.files]\ncommand = ["mcp-files"]\n[tools]\nallow = ["shell"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_a_file_is_trusted_until_it_changes(project: Project):
    project.says(MCP)
    assert trust_of(project) is False
    ended = project.run("trust")
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [f"{project.file}: trusted until it changes", "  tools.allow", "  mcp.files"]
    assert trust_of(project) is True
    project.says(MCP + "# another word\n")
    assert trust_of(project) is False


def trust_of(project: Project) -> bool:
    [row] = project.run("doctor", "--json").json["config"]
    return row["trusted"]


def test_trust_can_be_taken_back(project: Project):
    project.says(MCP)
    project.run("trust", str(project.file))
    assert project.run("trust", "--revoke").lines == [f"{project.file}: trusted no longer"]
    assert trust_of(project) is False
    assert project.run("trust", "--revoke").lines == [f"{project.file}: was not trusted"]


def test_json_says_the_same(project: Project):
    project.says(MCP)
    told = {"file": str(project.file), "trusted": True, "counts": ["tools.allow", "mcp.files"]}
    assert project.run("trust", "--json").json == told
    assert project.run("trust", "--revoke", "--json").json == {
        "file": str(project.file),
        "trusted": False,
        "counts": [],
    }


def test_without_a_file_there_is_nothing_to_trust(project: Project):
    assert is_one_line(project.run("trust"))
    assert is_one_line(project.run("trust", "missing.toml"))


def test_a_file_that_can_not_be_read_is_not_trusted(project: Project):
    project.says("modell = 3")
    ended = project.run("trust")
    assert is_one_line(ended)
    assert "did you mean model?" in ended.err
