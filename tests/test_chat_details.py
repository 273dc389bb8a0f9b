"""Fields of one API that clients put into bodies of another, and options that carry nothing."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from tests.bodies import chat

CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def failed(**more: object) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "boom", "is_error": True},
        ],
        "tools": [TOOL],
        **more,
    }


@pytest.mark.parametrize("source", ["openai-chat", "mistral"])
@pytest.mark.parametrize("target", ["mistral", "kimi", "deepseek", "qwen"])
def test_error_flag_of_a_chat_result_becomes_a_label(source: str, target: str):
    converted = segue.convert(failed(), source=source, target=target)
    (result,) = [message for message in converted.body["messages"] if message["role"] == "tool"]
    assert result["content"] == "[error] boom"
    assert "is_error" not in result
    assert not any("is_error" in finding.message for finding in converted.report.findings)


def test_error_flag_of_a_chat_result_is_a_flag_where_there_is_one():
    assert segue.convert(failed(), source="openai-chat", target="anthropic").body["messages"][2]["content"][0][
        "is_error"
    ]
    same = segue.convert(failed(), source="openai-chat", target="openai-chat")
    assert same.body == failed()


EMPTY_STOPS = {
    "anthropic": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "stop_sequences": [],
        "messages": [{"role": "user", "content": "q"}],
    },
    "bedrock": {
        "modelId": "amazon.nova-pro-v1:0",
        "messages": [{"role": "user", "content": [{"text": "q"}]}],
        "inferenceConfig": {"stopSequences": []},
    },
}


@pytest.mark.parametrize("source", EMPTY_STOPS)
@pytest.mark.parametrize("target", ["openai-chat", "mistral", "kimi", "deepseek", "qwen", "openai-responses", "gemini"])
def test_empty_stop_sequences_are_not_sent_and_not_reported(source: Any, target: Any):
    converted = segue.convert(EMPTY_STOPS[source], source=source, target=target)
    assert "stop" not in converted.body
    assert not any("stop" in finding.message for finding in converted.report.findings)
    assert segue.convert(EMPTY_STOPS[source], source=source, target=source).body == EMPTY_STOPS[source]


NESTED = {"type": "function", "function": {"name": "f"}}
FLAT = {"type": "function", "name": "f"}
RESPONSES_TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}


@pytest.mark.parametrize("choice", [NESTED, FLAT])
def test_tool_choice_of_the_other_openai_api_is_parsed(choice: dict[str, Any]):
    responses = {"model": "gpt-5", "input": "go", "tools": [RESPONSES_TOOL], "tool_choice": choice}
    chat = {"model": "gpt-5", "messages": [{"role": "user", "content": "go"}], "tools": [TOOL], "tool_choice": choice}
    for source, body in (("openai-responses", responses), ("openai-chat", chat)):
        made = segue.convert(body, source=source, target="anthropic")
        assert made.body["tool_choice"] == {"type": "tool", "name": "f"}
    assert segue.convert(responses, source="openai-responses", target="openai-responses").body["tool_choice"] == FLAT
    assert segue.convert(responses, source="openai-responses", target="openai-chat").body["tool_choice"] == NESTED
    assert segue.convert(chat, source="openai-chat", target="openai-responses").body["tool_choice"] == FLAT


def test_openrouter_disables_reasoning_openly_where_it_would_do_so_silently():
    """COMP-22: only in conversions; a body of its own is accepted."""
    body = {
        "model": "claude-opus-4-6",
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any"},
        "messages": [{"role": "user", "content": "go"}],
    }
    model = "anthropic/claude-opus-4.6"
    made = segue.convert(body, target="openai-chat", profile="openrouter", model=model)
    assert not list(segue.check(made.body, "openai-chat", profile="openrouter", model=model))
    assert made.body["tool_choice"] == "required"
    assert any("reasoning disabled" in finding.message for finding in made.report.findings)
    own = {
        "model": model,
        "messages": body["messages"],
        "tools": [TOOL],
        "tool_choice": "required",
        "reasoning_effort": "low",
    }
    assert segue.repair(own, "openai-chat", profile="openrouter").body == own


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai-responses", "bedrock", "deepseek", "mistral"])
@pytest.mark.parametrize(
    "details",
    ["RDX", {"bad": 1}, 5, [5], ["RDX"], [None], [{"bad": 1}], [{"type": "reasoning.text", "text": 5}]],
    ids=repr,
)
def test_invalid_reasoning_details_are_lost_reasoning(details: Any, target: str):
    body = {"messages": [chat.user(), chat.assistant(reasoning_details=details), chat.user()]}
    report = segue.convert(body, source="openai-chat", target=target).report
    assert [finding.level for finding in report.findings_of("reasoning")] == ["lost"]
