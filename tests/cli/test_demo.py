"""`segue demo`: every wire, there and back, none refused; and it can be read anywhere."""

from __future__ import annotations

import copy
import re

import pytest
from click.testing import CliRunner

import segue
from segue.cli import demo_journey, shell
from segue.cli.demo_conversation import CONVERSATION, ORIGIN, SCRIPTS
from tests.cli.process import run
from tests.cli.terminal import in_terminal

NAMES = [row.name for row in segue.formats() if row.kind != "text"]


@pytest.fixture(scope="module")
def story():
    ended = run("demo", "--json")
    assert (ended.code, ended.err) == (0, "")
    return ended.json


def test_every_wire_is_visited_there_and_back(story):
    stops = [story["steps"][0]["source"], *(step["target"] for step in story["steps"])]
    assert stops == stops[::-1]
    assert stops[0] == ORIGIN
    assert set(stops) == set(NAMES)


def test_each_step_goes_on_where_the_last_one_ended(story):
    steps = story["steps"]
    assert [step["source"] for step in steps[1:]] == [step["target"] for step in steps[:-1]]


def test_nothing_is_refused_and_each_call_has_its_result(story):
    assert story["totals"]["refused"] == 0
    for step in story["steps"]:
        assert step["accepted"]
        assert step["violations"] == []
        assert step["results"] == len(step["calls"])
        assert all(call["outcome"] != "none" for call in step["calls"])


def test_ids_are_one_to_one_at_every_stop(story):
    for step in story["steps"]:
        for key in ("canonical_id", "wire_id"):
            assert len({call[key] for call in step["calls"]}) == len(step["calls"])


def test_results_stay_with_their_calls(story):
    for step in story["steps"]:
        told = [(call["tool"], call["result"]) for call in step["calls"]]
        assert told[0] == ("search_flights", "TP 533, 09:45, 118 EUR")
        assert "overloaded" in told[1][1]
        assert told[3] == ("museum_hours", "open Tue-Sun, 10 to 18")
        assert "[interrupted" in told[4][1]
        assert told[5] == ("get_weather", "sunny, 24 °C")


def test_the_call_that_was_cut_off_gets_a_synthetic_result_once(story):
    made_up = [[call["tool"] for call in step["calls"] if call["outcome"] == "synthetic"] for step in story["steps"]]
    assert made_up[0] == ["convert_currency"]


def test_the_naive_copy_is_refused_everywhere(story):
    assert {verdict["api"] for verdict in story["naive"]} == set(NAMES)
    assert not any(verdict["accepted"] for verdict in story["naive"])
    assert all(verdict["rules"][0]["severity"] == "reject" for verdict in story["naive"])


def test_totals_add_the_steps_up(story):
    calls = [call for step in story["steps"] for call in step["calls"]]
    assert story["totals"] == {
        "requests": len(story["steps"]),
        "refused": 0,
        "calls": len(calls),
        "results": len(calls),
        "synthetic": sum(call["outcome"] == "synthetic" for call in calls),
        "remapped": sum(call["remapped"] for call in calls),
    }


@pytest.mark.parametrize("arguments", [["demo"], ["demo", "--json"]])
def test_the_output_is_the_same_every_time(arguments):
    assert run(*arguments, PYTHONHASHSEED="1").out == run(*arguments, PYTHONHASHSEED="2").out


def test_the_bundled_conversation_is_left_alone():
    before = copy.deepcopy((CONVERSATION, dict(SCRIPTS)))
    list(demo_journey.steps())
    list(demo_journey.copies())
    assert (CONVERSATION, dict(SCRIPTS)) == before


def test_a_wire_without_a_script_is_visited_too(monkeypatch):
    monkeypatch.setattr(demo_journey, "SCRIPTS", {})
    journey = list(demo_journey.steps())
    assert {step.target for step in journey} == set(NAMES)
    assert all(step.accepted for step in journey)


def test_a_refused_step_is_shown_and_ends_with_1(monkeypatch):
    real = segue.check

    def strict(body: dict, api: str, **more: str) -> segue.Verdict:
        return real({**body, "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "openai-chat")

    monkeypatch.setattr(segue, "check", strict)
    with CliRunner().isolation() as (out, _, _):
        assert shell.run(["demo"]) == 1
        assert "OAI-CHAT-04" in out.getvalue().decode()


def test_a_terminal_gets_colour():
    assert "\x1b[" in in_terminal("demo")


@pytest.mark.parametrize(
    ("arguments", "variables"), [(["--plain"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_without_colour_the_words_are_the_same(arguments, variables):
    plain = in_terminal("demo", *arguments, **variables)
    assert "\x1b" not in plain
    bare = re.sub(r"\x1b\[[\d;]*m", "", in_terminal("demo"))
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(columns):
    lines = in_terminal("demo", "--plain", columns=columns).splitlines()
    assert max(map(len, lines)) <= min(columns, 100)


def test_without_a_terminal_it_is_plain_and_100_columns_wide():
    ended = run("demo")
    assert b"\x1b" not in ended.out
    assert max(map(len, ended.lines)) <= 100
    assert any("refused" in line for line in ended.lines)
    assert "accepted" in ended.out.decode()
