"""Every rule of the rulebook is checked or marked as not checkable, and every check finds its violation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest

import segue
from segue import conformance
from segue.conformance import deepseek, kimi, openai_chat, profiles, qwen
from segue.specs.rulebook import load_rulebook
from tests.conformance import (
    bodies_anthropic,
    bodies_bedrock,
    bodies_chat,
    bodies_deepseek,
    bodies_foundry,
    bodies_gemini,
    bodies_gemini_tools,
    bodies_kimi,
    bodies_mistral,
    bodies_profiles,
    bodies_qwen,
    bodies_responses,
    bodies_types,
)
from tests.conformance.case import Case
from tests.each import for_each

RULEBOOK = load_rulebook()
PREFIX = {
    "anthropic": "ANT-",
    "azure-foundry": "AZF-",
    "bedrock": "BED-",
    "deepseek": "DS-",
    "gemini": "GEM-",
    "kimi": "KIM-",
    "mistral": "MIS-",
    "openai-chat": "OAI-CHAT-",
    "openai-responses": "OAI-RESP-",
    "qwen": "QWEN-",
}
_CASES_BY_API = {
    "anthropic": bodies_anthropic.CASES,
    "azure-foundry": bodies_foundry.CASES,
    "bedrock": bodies_bedrock.CASES,
    "deepseek": bodies_deepseek.CASES,
    "gemini": (*bodies_gemini.CASES, *bodies_gemini_tools.CASES),
    "kimi": bodies_kimi.CASES,
    "mistral": bodies_mistral.CASES,
    "openai-chat": bodies_chat.CASES,
    "openai-responses": bodies_responses.CASES,
    "qwen": bodies_qwen.CASES,
}
CASES = {api: (*cases, *bodies_types.CASES.get(api, ())) for api, cases in _CASES_BY_API.items()}
ROWS = [(api, case) for api, cases in CASES.items() for case in cases]
every_case = for_each("api, case", ROWS, ids=lambda row: f"{row[0]} {row[1].name}")


@every_case
def test_violation_is_reported_alone_and_in_place(api: str, case: Case) -> None:
    verdict = conformance.check_body(case.violating, api, model=case.model)
    assert [(v.rule, v.path, v.severity) for v in verdict] == [(case.rule, path, case.severity) for path in case.paths]
    assert bool(verdict) is (case.severity == "risk")


@every_case
def test_valid_twin_is_clean(api: str, case: Case) -> None:
    verdict = conformance.check_body(case.valid, api, model=case.model)
    assert not verdict.violations, str(verdict)
    assert verdict


# What the vendor's types list is open when read, and a value that can't be known is not made up.
_NOT_REPAIRED = {
    "ANT-42 a choice as text",
    "ANT-42 an effort, to Opus 4.6",
    "ANT-42 an image without its data",
    "BED-06 the assistant first, another",
    "BED-09 a model that is none",
    "BED-09 another type",
    "BED-09 status",
    "OAI-RESP-16 a video as a file",
    "OAI-RESP-26 a word as threshold",
}


@every_case
def test_violation_is_repaired(api: str, case: Case) -> None:
    """Or the body can't be read. A second repair changes nothing."""
    with suppress(segue.InputError):
        repaired = segue.repair(case.violating, cast("segue.Api", api), model=case.model)
        verdict = conformance.check_body(repaired.body, api, model=case.model)
        assert bool(verdict) is (case.name not in _NOT_REPAIRED or case.severity == "risk"), str(verdict)
        assert not segue.repair(repaired.body, cast("segue.Api", api), model=case.model).changes


# Ids that repeat are made unique, also where the provider takes them; reasoning that is required in the current
# exchange is completed in all, so that the prefix stays the same.
_CHANGED = {
    "ANT-42 effort 'max', claude-opus-4-5-20251101",
    "ANT-42 effort 'ultra', claude-haiku-4-6",
    "BED-01 a pipe",
    "BED-06 no message",
    "BED-06 none at all",
    "BED-11 reasoning that is text",
    "DS-01 null",
    "GEM-03 first content",
    "GEM-15 empty",
    "GEM-15 second step",
    "MIS-05 twice",
    "MIS-06 before v11",
    "MIS-06 in one message",
    "OAI-CHAT-23 web search",
}


