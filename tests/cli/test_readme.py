"""The README: its commands are run as written, without keys, and its numbers are those of the commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import segue
from tests.cli.process import run
from tests.cli.project import Project

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
MAX_LINES = 145


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_a_task_is_begun_with_one_provider_and_finished_with_others(project: Project):
    commands = [shlex.split(line)[1:] for line in README.splitlines() if line.startswith("segue run ")]
    assert len(commands) == 3
    results = [project.run(*command) for command in commands]
    for command, ended in zip(commands, results, strict=True):
        model = command[command.index("-m") + 1]
        assert ended.code == 0, ended.err
        assert ended.err.startswith(f"segue: {model} (emulated); conversation ")
        assert re.search(r"^segue: (write|edit|read)_file notes.txt ", ended.err, re.MULTILINE)
    assert len(project.run("log", "--json").json) == 1
    assert results[-1].lines[-1] == "Buy milk"
    assert (project.folder / "notes.txt").read_text() == "Buy milk"


def test_numbers_are_those_of_the_commands():
    totals = run("demo", "--naive", "--json").json["naive"]["totals"]
    assert f"{totals['refused']} of {totals['requests']} requests" in README
    assert f"the {len(run('rules', '--json').json)} rules" in README


def test_every_api_is_listed():
    table = README.partition("| name | API |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = [name for row in rows for name in re.findall("`([a-z-]+)`", row)]
    assert sorted(listed) == sorted(row.name for row in segue.formats() if row.kind != "text")


def test_commands_exist():
    for name in set(re.findall(r"`segue ([a-z]+)", README)):
        assert run(name, "--help").code == 0, name


def test_it_is_short():
    assert len(README.splitlines()) <= MAX_LINES
