"""The price of a switch, printed before it: by `segue run -m` and by `/model`, from the configured size on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.project import Project

CLAUDE, KIMI = "anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_run_prints_the_price_of_a_switch(project: Project) -> None:
    project.write_user_config("switch_cost_above = 0")
    assert project.run("run", "--emulated", "--json", "-m", CLAUDE, "Hello").json["switch_cost"] is None
    assert project.run("run", "--emulated", "--json", "-c", "-m", CLAUDE, "Hello").json["switch_cost"] is None
    cost = project.run("run", "--emulated", "--json", "-c", "-m", KIMI, "Hello").json["switch_cost"]
    assert (cost["source"], cost["target"], cost["state"]) == (CLAUDE, KIMI, "warm")
    assert cost["now"] == pytest.approx(cost["go"] - cost["stay"])
    ended = project.run("run", "--emulated", "-c", "-m", CLAUDE, "Hello")
    assert f"more than with {KIMI}" in ended.err


def test_short_conversation_has_none(project: Project) -> None:
    project.run("run", "--emulated", "-m", CLAUDE, "Hello")
    ended = project.run("run", "--emulated", "-c", "-m", KIMI, "Hello")
    assert "costs" not in ended.err


def test_chat_shows_it_with_the_switch(project: Project) -> None:
    project.write_user_config("switch_cost_above = 0")
    lines = f"hello\n/model {KIMI}\n/model {CLAUDE}\n"
    output = project.run("chat", "--emulated", "-m", CLAUDE, stdin=lines.encode()).out.decode()
    first, second = output.split("from the next request")[1:]
    assert "the next request costs about" in first
    assert "costs" not in second.splitlines()[0]


@pytest.mark.parametrize("width", [80, 60])
def test_models_show_context_price_and_losses(project: Project, width: int) -> None:
    lines = b"hello\n/model\n"
    output = project.run("chat", "--emulated", "-m", KIMI, stdin=lines, COLUMNS=str(width)).out.decode()
    rows = output.partition("$ per M\n")[2].partition("\n\n")[0].splitlines()
    assert all(len(row) <= width for row in rows), output
    assert re.fullmatch(rf"▸  {KIMI} +2[0-9.]+k  0\.95/4", rows[0].rstrip())
    [claude] = [row for row in rows if row.split()[0] == CLAUDE]
    assert re.search(r" 99[0-9.]+k  2/10", claude)
    assert ("1 lost" in claude) is (width == 80)
    lost = " ".join(" ".join(rows).split()).partition("lost with ")[2]
    assert "models: reasoning of kimi-k2.6 dropped: the model does not accept it" in lost


def test_wrong_setting_is_named(project: Project) -> None:
    project.write_user_config("switch_cost_above = -1")
    assert "switch_cost_above" in project.run("models").err
