"""`segue rules`: every rule of the rulebook can be listed, shown and found from a violation."""

from __future__ import annotations

import json

import pytest

from segue.specs.rulebook import load_rulebook
from tests.cli.process import run

NUMBERS = list(load_rulebook())


def test_the_list_has_one_line_for_each_rule():
    done = run("rules")
    listed = [line.split()[0] for line in done.lines if line.startswith("  ")]
    assert done.code == 0
    assert listed == NUMBERS


def test_every_rule_is_shown_in_full():
    shown = json.loads(run("rules", *NUMBERS, "--json").out)
    assert [rule["id"] for rule in shown] == NUMBERS
    for rule in shown:
        assert rule["rule"], rule["id"]
        assert rule["source"], rule["id"]
        assert rule["handling"], rule["id"]
        assert bool(rule["checks"]) != bool(rule["not_checked"]), rule["id"]


def test_a_rule_is_found_in_any_case():
    done = run("rules", "ant-24")
    assert done.out.startswith(b"ANT-24  Anthropic Messages: thinking\n")
    for label in ("rule", "error", "source", "example", "checked", "segue"):
        assert f"\n  {label} " in done.out.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rules", "ANT-99"), "there is no rule 'ANT-99'; did you mean ANT-"),
        (("rules", "nonsense"), "there is no rule 'nonsense'; `segue rules` lists all of them"),
        (("rules", "ANT-24", "--api", "anthropic"), "give either rule numbers or --api"),
        (("rules", "--api", "antropic"), "did you mean 'anthropic'?"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[str, ...], message: str):
    done = run(*arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err


def test_rules_of_one_api():
    done = run("rules", "--api", "gemini", "--json")
    numbers = {rule["id"] for rule in json.loads(done.out)}
    assert {number for number in NUMBERS if number.startswith("GEM-")} <= numbers
    assert not any(number.startswith("ANT-") for number in numbers)


VIOLATING = json.dumps(
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}]}
).encode()


def test_check_names_the_command_that_explains_a_rule():
    done = run("check", "--api", "anthropic", stdin=VIOLATING)
    assert done.code == 1
    assert "segue rules ANT-" in done.err
    assert "segue check --explain" in done.err


def test_check_explains_the_violated_rules():
    done = run("check", "--api", "anthropic", "--explain", stdin=VIOLATING)
    violated = {line.split()[1] for line in done.lines if line.startswith(("reject ", "risk "))}
    assert violated
    for number in violated:
        assert f"\n{number}  Anthropic Messages: " in done.out.decode()
    whole = json.loads(run("check", "--api", "anthropic", "--explain", "--json", stdin=VIOLATING).out)
    assert {rule["id"] for rule in whole["rules"]} == violated


def test_number_without_its_zero_is_found():
    assert run("rules", "ant-7", "--json").json == run("rules", "ANT-07", "--json").json
    assert "did you mean" in run("rules", "ANT-700").err
