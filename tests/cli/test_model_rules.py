"""Models by rules and by `switch_model`: the configuration of docs/agent.md, each exchange in a process of its own."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project

PAGE = Path(__file__).parent.parent.parent / "docs" / "agent.md"
OPUS, SONNET, KIMI = "anthropic/claude-opus-5", "anthropic/claude-sonnet-5", "moonshot/kimi-k2.6"
TEST = "Run `pytest -q`"
PROGRAM = "#!/bin/sh\ncat result\ngrep -q passed result\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The configuration of the page, and a program `pytest` that fails unless the file `result` has `passed`."""
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    program = tmp_path / "bin" / "pytest"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    section = PAGE.read_text().partition("## Switch models by rules")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```toml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    made.write_user_config(f'{blocks[0]}sandbox = "off"\n')
    return made


def ask(project: Project, text: str, *flags: str) -> list[dict[str, Any]]:
    ended = project.run("run", "--emulated", "--jsonl", *flags, text, PATH=os.environ["PATH"])
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def models(events: list[dict[str, Any]]) -> list[str]:
    return [f"{event['provider']}/{event['model']}" for event in events if event["type"] == "request-sent"]


def switches(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["model"], event["why"]) for event in events if event["type"] == "model-switched"]


def test_another_model_after_two_failures_and_back(project: Project) -> None:
    result = project.folder / "result"
    result.write_text("1 failed")
    first = models(ask(project, TEST))
    assert set(first) <= {SONNET, KIMI}
    second = ask(project, TEST, "-c")
    assert models(second) == [first[0], OPUS], "in the middle of the task"
    assert switches(second) == [("claude-opus-5", "the last 2 runs of pytest * failed")]
    third = ask(project, TEST, "-c")
    assert models(third) == [OPUS, OPUS]
    assert third[0]["model"] == OPUS
    result.write_text("2 passed")
    fourth = ask(project, TEST, "-c")
    assert models(fourth)[0] == OPUS
    assert models(fourth)[1] in (SONNET, KIMI)
    [switch] = [event for event in fourth if event["type"] == "model-switched"]
    assert switch["cost"]["source"] == OPUS
    assert switch["cost"]["now"] is not None


def test_large_context_above_its_size(project: Project) -> None:
    (project.folder / "long.txt").write_text("word " * 200_000)
    assert set(models(ask(project, "Say hello.", "-a", "long.txt"))) == {"gemini/gemini-3.8-flash"}


def test_text_output_says_why_and_what_it_costs(project: Project) -> None:
    (project.folder / "result").write_text("1 failed")
    project.run("run", "--emulated", TEST, PATH=os.environ["PATH"])
    ended = project.run("run", "--emulated", "-c", TEST, PATH=os.environ["PATH"])
    line = next(line for line in ended.err.splitlines() if "switched to" in line)
    assert "the last 2 runs of pytest * failed; " in line
    assert "for the next request" in line


CALL = 'say I call.\ncall switch_model {"model": "fast", "reason": "this is hard"}\ncall list_dir {}\n---\nsay I stay.'


def run_switch(project: Project, rules: str, *calls: tuple[str, ...]) -> tuple[list[list[dict[str, Any]]], list[Any]]:
    """Return the events of each run, and the declared tools of the first request."""
    with (
        segue.emulator.start("anthropic", script=CALL, keys=[KEY]) as first,
        segue.emulator.start("openai-responses", script="say Done.\n---\nsay Again.", keys=[KEY]) as second,
    ):
        providers = "".join(
            f'[providers.{name}]\nbase_url = "{emulator.base_url}"\nkey_variable = "TEST_KEY"\n'
            for name, emulator in (("anthropic", first), ("openai", second))
        )
        project.write_user_config(
            f'strategy = "rules"\n[[rules]]\nwhen = "otherwise"\nmodel = "{SONNET}"\n{providers}'
            f'[aliases]\nfast = "openai/gpt-4.1"\n[tools]\n{rules}\n'
        )
        runs = [project.run("run", "--jsonl", "Do it.", *flags) for flags in calls]
        refused = [request.refused for emulator in (first, second) for request in emulator.requests]
        assert not any(refused)
        tools = (first.requests[0].body or {})["tools"]
        return [[json.loads(line) for line in ended.lines] for ended in runs], tools


def test_model_switches_itself_where_a_rule_allows_it(project: Project) -> None:
    allow = 'allow = ["switch_model(openai/gpt-4.1)"]'
    (first, resumed, chosen), tools = run_switch(project, allow, (), ("-c",), ("-c", "-m", SONNET))
    assert [tool["name"] for tool in tools if "openai/gpt-4.1" in tool["description"]] == ["switch_model"]
    assert models(first) == [SONNET, "openai/gpt-4.1"], "with the results of both calls"
    assert switches(first) == [("gpt-4.1", "requested by the model: this is hard")]
    assert models(resumed) == ["openai/gpt-4.1"], "the rules would have chosen the other one"
    assert models(chosen) == [SONNET]


@pytest.mark.parametrize("rules", ['ask = ["switch_model"]', 'allow = ["switch_model(gemini/*)"]'])
def test_switch_that_no_rule_allows_is_denied(project: Project, rules: str) -> None:
    ([events], _) = run_switch(project, rules, ())
    assert models(events) == [SONNET, SONNET]
    assert "denied" in [event["outcome"] for event in events if event["type"] == "call-ended"]


def test_without_a_rule_there_is_no_such_tool(project: Project) -> None:
    ([events], tools) = run_switch(project, "", ())
    assert "switch_model" not in [tool["name"] for tool in tools]
    assert models(events) == [SONNET, SONNET]


def test_model_is_used_where_no_rule_applies(project: Project) -> None:
    project.write_user_config(
        f'model = "{KIMI}"\nstrategy = "rules"\n[[rules]]\nwhen = "failed"\ncount = 1\nmodel = "{OPUS}"\n'
    )
    events = ask(project, "Read missing.txt")
    assert models(events)[:2] == [KIMI, OPUS]
    assert events[0]["why"] == "emulated; by rules: no other rule applies"


def test_chat_shows_rules_and_goes_back_to_them(project: Project) -> None:
    (project.folder / "result").write_text("1 failed")
    lines = f"{TEST}\n{TEST}\n/route\n/model openai/gpt-4.1\n/route rules\n/route rules x\n/cost\n"
    output = project.run("chat", "--emulated", stdin=lines.encode(), PATH=os.environ["PATH"]).out.decode()
    assert f"  ▸  {OPUS} " in output
    assert "the last 2 runs of pytest * failed\n" in output
    assert f"→ {OPUS}, rules of 4 from the next request" in output
    assert "the models of rules are those of the configuration" in output
    assert "no price" not in output
    project.write_user_config("")
    output = project.run("chat", "--emulated", stdin=b"/route rules\n").out.decode()
    assert "the configuration has no [[rules]]" in output


def test_bad_rules_name_their_place(project: Project) -> None:
    for text, place in (
        ('when = "failed"\nmodel = "x"', "rules[0].count: required with"),
        ('when = "long"\ntokens = 5\ncount = 2\nmodel = "x"', "rules[0].count: required with"),
        ('when = "otherwise"\ncommand = "x"\nmodel = "x"', "rules[0].command: only allowed with"),
        ('when = "otherwise"\nprefer = "fast"\nmodel = "x"', "rules[0].prefer: unknown value"),
    ):
        project.write_user_config(f'strategy = "rules"\n[[rules]]\n{text}\n')
        ended = project.run("run", "hello")
        assert ended.code == 2
        assert is_one_line_error(ended)
        assert place in ended.err
