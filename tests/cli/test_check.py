"""`segue check`: a line a violation, and the verdict as exit code."""

from __future__ import annotations

import re

import pytest

import segue
from tests.cli.bodies import CALL, GOOD, OPEN, RISKY, chat
from tests.cli.process import is_one_line_error, run

OPENAI = ("check", "--api", "openai-chat")


def test_a_clean_body_is_accepted_with_0():
    ended = run(*OPENAI, stdin=GOOD)
    assert (ended.code, ended.out, ended.err) == (0, b"accepted\n", "")


def test_risks_are_listed_and_counted_and_still_accepted():
    ended = run(*OPENAI, stdin=RISKY)
    assert ended.code == 0
    assert ended.lines[0].startswith("risk OAI-CHAT-22 messages[1].mood: ")
    assert ended.lines[-1] == "accepted (1 risk)"


def test_rejects_are_a_line_each_and_1():
    ended = run(*OPENAI, stdin=OPEN)
    assert ended.code == 1
    assert ended.lines[0].startswith("reject OAI-CHAT-03 messages[1].tool_calls[0]: ")
    assert ended.lines[-1] == "refused (1 reject)"
    assert ended.err == "segue: `segue rules OAI-CHAT-03` explains a rule, `segue check --explain` all of these\n"


def test_body_text_cannot_control_the_terminal():
    ended = run(
        *OPENAI, stdin=chat({"role": "assistant", "tool_calls": [{**CALL, "id": "a\x1b[2J\nreject X-01 b: c"}]})
    )
    assert ended.code == 1
    assert b"\x1b" not in ended.out
    assert all(re.match(r"(reject|risk) OAI-CHAT-\d\d |refused ", line) for line in ended.lines)


def test_json_is_the_verdict():
    ended = run(*OPENAI, "--json", stdin=OPEN)
    assert ended.code == 1
    assert ended.json == segue.check(OPEN, "openai-chat").to_dict()


def test_json_of_a_clean_body_exits_with_0():
    ended = run(*OPENAI, "--json", stdin=GOOD)
    assert (ended.code, ended.json["accepted"]) == (0, True)


def test_rules_follow_the_model():
    body = chat(model="gpt-4o", reasoning_effort="high", tools=[{"type": "function", "function": {"name": "f"}}])
    assert run(*OPENAI, stdin=body).code == 0
    assert run(*OPENAI, "--model", "gpt-5.6", stdin=body).code == 1


def test_a_file_is_read(tmp_path):
    file = tmp_path / "body.json"
    file.write_bytes(OPEN)
    assert run(*OPENAI, str(file)).code == 1


def test_missing_api_error_lists_apis():
    for arguments in (["check"], ["check", "--api", "gpt4"]):
        ended = run(*arguments, stdin=GOOD)
        assert is_one_line_error(ended)
        assert all(row.name in ended.err for row in segue.formats() if row.kind != "text")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xef\xbb\xbf{}", b"\x00\x01", b'"\xff"'])
def test_uncheckable_body_is_usage_error(body):
    assert is_one_line_error(run(*OPENAI, stdin=body))


def test_body_of_another_api_is_usage_error():
    assert is_one_line_error(run("check", "--api", "openai-chat", stdin=b'{"contents": []}'))


CUT_OFF = chat(
    {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{"}}]},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "r"},
)


def test_a_profile_adds_the_rules_of_a_server():
    assert run(*OPENAI, stdin=CUT_OFF).code == 0
    ended = run(*OPENAI, "--profile", "vllm", stdin=CUT_OFF)
    assert ended.code == 1
    assert ended.lines[0].startswith("reject COMP-14 messages[1].tool_calls[0].function.arguments: ")
    assert not segue.check(CUT_OFF, "openai-chat", profile="llama.cpp")


def test_unknown_profile_error_lists_profiles():
    ended = run(*OPENAI, "--profile", "lighthouse", stdin=GOOD)
    assert is_one_line_error(ended)
    assert all(name in ended.err for name in ("vllm", "llama.cpp", "groq", "ollama"))


def test_profile_of_another_api_is_usage_error():
    assert is_one_line_error(run("check", "--api", "kimi", "--profile", "vllm", stdin=GOOD))
