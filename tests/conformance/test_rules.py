"""Every rule of the rulebook is checked or said to be beyond a body, and every check finds what it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segue import conformance
from segue.conformance import kimi, openai_chat

from . import bodies_anthropic, bodies_chat, bodies_gemini, bodies_gemini_tools, bodies_kimi, bodies_responses
from .case import Case

RULEBOOK = json.loads((Path(__file__).parents[1] / "data" / "rules.json").read_text("utf-8"))
PREFIX = {
    "anthropic": "ANT-",
    "gemini": "GEM-",
    "kimi": "KIM-",
    "openai-chat": "OAI-CHAT-",
    "openai-responses": "OAI-RESP-",
}
CASES = {
    "anthropic": bodies_anthropic.CASES,
    "gemini": (*bodies_gemini.CASES, *bodies_gemini_tools.CASES),
    "kimi": bodies_kimi.CASES,
    "openai-chat": bodies_chat.CASES,
    "openai-responses": bodies_responses.CASES,
}
ROWS = [(api, case) for api, cases in CASES.items() for case in cases]
NAMED = [pytest.param(api, case, id=f"{api} {case.name}") for api, case in ROWS]


@pytest.mark.parametrize(("api", "case"), NAMED)
def test_violation_is_reported_alone_and_in_place(api: str, case: Case) -> None:
    verdict = conformance.judge(case.violating, api, model=case.model)
    assert [(v.rule, v.path, v.severity) for v in verdict] == [(case.rule, path, case.severity) for path in case.paths]
    assert bool(verdict) is (case.severity == "risk")


@pytest.mark.parametrize(("api", "case"), NAMED)
def test_lawful_twin_is_clean(api: str, case: Case) -> None:
    verdict = conformance.judge(case.lawful, api, model=case.model)
    assert not verdict.violations, str(verdict)
    assert verdict


@pytest.mark.parametrize("api", conformance.apis())
def test_every_check_has_a_case(api: str) -> None:
    cases = {case.rule for case in CASES[api]}
    assert {rule.number for rule in conformance.rules(api)} == cases


@pytest.mark.parametrize("api", conformance.apis())
def test_every_rulebook_number_is_checked_or_beyond_a_body(api: str) -> None:
    numbers = {rule["id"] for rule in RULEBOOK if rule["id"].startswith(PREFIX[api])}
    checked = {rule.number for rule in conformance.rules(api) if rule.number.startswith(PREFIX[api])}
    reasons = conformance.unshowable(api)
    assert numbers
    assert checked | reasons.keys() == numbers
    assert not checked & reasons.keys()
    assert all(reasons.values())


@pytest.mark.parametrize("api", conformance.apis())
def test_rules_can_be_read(api: str) -> None:
    table = conformance.rules(api)
    assert len({(rule.number, rule.name) for rule in table}) == len(table)
    for rule in table:
        assert rule.says
        assert rule.holds.models
        assert rule.severity in ("reject", "risk")


def test_shared_checks_exist() -> None:
    assert {rule.name for rule in openai_chat.BOOK.rules} >= kimi.SHARED.keys()


# The rulebook quotes fragments; these put them into a body in which they can stand.
def _chat_body(rule: str, example: Any) -> dict[str, object]:
    c = bodies_chat
    if rule == "OAI-CHAT-17":
        return c.body(model="gpt-5.6-terra", **example)
    if rule == "KIM-08":
        return c.body(example)
    if isinstance(example, list):
        return c.body(*([c.asks()] if example[0]["role"] == "tool" else []), *example)
    if "function" in example:
        return c.body(c.asks({"id": "call_1", "type": "function", **example}))
    message = {"role": "assistant", **example}
    return c.body(*([c.asks(c.call("c"))] if message["role"] == "tool" else []), message)


def _anthropic_body(rule: str, example: Any) -> dict[str, object]:
    a = bodies_anthropic
    if isinstance(example, list) and "role" in example[0]:
        return {"messages": example}
    if isinstance(example, list):
        return a.body(a.assistant(*example))
    if "type" in example:
        return a.body(a.assistant(example))
    if rule == "ANT-24":
        return {**example, "messages": [a.Q, *example["messages"][1:]]}
    if "role" not in example:
        return {"messages": [a.Q], **example}
    asks = [a.assistant(a.use())] if rule in ("ANT-05", "ANT-08") else []
    goes_on = [a.Q] if rule == "ANT-16" else []
    return a.body(*asks, example, *goes_on)


def _responses_body(_rule: str, example: Any) -> dict[str, object]:
    if isinstance(example, list):
        return bodies_responses.body(*example)
    return example if "input" in example and "type" not in example else bodies_responses.body(example)


def _gemini_body(_rule: str, example: Any) -> dict[str, object]:
    g = bodies_gemini
    if isinstance(example, list):
        return {"contents": example}
    if "functionResponse" in example:
        return g.body(g.model(g.call(id="a")), g.user(example))
    if "functionCall" in example:
        return g.body(g.model(example), g.user(g.response()))
    if "thoughtSignature" in example:
        return g.body(g.model({**g.TEXT, **example}), g.Q)
    if "parts" not in example:
        return g.declares(example)
    asks = [g.model(g.call())] if example.get("role") == "user" else []
    return g.body(*asks, example, g.user(g.response()))


BODIES = {"anthropic": _anthropic_body, "gemini": _gemini_body, "openai-responses": _responses_body}
EXAMPLES = [
    pytest.param(api, rule["id"], rule["violation_example"], id=rule["id"])
    for api, prefix in PREFIX.items()
    for rule in RULEBOOK
    if rule["id"].startswith(prefix) and rule["violation_example"] and rule["id"] not in conformance.unshowable(api)
]
MODELS = {"ANT-23": "claude-haiku-4-5", "KIM-04": "kimi-k2-thinking", "KIM-08": "kimi-k3"}


@pytest.mark.parametrize(("api", "rule", "example"), EXAMPLES)
def test_rulebook_example_is_noticed(api: str, rule: str, example: object) -> None:
    body = BODIES.get(api, _chat_body)(rule, example)
    assert rule in {violation.rule for violation in conformance.judge(body, api, model=MODELS.get(rule))}
