"""`segue repair`: the valid body on stdout, a line per change on stderr."""

from __future__ import annotations

import json

import pytest

import segue
from tests.cli.bodies import GOOD, OPEN, RISKY
from tests.cli.process import is_one_line_error, run

OPENAI = ("repair", "--api", "openai-chat")


@pytest.mark.parametrize("body", [GOOD, RISKY, json.dumps(json.loads(GOOD), indent=2).encode()])
def test_valid_body_is_unchanged(body):
    ended = run(*OPENAI, stdin=body)
    assert (ended.code, ended.out, ended.err) == (0, body + b"\n", "segue: nothing to repair\n")


def test_a_change_is_a_line_with_its_reason():
    ended = run(*OPENAI, stdin=OPEN)
    assert ended.code == 0
    assert segue.check(ended.out, "openai-chat")
    added, reason, count = ended.err.splitlines()
    assert added.startswith('+ messages[2]: {"role":"tool","tool_call_id":"call_1"')
    assert reason.startswith("# ")
    assert count == "segue: 1 change"


def test_quiet_is_quiet():
    assert run(*OPENAI, "-q", stdin=OPEN).err == ""


def test_json_holds_body_changes_and_report():
    ended = run(*OPENAI, "--json", stdin=OPEN)
    assert ended.err == ""
    assert segue.check(ended.json["body"], "openai-chat")
    assert [change["kind"] for change in ended.json["changes"]] == ["added"]
    assert ended.json["report"]["target"] == "openai-chat"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"messages": 3}', b'{"messages": [{"role": "usr"}]}'])
def test_unrepairable_body_is_usage_error(body):
    assert is_one_line_error(run(*OPENAI, stdin=body))


def test_an_api_is_required():
    assert is_one_line_error(run("repair", stdin=GOOD))
