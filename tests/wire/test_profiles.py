"""Servers with an `openai-chat` API and rules of their own: each profile changes only what its server needs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import segue
from segue.wire.registry import SERVERS
from tests.bodies.chat import assistant, call, result, user
from tests.bodies.chat import compatible_calls as assistant_calls

PARAMETERS = {"type": "object", "properties": {}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}


def convert_for_profile(profile: str, *messages: dict, model: str | None = None, **more: Any) -> dict[str, Any]:
    body = {"messages": list(messages), **more}
    out = segue.convert(body, source="openai-chat", target="openai-chat", profile=profile, model=model)
    again = segue.convert(out.body, source="openai-chat", target="openai-chat", profile=profile, model=model)
    assert again.data == out.data
    verdict = segue.check(out.body, "openai-chat", profile=profile, model=model)
    assert verdict, str(verdict)
    return out.body


CHAT_SERVERS = [name for name, wire in SERVERS.items() if wire.name == "openai-chat"]
PLAIN = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        user(),
        assistant_calls(call(), call("call_2")),
        result(),
        result("call_2"),
        assistant(),
        user([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]),
    ],
    "tools": [TOOL],
    "tool_choice": "auto",
    "max_tokens": 5,
    "temperature": 0.5,
}


@pytest.mark.parametrize("profile", CHAT_SERVERS)
def test_commonly_accepted_body_is_unchanged(profile: str) -> None:
    out = segue.convert(PLAIN, source="openai-chat", target="openai-chat", profile=profile)
    assert json.dumps(out.body) == json.dumps(PLAIN)
    assert segue.repair(PLAIN, "openai-chat", profile=profile).changes == ()


@pytest.mark.parametrize("profile", CHAT_SERVERS)
def test_openai_only_options_are_dropped(profile: str) -> None:
    custom = {"id": "call_c", "type": "custom", "custom": {"name": "patch", "input": "x"}}
    made = convert_for_profile(
        profile,
        {"role": "developer", "content": "s"},
        user(),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "old"},
        assistant_calls(custom),
        result("call_c"),
        assistant(None, refusal="no"),
        user(),
        tools=[{"type": "custom", "custom": {"name": "patch"}}],
    )
    assert [message["role"] for message in made["messages"]] == [
        "developer" if profile == "openrouter" else "system",
        *("user", "assistant", "tool", "assistant", "tool", "assistant", "user"),
    ]
    assert made["messages"][2]["tool_calls"][0]["id"] == made["messages"][3]["tool_call_id"]
    assert json.loads(made["messages"][4]["tool_calls"][0]["function"]["arguments"]) == {"input": "x"}
    assert [tool["type"] for tool in made["tools"]] == ["function"]


@pytest.mark.parametrize("profile", CHAT_SERVERS)
@pytest.mark.parametrize("source", ["anthropic", "kimi", "mistral"])
def test_cross_api(profile: str, source: str) -> None:
    body = segue.convert(PLAIN, source="openai-chat", target=source).body
    out = segue.convert(body, source=source, target="openai-chat", profile=profile, model="some-model")
    call_message = out.body["messages"][2]
    assert [entry["id"] for entry in call_message["tool_calls"]] == [
        m["tool_call_id"] for m in out.body["messages"][3:5]
    ]
    assert segue.check(out.body, "openai-chat", profile=profile)
    assert "max_completion_tokens" not in out.body


@pytest.mark.parametrize(("profile", "named"), [("groq", {}), ("cerebras", {"name": "bob"})])
def test_unknown_keys_of_messages_are_left_out(profile: str, named: dict) -> None:
    made = convert_for_profile(
        profile, user(name="bob"), assistant_calls(call(), reasoning_content="hm", status="x"), result(), user()
    )
    assert made["messages"] == [user(**named), assistant_calls(call()), result(), user()]


@pytest.mark.parametrize(("model", "kept"), [("openai/gpt-oss-120b", True), ("llama-3.3-70b-versatile", False)])
def test_groq_gets_reasoning_back_where_the_model_has_it(model: str, kept: bool) -> None:
    made = convert_for_profile("groq", user(), assistant(reasoning="hm"), user(), model=model)
    assert ("reasoning" in made["messages"][1]) is kept


def test_xai_needs_content_beside_calls() -> None:
    for content in (None, []):
        made = convert_for_profile("xai", user(), {**assistant_calls(call()), "content": content}, result())
        assert made["messages"][1]["content"] == ""
    made = segue.convert(
        {"messages": [user(), assistant_calls(call()), result()], "max_tokens": 5},
        source="kimi",
        target="openai-chat",
        profile="xai",
    )
    assert made.body["messages"][1]["content"] == ""


@pytest.mark.parametrize("profile", ["minimax", "vllm", "llama.cpp"])
def test_arguments_are_json(profile: str) -> None:
    made = convert_for_profile(
        profile,
        user(),
        assistant_calls(call(arguments='{"a":'), call("call_2", arguments="[1]")),
        result(),
        result("call_2"),
    )
    first, second = (entry["function"]["arguments"] for entry in made["messages"][1]["tool_calls"])
    assert (json.loads(first), second) == ({"_raw": '{"a":'}, "[1]")
    objects = convert_for_profile("ollama", user(), assistant_calls(call(arguments="[1]")), result())
    assert json.loads(objects["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"value": [1]}


def test_minimax_needs_a_schema() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    made = convert_for_profile("minimax", user(), assistant_calls(call()), result(), tools=[tool])
    assert made["tools"][0]["function"]["parameters"] == PARAMETERS


def test_zai_needs_unique_ids() -> None:
    made = convert_for_profile("z.ai", user(), assistant_calls(call()), result(), assistant_calls(call()), result())
    first, second = (made["messages"][place]["tool_calls"][0]["id"] for place in (1, 3))
    assert first != second == made["messages"][4]["tool_call_id"]


def test_zai_needs_a_user_message() -> None:
    made = convert_for_profile("z.ai", {"role": "system", "content": "s"}, assistant_calls(call()), result())
    assert made["messages"][-1] == user("Continue.")


def test_llama_cpp_accepts_a_prefill_without_thinking() -> None:
    body = {"messages": [user(), assistant("half")]}
    assert convert_for_profile("llama.cpp", *body["messages"]) == body
    option_sets: tuple[dict[str, Any], ...] = (
        {"reasoning_effort": "high"},
        {"chat_template_kwargs": {"enable_thinking": True}},
    )
    for call_message in option_sets:
        made = convert_for_profile("llama.cpp", *body["messages"], **call_message)
        assert made["messages"][2] == user("Continue.")
        assert made.items() >= call_message.items()


@pytest.mark.parametrize("profile", ["vllm", "llama.cpp", "ollama"])
def test_id_scheme_follows_the_served_model(profile: str) -> None:
    body = {"messages": [user(), assistant_calls(call()), result()]}

    def made_id(model: str) -> str:
        source = segue.convert(body, source="openai-chat", target="anthropic").body
        out = segue.convert(source, source="anthropic", target="openai-chat", profile=profile, model=model)
        return out.body["messages"][1]["tool_calls"][0]["id"]

    assert made_id("moonshotai/Kimi-K2-Instruct") == "functions.f:0"
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", made_id("mistralai/Devstral-Small-2507"))
    assert made_id("Qwen/Qwen3-32B").startswith("call_")
    assert made_id("kimi-k3").startswith("call_")


def test_openrouter_gets_its_reasoning_back() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x", "id": "call_1", "index": 0}]
    body = [user(), assistant_calls(call(), reasoning_details=details), result()]
    for model in ("google/gemini-3-pro", "anthropic/claude-opus-4.6"):
        assert convert_for_profile("openrouter", *body, model=model)["messages"] == body


def test_openrouter_has_a_signature_for_gemini_where_there_is_none() -> None:
    body = [user(), assistant_calls(call(), call("call_2")), result(), result("call_2")]
    (entry,) = convert_for_profile("openrouter", *body, model="google/gemini-3-pro")["messages"][1]["reasoning_details"]
    assert (entry["type"], entry["id"], entry["index"]) == ("reasoning.encrypted", "call_1", 0)
    assert (
        "reasoning_details"
        not in convert_for_profile("openrouter", *body, model="google/gemini-2.5-pro")["messages"][1]
    )
    cross_api = segue.convert({"messages": body}, source="openai-chat", target="kimi").body
    out = segue.convert(
        cross_api, source="kimi", target="openai-chat", profile="openrouter", model="google/gemini-3-pro"
    )
    assert segue.check(out.body, "openai-chat", profile="openrouter")


def test_fireworks_refuses_unknown_keys() -> None:
    made = convert_for_profile(
        "fireworks", user(name="bob"), stream_options={"include_usage": True}, stream=True, top_k=3
    )
    assert made == {"messages": [user()], "stream": True, "top_k": 3}


def test_dropped_keys_are_reported_in_alphabetical_order() -> None:
    keys = dict.fromkeys(("zeta", "alpha", "mu", "beta", "omega", "kappa"), 1)
    converted = segue.convert({**PLAIN, **keys}, source="openai-chat", target="openai-chat", profile="fireworks")
    assert [finding.subject for finding in converted.report.findings] == sorted(keys)


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(segue.InputError, match="expected one of cerebras, fireworks, groq") as caught:
        segue.convert(PLAIN, source="openai-chat", target="openai-chat", profile="acme")
    assert caught.value.path == "profile"
    with pytest.raises(segue.InputError, match="anthropic has no profiles"):
        segue.convert(PLAIN, source="openai-chat", target="anthropic", profile="vllm")


def test_reply_is_converted_back() -> None:
    converted = segue.convert(PLAIN, source="openai-chat", target="openai-chat", profile="vllm")
    reply = {
        "choices": [{"index": 0, "message": assistant_calls(call("chatcmpl-tool-1")), "finish_reason": "tool_calls"}]
    }
    assert converted.reply(reply)["choices"][0]["message"]["tool_calls"][0]["id"] == "chatcmpl-tool-1"


@pytest.mark.parametrize(("model", "kept"), [("google/gemini-2.5-flash", True), ("openai/gpt-5-mini", False)])
def test_openrouter_takes_its_own_long_ids_back(model: str, kept: bool) -> None:
    """OAI-CHAT-01"""
    call_id = "tool_insert_level_with_spaces_3ZiChYzj8xER8HixJe7W"
    body = [user(), assistant_calls(call(call_id)), result(call_id)]
    assert (convert_for_profile("openrouter", *body, model=model)["messages"] == body) is kept