@every_case
def test_valid_twin_is_not_repaired(api: str, case: Case) -> None:
    if case.name not in _CHANGED:
        assert not segue.repair(case.valid, cast("segue.Api", api), model=case.model).changes


@pytest.mark.parametrize("api", conformance.apis())
def test_every_check_has_a_case(api: str) -> None:
    cases = {case.rule for case in CASES[api]}
    assert {rule.number for rule in conformance.rules(api)} == cases


@pytest.mark.parametrize("api", conformance.apis())
def test_every_rulebook_number_is_checked_or_beyond_a_body(api: str) -> None:
    numbers = {number for number in RULEBOOK if number.startswith(PREFIX[api])}
    checked = {rule.number for rule in conformance.rules(api) if rule.number.startswith(PREFIX[api])}
    reasons = conformance.not_checkable(api)
    assert numbers
    assert checked | reasons.keys() == numbers
    assert not checked & reasons.keys()
    assert all(reasons.values())


@pytest.mark.parametrize("api", conformance.apis())
def test_rules_can_be_read(api: str) -> None:
    table = conformance.rules(api)
    assert len({(rule.number, rule.name) for rule in table}) == len(table)
    for rule in table:
        assert rule.description
        assert rule.applies_to.description
        assert rule.severity in ("reject", "risk")


@pytest.mark.parametrize("module", [deepseek, kimi, qwen])
def test_shared_checks_exist(module: Any) -> None:
    assert {rule.name for rule in openai_chat.RULE_SET.rules} >= module.SHARED_CHECKS.keys()


PROFILE_ROWS = [
    pytest.param(profile, case, id=f"{profile} {case.name}")
    for profile, cases in bodies_profiles.CASES.items()
    for case in cases
]


@pytest.mark.parametrize(("profile", "case"), PROFILE_ROWS)
def test_profile_reports_its_violation_alone_and_in_place(profile: str, case: Case) -> None:
    verdict = conformance.check_body(
        case.violating, conformance.profile_api(profile), model=case.model, profile=profile
    )
    assert [(v.rule, v.path, v.severity) for v in verdict] == [(case.rule, path, case.severity) for path in case.paths]
    lawful = conformance.check_body(case.valid, conformance.profile_api(profile), model=case.model, profile=profile)
    assert not lawful.violations, str(lawful)


def test_every_number_of_a_server_is_checked_or_beyond_a_body() -> None:
    numbers = {number for number in RULEBOOK if number.startswith("COMP-")}
    own_rules = (rule for profile in profiles.PROFILES.values() for rule in profile.own_rules)
    checked = {rule.number for rule in own_rules if rule.number.startswith("COMP-")}
    assert checked | profiles.NOT_CHECKABLE.keys() == numbers
    assert not checked & profiles.NOT_CHECKABLE.keys()
    assert all(profiles.NOT_CHECKABLE.values())


@pytest.mark.parametrize("profile", conformance.profile_names())
def test_profile_changes_checks_that_exist(profile: str) -> None:
    row, api = profiles.PROFILES[profile], conformance.profile_api(profile)
    known = {rule.name for rule in row.base.rules}
    assert row.omitted | row.downgraded <= known
    assert not row.omitted & row.downgraded
    assert {rule.number for rule in row.own_rules} == {case.rule for case in bodies_profiles.CASES[profile]}
    own_reasons = profiles.NOT_CHECKABLE if api == "openai-chat" else row.base.not_checkable
    assert conformance.not_checkable(api, profile) is own_reasons
    names = [rule.name for rule in conformance.rules(api, profile)]
    assert len(set(names)) == len(names)


ALL_CASES = [*(case for _, case in ROWS), *(case for cases in bodies_profiles.CASES.values() for case in cases)]


