"""A request to see reasoning reaches every target that can show it, and only then turns reasoning on."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.wire.registry import WIRES
from tests.bodies import anthropic as claude

HI = "Which way?"
ASKING: dict[str, dict[str, Any]] = {
    "anthropic": claude.body(claude.user(claude.text(HI)), max_tokens=20_000, thinking={"type": "adaptive"}),
    "openai-responses": {"model": "gpt-5.5", "input": HI, "reasoning": {"summary": "detailed"}},
    "azure-foundry": {"model": "gpt-5", "input": HI, "reasoning": {"summary": "auto"}},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": HI}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    },
    "bedrock": {
        "modelId": "anthropic.claude-sonnet-4-5",
        "messages": [{"role": "user", "content": [{"text": HI}]}],
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    },
}
SILENT: dict[str, dict[str, Any]] = {
    "anthropic": claude.body(claude.user(claude.text(HI))),
    "openai-chat": {"messages": [{"role": "user", "content": HI}]},
    "openai-responses": {"model": "gpt-5.5", "input": HI, "reasoning": {}},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": HI}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": False}},
    },
}
SHOWN: dict[tuple[str, str], Any] = {
    ("anthropic", "claude-opus-4-8"): {"thinking": {"type": "adaptive", "display": "summarized"}},
    ("anthropic", "claude-opus-4-6"): {"thinking": {}},
    ("anthropic", "claude-sonnet-4-5"): {"thinking": {"type": "enabled"}},
    ("bedrock", "anthropic.claude-opus-4-8"): {
        "additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "summarized"}}
    },
    ("gemini", "gemini-3.8-flash"): {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
    ("gemini", "gemini-2.5-flash"): {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
    ("openai-responses", "gpt-5.5"): {"reasoning": {"summary": "auto"}},
    ("azure-foundry", "gpt-5"): {"reasoning": {"summary": "auto"}},
    ("qwen", "qwen3-max"): {"enable_thinking": True},
    ("deepseek", "deepseek-v4-flash"): {"thinking": {"type": "enabled"}},
}


def is_part(expected: Any, given: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(given, dict) and all(is_part(value, given.get(key)) for key, value in expected.items())
    return expected == given


@pytest.mark.parametrize("source", ASKING)
@pytest.mark.parametrize(("target", "model"), SHOWN)
def test_the_wish_reaches_every_target_that_can_show_reasoning(source: str, target: str, model: str) -> None:
    if source == target:
        return
    made = segue.convert(ASKING[source], source=source, target=target, model=model)
    assert is_part(SHOWN[target, model], made.body), made.body
    assert segue.check(made.body, target, model=model)


@pytest.mark.parametrize("source", ASKING)
def test_a_target_that_cannot_show_it_is_reported(source: str) -> None:
    made = segue.convert(ASKING[source], source=source, target="openai-chat", model="gpt-5.5")
    assert [f.message for f in made.report.findings if "not shown" in f.message] == [
        "reasoning is not shown: openai-chat has no option for it"
    ]
    assert segue.check(made.body, "openai-chat", model="gpt-5.5")


@pytest.mark.parametrize("source", SILENT)
@pytest.mark.parametrize("target", WIRES)
def test_nothing_is_turned_on_without_it(source: str, target: str) -> None:
    body = segue.convert(SILENT[source], source=source, target=target).body
    if source != target:
        assert not any(key in str(body) for key in ("thinking", "summary", "includeThoughts", "reasoning_effort")), body


@pytest.mark.parametrize("api", ASKING)
def test_it_goes_home_as_it_came(api: str) -> None:
    assert segue.convert(ASKING[api], source=api, target=api).body == ASKING[api]


@pytest.mark.parametrize(("source", "target"), [("anthropic", "bedrock"), ("bedrock", "anthropic")])
def test_omitted_thinking_stays_omitted(source: str, target: str) -> None:
    thinking = {"type": "adaptive", "display": "omitted"}
    given = {**ASKING[source]}
    if source == "anthropic":
        given["thinking"] = thinking
    else:
        given["additionalModelRequestFields"] = {"thinking": thinking}
    model = {"anthropic": "claude-opus-4-8", "bedrock": "anthropic.claude-opus-4-8"}[target]
    made = segue.convert(given, source=source, target=target, model=model).body
    assert "summarized" not in str(made)


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5"])
@pytest.mark.parametrize("target", ["anthropic", "bedrock"])
def test_a_switch_in_the_middle_of_a_loop_keeps_thinking_on(target: str, model: str) -> None:
    loop = [
        claude.user(claude.text("go")),
        claude.assistant(claude.call("toolu_1")),
        claude.user(claude.result("toolu_1")),
    ]
    given = claude.body(
        *loop,
        model="a-model",
        max_tokens=9000,
        tools=[claude.tool()],
        thinking={"type": "enabled", "budget_tokens": 4000},
    )
    name = model if target == "anthropic" else f"anthropic.{model}"
    made = segue.convert(given, source="anthropic", target=target, model=name)
    assert '"adaptive"' in made.data.decode(), made.body
    assert segue.check(made.body, target, model=name)


def test_a_model_with_budgets_only_can_not_think_there() -> None:
    loop = [
        claude.user(claude.text("go")),
        claude.assistant(claude.call("toolu_1")),
        claude.user(claude.result("toolu_1")),
    ]
    given = claude.body(
        *loop, max_tokens=9000, tools=[claude.tool()], thinking={"type": "enabled", "budget_tokens": 4000}
    )
    made = segue.convert(given, source="anthropic", target="anthropic", model="claude-sonnet-4-5")
    assert made.body["thinking"] == {"type": "disabled"}
