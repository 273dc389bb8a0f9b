"""A server profile with the model that it serves: its rules apply to names that say nothing of the model."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.bridge.providers import validate_settings
from segue.wire.registry import find_wire_or_server
from tests.each import for_each


def _body(model: str = "local") -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
            {"role": "user", "content": "More."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
        ],
    }


# TPL-15: nine letters and digits, a message between result and user. TPL-11: no system role. TPL-02: one call.
@pytest.mark.parametrize("server", ["vllm", "llama.cpp"])
@for_each("served", ["mistral-small-3.2", "mistral"])
def test_the_rules_of_the_served_model_apply(server: str, served: str) -> None:
    profile = f"{server}:{served}"
    for source in ("openai-chat", "anthropic"):
        body = _body() if source == "openai-chat" else segue.convert(_body(), source="openai-chat", target=source).body
        plain = segue.convert(body, source=source, target="openai-chat", model="local", profile=server)
        out = segue.convert(body, source=source, target="openai-chat", model="local", profile=profile)
        named = segue.convert(body, source=source, target="openai-chat", model=served, profile=server)
        assert out.body["model"] == "local"
        assert {**out.body, "model": served} == named.body
        assert out.body != plain.body
        assert segue.check(out.body, "openai-chat", profile=profile)
        assert bool(segue.check(plain.body, "openai-chat", profile=profile)) is bool(
            segue.check({**plain.body, "model": served}, "openai-chat", profile=server)
        )
    repaired = segue.repair(_body(), "openai-chat", profile=profile)
    assert repaired.body["model"] == "local"
    assert len(repaired.body["messages"]) == 5
    chat = segue.Conversation.from_body(_body(), source="openai-chat")
    assert len(chat.render("openai-chat", "local", profile=profile).body["messages"]) == 5


def test_a_name_of_a_known_family_keeps_its_own_rules() -> None:
    for model in ("qwen3-32b", "llama-3.1-8b"):
        body = _body(model)
        with_served = segue.convert(body, source="openai-chat", target="openai-chat", profile="vllm:mistral")
        assert with_served.body == segue.convert(body, source="openai-chat", target="openai-chat", profile="vllm").body


def test_gemma_2_gets_no_system_message() -> None:
    body = {
        "model": "local",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q"}],
    }
    out = segue.convert(body, source="openai-chat", target="openai-chat", profile="vllm:gemma-2")
    assert [message["role"] for message in out.body["messages"]] == ["user"]


def test_the_row_of_a_served_model_is_one() -> None:
    row = find_wire_or_server("openai-chat", "vllm:mistral", argument="api")
    assert row is find_wire_or_server("openai-chat", "vllm:mistral", argument="api")
    assert (row.profile, row.served_model) == ("vllm", "mistral")


@for_each("profile", ["vllm:", "vllm:unheard-of", "nothing:mistral"])
def test_an_unknown_model_or_server_is_refused(profile: str) -> None:
    for operation in (segue.repair, segue.check):
        with pytest.raises(segue.InputError, match="profile"):
            operation(_body(), "openai-chat", profile=profile)


def test_a_provider_of_the_configuration_names_the_served_model() -> None:
    settings = {"base_url": "http://127.0.0.1:1/v1", "profile": "vllm:mistral"}
    assert validate_settings("local", settings)["profile"] == "vllm:mistral"
    with pytest.raises(segue.InputError, match=r"providers\.local\.profile"):
        validate_settings("local", {**settings, "profile": "vllm:unheard-of"})


def _parallel() -> dict[str, Any]:
    body = _body()
    (call,) = body["messages"][1]["tool_calls"]
    body["messages"][1] |= {"content": "I look.", "tool_calls": [call, {**call, "id": "call_2"}]}
    body["messages"][3:3] = [{"role": "tool", "tool_call_id": "call_2", "content": "done"}]
    return body


# What the templates show: `ggml-org/llama.cpp` models/templates, `vllm-project/vllm` examples.
SHOWN = {
    "gemma-3-27b": (["user", "assistant", "tool", "tool", "assistant", "user"], [2]),
    "GigaChat3-10B": (["user", "assistant", "tool", "assistant", "tool", "user"], [1, 1]),
    "Phi-4-mini": (["user", "assistant", "assistant", "tool", "tool", "user"], [2]),
    "qwen3-32b": (["user", "assistant", "tool", "tool", "user"], [2]),
}


@for_each("server", ["vllm", "llama.cpp"])
def test_calls_are_written_as_the_template_of_the_model_shows_them(server: str) -> None:
    for model, (roles, calls) in SHOWN.items():
        for source in ("openai-chat", "anthropic"):
            body = _parallel()
            body = body if source == "openai-chat" else segue.convert(body, source="openai-chat", target=source).body
            out = segue.convert(body, source=source, target="openai-chat", model="local", profile=f"{server}:{model}")
            messages = out.body["messages"]
            assert [message["role"] for message in messages] == roles, (model, source)
            assert [len(message["tool_calls"]) for message in messages if message.get("tool_calls")] == calls
            assert segue.check(out.body, "openai-chat", profile=f"{server}:{model}")


@for_each("model", ["gemma-3-27b", "granite-3.3-8b", "gpt-oss-20b"])
def test_templates_that_fail_on_null_get_an_empty_text(model: str) -> None:
    body = _body()
    body["messages"][1]["content"] = None
    out = segue.convert(body, source="openai-chat", target="openai-chat", model="local", profile=f"vllm:{model}")
    assert out.body["messages"][1]["content"] == ""
