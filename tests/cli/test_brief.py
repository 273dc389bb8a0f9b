"""`segue brief` of a stored conversation, and `/model NAME --brief`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_brief_of_a_run(project: Project) -> None:
    project.run("run", "--emulated", "--allow", "write_file", 'Write "Buy bread" to notes.txt')
    ended = project.run("brief", "1")
    assert ended.code == 0
    assert ended.out.decode() == (
        "## Goal, in the user's words\n\n"
        '- [turn 0] Write "Buy bread" to notes.txt\n\n'
        "## Files that were changed\n\n"
        "- [turn 1] notes.txt\n  ```\n  +Buy bread\n  ```\n"
    )
    value = project.run("brief", "1", "--json").json
    assert value["files"] == [{"turn": 1, "text": "notes.txt\n  ```\n  +Buy bread\n  ```"}]
    full = project.run("brief", "1", "--full").out.decode()
    assert full.startswith(ended.out.decode())
    assert "## The whole conversation" in full
    diagnosed = project.run("diag", "1", "1", "--to", "anthropic", "--json")
    assert diagnosed.code == 0


def test_nothing_to_hand_over_is_said(project: Project) -> None:
    ended = project.run("brief", "1")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    output = project.run("chat", "--emulated", stdin=b"/model moonshot/kimi-k2.6 --brief\n").out.decode()
    assert "there is nothing to hand over" in output


def test_line_chat_names_the_command(project: Project) -> None:
    output = project.run("chat", "--emulated", stdin=b"Hello\n/model moonshot/kimi-k2.6 --brief\n").out.decode()
    assert "segue brief 1" in output
    assert "moonshot/kimi-k2.6 from the next request" not in output
