"""`segue demo`: every API in both directions, refused without segue, accepted with it, readable at any width."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import segue
from scripts.recording import draw_picture, draw_recording, run_exchanges
from segue.cli import app, demo_run
from segue.emulator import Emulator, client
from tests.cli.process import ProcessResult, run
from tests.cli.terminal import run_in_terminal

DOCS = Path(__file__).parents[2] / "docs"
RECORDING, PICTURE = DOCS / "demo.svg", DOCS / "refused-accepted.svg"
MAX_LINES = 48
NAMES = [row.name for row in segue.formats() if row.kind != "text"]


@cache
def run_demo(*options: str) -> ProcessResult:
    """Run the demo once for these options: it does the same every time, which is tested."""
    return run("demo", *options)


@cache
def run_demo_in_terminal(*options: str, columns: int = 100, **variables: str) -> str:
    """Run the demo without pauses once for these options, width and environment."""
    return run_in_terminal("demo", "--pace", "0", *options, columns=columns, **variables)


@pytest.fixture(scope="module")
def halves():
    ended = run_demo("--json")
    assert (ended.code, ended.err) == (0, "")
    return ended.json


@pytest.fixture(scope="module")
def story(halves):
    return halves["segue"]


@pytest.fixture(scope="module")
def naive(halves):
    return halves["naive"]


def test_every_api_is_requested_on_both_legs_without_repeats(story):
    asked = [step["api"] for step in story["steps"]]
    assert asked == asked[::-1]
    assert set(asked) == set(NAMES)
    assert all(one != after for one, after in pairwise(asked))


def test_nothing_is_refused_and_each_call_has_its_result(story):
    made = 0
    for step in story["steps"]:
        assert (step["verdict"], step["status"], step["error"], step["rules"]) == ("accepted", 200, "", [])
        assert step["carried"] == step["results"] == made
        made += len(step["calls"])
    assert story["totals"]["refused"] == 0


def test_the_task_has_all_that_happens_to_an_agent(story):
    calls = [step["calls"] for step in story["steps"]]
    outcomes = [call["outcome"] for made in calls for call in made]
    assert len({call["tool"] for made in calls for call in made}) == 5
    assert max(map(len, calls)) == 3
    assert outcomes.count("error") == 2
    assert outcomes.count("cancelled") == 1
    assert sum(step["thought"] for step in story["steps"]) >= 5


def test_ids_are_distinct_and_in_their_api_format(story):
    calls = [(step["api"], call) for step in story["steps"] for call in step["calls"]]
    for key in ("canonical_id", "wire_id"):
        assert len({call[key] for _, call in calls}) == len(calls)
    styles = {"anthropic": "toolu_01", "bedrock": "tooluse_", "kimi": "functions.", "openai-chat": "call_"}
    for api, call in calls:
        assert call["wire_id"].startswith(styles.get(api, ""))


def test_sent_history_is_unchanged(story):
    again = [step for step in story["steps"] if step["before"]]
    assert len(again) == len(NAMES) - 1
    assert all(step["kept"] == step["before"] for step in again)


def test_totals_add_the_steps_up(story):
    steps = story["steps"]
    sums = {key: sum(step[key] for step in steps) for key in ("results", "synthetic", "remapped", "kept", "before")}
    calls = sum(len(step["calls"]) for step in steps)
    assert story["totals"] == {"requests": len(steps), "refused": 0, "calls": calls, **sums}


def test_a_copied_history_breaks_at_every_api_with_its_own_error(naive):
    refused = [step for step in naive["steps"] if step["verdict"] != "accepted"]
    assert naive["totals"]["refused"] == len(refused)
    assert {step["api"] for step in refused} == set(NAMES)
    assert all(step["rules"] and step["error"] for step in refused)
    assert any("`tool_use`" in step["error"] or "tool_use.id" in step["error"] for step in refused)
    assert any("Invalid `signature` in `thinking` block" in step["error"] for step in refused)
    assert all(step["rescued"] for step in refused)


def test_copied_request_is_counted_independently(story, naive):
    outcomes: list[str] = []
    for step in naive["steps"]:
        assert (step["synthetic"], step["remapped"]) == (0, 0)
        assert step["results"] == sum(outcome != "cancelled" for outcome in outcomes)
        outcomes += [call["outcome"] for call in step["calls"]]
    assert any(step["synthetic"] for step in story["steps"])


def test_violated_rule_of_the_error_comes_first(naive):
    """Anthropic reports bad ids for a body that also lacks results."""
    describe_steps = [step for step in naive["steps"] if step["api"] == "anthropic"][-1]
    assert "tool_use.id" in describe_steps["error"]
    assert describe_steps["rules"] == ["ANT-01", "ANT-04"]


def test_naive_is_the_first_half_alone(halves):
    ended = run_demo("--json", "--naive")
    assert (ended.code, ended.err) == (1, "")
    assert ended.json == {"naive": halves["naive"]}
    shown = run_demo("--naive")
    assert shown.code == 1
    assert not any(line.startswith("With segue") for line in shown.lines)
    assert shown.lines[-1] == "Try it: segue demo"


def test_refusals_come_first_then_the_same_task_with_none(naive):
    lines = run_demo().lines
    assert len(lines) <= MAX_LINES
    refused = naive["totals"]["refused"]
    (first,) = (at for at, line in enumerate(lines) if line.startswith("Without segue"))
    (second,) = (at for at, line in enumerate(lines) if line.startswith("With segue"))
    (third,) = (at for at, line in enumerate(lines) if line.startswith("What segue did"))
    assert f": {refused} of 19 requests refused ─" in lines[first]
    assert ": 0 of 19 requests refused ─" in lines[second]
    assert _numbers(lines[first:second], "✗") == {step["number"] for step in naive["steps"] if step["error"]}
    assert _numbers(lines[first:second]) == _numbers(lines[second:third], "✓") == set(range(1, 20))
    for step in naive["steps"]:
        assert not step["error"] or any(
            f"{step['status']} {step['error'][:30]}" in line for line in lines[first:second]
        )


def _numbers(lines: list[str], marks: str = "✓✗") -> set[int]:
    found = (re.match(rf" *([\d, ]+) [{marks}] \S", line) for line in lines)
    return {int(number) for match in found if match for number in match[1].split(",")}


def test_the_copied_task_is_the_same_task(story, naive):
    def describe_steps(steps):
        return [[(call["tool"], call["result"]) for call in step["calls"]] for step in steps]

    assert describe_steps(story["steps"]) == describe_steps(naive["steps"])


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_the_output_is_the_same_every_time(options):
    """In this process and in one with another hash seed."""
    assert run("demo", *options, PYTHONHASHSEED="1") == run_demo(*options)


def test_a_refused_request_is_shown_and_ends_with_1(monkeypatch):
    real = client.post

    def spoiled(emulator: Emulator, body: dict, **more: Any) -> client.Response:
        if emulator.api == "gemini":
            body = {**body, "contents": body["contents"][-1:]}
        return real(emulator, body, **more)

    monkeypatch.setattr(demo_run, "post", spoiled)
    with CliRunner().isolation() as (out, _, _):
        assert app.run(["demo"]) == 1
        shown = out.getvalue().decode()
    assert "With segue, the same task: 2 of 19 requests refused" in shown
    assert len(re.findall(r"✗ gemini +400 \S", shown)) >= 2


def test_the_recording_is_a_drawing_that_moves():
    recording = draw_recording()
    assert recording == RECORDING.read_text("utf-8"), "docs/demo.svg is out of date: run `make recording`"
    drawn = ElementTree.fromstring(recording)
    words = " ".join(drawn.itertext())
    assert all(name in words for name in NAMES)
    assert "@keyframes" in words
    assert words.index("17 of 19 requests refused") < words.index("0 of 19 requests refused")


def test_the_picture_shows_one_request_refused_and_accepted():
    picture = PICTURE.read_text("utf-8")
    assert draw_picture() == picture, "docs/refused-accepted.svg is out of date: run `make recording`"
    copied, converted = run_exchanges()
    assert (copied.status, converted.status) == (400, 200)
    assert segue.check(copied.body, "anthropic").violations[0].rule == "ANT-01"
    assert segue.check(converted.body, "anthropic")
    words = " ".join(ElementTree.fromstring(picture).itertext())
    assert words.index(f"HTTP 400  {copied.text}") < words.index(f"HTTP 200  {converted.text}")


def test_a_terminal_gets_colour():
    assert "\x1b[" in run_demo_in_terminal()


@pytest.mark.parametrize(
    ("arguments", "variables"), [(["--plain"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_text_is_the_same_without_color(arguments, variables):
    plain = run_demo_in_terminal(*arguments, **variables)
    assert "\x1b" not in plain
    bare = re.sub(r"\x1b\[[\d;]*m", "", run_demo_in_terminal())
    assert bare == plain
    assert not [line for line in plain.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(columns):
    lines = run_demo_in_terminal("--plain", columns=columns).splitlines()
    assert max(map(len, lines)) <= min(columns, 100)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_essential_text_is_complete_at_any_width(columns):
    shown = run_demo_in_terminal("--plain", columns=columns)
    lines = shown.splitlines()
    assert lines[0].startswith("segue demo ─")
    assert "10 providers and back" in " ".join(shown.split())
    for title in ("Without segue", "With segue"):
        assert any(re.match(rf"{title}.*: \d+ of 19 requests refused ─", line) for line in lines)
    rows = [line for line in lines if re.match(r" *[\d, ]+ [✓✗] ", line)]
    assert len(rows) == 13 + 19
    assert all(re.match(rf" *[\d, ]+ [✓✗] (?:{'|'.join(NAMES)})  +\S", line) for line in rows)


def test_without_a_terminal_it_is_plain_and_100_columns_wide():
    ended = run_demo()
    assert b"\x1b" not in ended.out
    assert max(map(len, ended.lines)) <= 100
    assert any("refused" in line for line in ended.lines)
    assert "accepted" in ended.out.decode()