def is_case(rule: str, example: Any) -> bool:
    """Whether the example of a rule is the whole body of one of the cases above, not a fragment."""
    bodies = [case.violating for case in ALL_CASES if case.rule == rule]
    return example in bodies or (
        isinstance(example, dict)
        and {key: value for key, value in example.items() if key not in ("model", "modelId")} in bodies
    )


# The rulebook quotes fragments; these functions put them into a body.
def _chat_body(rule: str, example: Any) -> dict[str, object]:
    c = bodies_chat
    if rule == "OAI-CHAT-17":
        return c.body(model="gpt-5.6-terra", **example)
    if rule == "KIM-08":
        return c.body(example)
    if rule in ("COMP-11", "MIS-15", "QWEN-04"):
        return {"messages": example}
    if rule == "COMP-10":
        return c.body(tools=[{"type": "function", **example}])
    if "tools" in example or "tool_choice" in example:
        return c.body(**example)
    if isinstance(example, list):
        return c.body(*([c.assistant_calls()] if example[0]["role"] == "tool" else []), *example)
    if "function" in example:
        return c.body(c.assistant_calls({"id": "call_1", "type": "function", **example}))
    message = {"role": "assistant", **example}
    return c.body(*([c.assistant_calls(c.call("c"))] if message["role"] == "tool" else []), message)


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
    asks = [a.assistant(a.call())] if rule in ("ANT-05", "ANT-08") else []
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


def _bedrock_body(_rule: str, example: Any) -> dict[str, object]:
    b = bodies_bedrock
    if isinstance(example, list):
        return {"messages": example}
    return b.body({"role": "user", **example} if "content" in example else b.user(example))


def _foundry_body(_rule: str, example: Any) -> dict[str, object]:
    return bodies_foundry.body(example) if example.keys() & {"type", "role"} else bodies_foundry.body(**example)


BODIES = {
    "anthropic": _anthropic_body,
    "azure-foundry": _foundry_body,
    "bedrock": _bedrock_body,
    "gemini": _gemini_body,
    "openai-responses": _responses_body,
}
EXAMPLES = [
    pytest.param(api, rule.id, rule.violation_example, id=rule.id)
    for api, prefix in PREFIX.items()
    for rule in RULEBOOK.values()
    if rule.id.startswith(prefix) and rule.violation_example and rule.id not in conformance.not_checkable(api)
]
MODELS = {
    "ANT-23": "claude-haiku-4-5",
    "DS-01": "deepseek-v3.2-thinking",
    "DS-02": "deepseek-v4-flash",
    "DS-07": "deepseek-r1",
    "DS-09": "deepseek-v4-flash",
    "KIM-04": "kimi-k2-thinking",
    "KIM-08": "kimi-k3",
    "MIS-11": "open-mistral-nemo",
}


@for_each("api, rule, example", [param.values for param in EXAMPLES], ids=lambda row: f"{row[0]} {row[1]}")
def test_rulebook_example_is_noticed(api: str, rule: str, example: Any) -> None:
    body = example if is_case(rule, example) else BODIES.get(api, _chat_body)(rule, example)
    assert rule in {violation.rule for violation in conformance.check_body(body, api, model=MODELS.get(rule))}


PROFILE_EXAMPLES = [
    pytest.param(profile, rule.id, rule.violation_example, id=rule.id)
    for profile in conformance.profile_names()
    for rule in RULEBOOK.values()
    if rule.id in {own.number for own in profiles.PROFILES[profile].own_rules} and rule.violation_example
    # A rule of the API that the server has in another form: the example may not break it there.
    if not rule.id.startswith("OAI-")
]


@pytest.mark.parametrize(("profile", "rule", "example"), PROFILE_EXAMPLES)
def test_rulebook_example_of_a_server_is_noticed(profile: str, rule: str, example: Any) -> None:
    body = example if is_case(rule, example) else _chat_body(rule, example)
    verdict = conformance.check_body(body, "openai-chat", profile=profile)
    assert rule in {violation.rule for violation in verdict}
