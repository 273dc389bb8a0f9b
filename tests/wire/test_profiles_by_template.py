"""Servers that run the model's own chat template get bodies that the template accepts (TPL-02, 04, 12, 13, 15, 16).

`tests/templates` checks the same with the templates themselves.
"""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.json import encode_json
from segue.conversion import sessions
from segue.wire.registry import WIRES
from tests.bodies.chat import assistant, call, result, user
from tests.bodies.chat import compatible_calls as assistant_calls
from tests.properties.whole import compare
from tests.wire.test_profiles import TOOL, convert_for_profile

SYSTEM = {"role": "system", "content": "s"}
TWO = (user(), assistant_calls(call(), call("call_2"), content="hm"), result(), result("call_2"))
TEMPLATE_SERVERS = ("llama.cpp", "vllm")


@pytest.mark.parametrize("profile", TEMPLATE_SERVERS)
@pytest.mark.parametrize("model", ["openai/gpt-oss-120b", "Llama-3.3-70B-Instruct", "llama3.1"])
def test_calls_one_by_one(profile: str, model: str) -> None:
    made = convert_for_profile(profile, *TWO, model=model)["messages"]
    calls = [message["tool_calls"] for message in made if "tool_calls" in message]
    assert [[one["id"] for one in listed] for listed in calls] == [["call_1"], ["call_2"]]
    assert [message.get("tool_call_id") for message in made if message["role"] == "tool"] == ["call_1", "call_2"]
    order = [message["role"] for message in made if message.get("content") != "hm" or "tool_calls" in message]
    assert order == ["user", "assistant", "tool", "assistant", "tool"]
    assert sum(message.get("content") == "hm" for message in made) == 1


@pytest.mark.parametrize(
    ("profile", "model"), [("llama.cpp", "qwen3-8b"), ("vllm", "Llama-4-Scout"), ("groq", "gpt-oss-20b")]
)
def test_calls_together(profile: str, model: str) -> None:
    assert len(convert_for_profile(profile, *TWO, model=model)["messages"]) == 4


def test_gpt_oss_has_reasoning_beside_calls_and_text_before_them() -> None:
    thought = assistant_calls(call(), content="hm", reasoning_content="why")
    made = convert_for_profile("llama.cpp", user(), thought, result(), model="gpt-oss-120b")["messages"]
    assert made[1:3] == [assistant("hm"), assistant_calls(call(), reasoning_content="why")]
    silent = convert_for_profile(
        "llama.cpp", user(), assistant_calls(call(), reasoning_content="why"), result(), model="gpt-oss-120b"
    )
    assert silent["messages"][1] == assistant_calls(call(), reasoning_content="why")


@pytest.mark.parametrize("profile", [*TEMPLATE_SERVERS, "ollama"])
def test_results_in_the_order_of_their_calls(profile: str) -> None:
    made = convert_for_profile(
        profile, user(), assistant_calls(call(), call("call_2")), result("call_2", "b"), result("call_1", "a")
    )
    assert [message["content"] for message in made["messages"][2:]] == ["a", "b"]


@pytest.mark.parametrize("profile", TEMPLATE_SERVERS)
def test_mistrals_turns(profile: str) -> None:
    call_message = assistant_calls(call("abcdefgh1"))
    made = convert_for_profile(
        profile,
        SYSTEM,
        assistant(),
        user(),
        user(),
        call_message,
        result("abcdefgh1"),
        SYSTEM,
        user(),
        model="mistral-small-3.2",
    )
    roles = [
        message["role"] for message in made["messages"] if message["role"] != "tool" and "tool_calls" not in message
    ]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


@pytest.mark.parametrize("profile", TEMPLATE_SERVERS)
def test_qwen_needs_a_user_message_and_no_later_system_text(profile: str) -> None:
    made = convert_for_profile(profile, SYSTEM, assistant_calls(call()), result(), SYSTEM, model="Qwen3.5-4B")[
        "messages"
    ]
    assert [message["role"] for message in made] == ["system", "assistant", "tool", "user"]
    older = convert_for_profile(profile, SYSTEM, assistant_calls(call()), result(), SYSTEM, model="Qwen3-8B")[
        "messages"
    ]
    assert [message["role"] for message in older] == ["system", "assistant", "tool", "system"]


@pytest.mark.parametrize("source", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("model", ["gpt-oss-120b", "Llama-3.1-8B", "mistral-small-3.2", "Qwen3.5-4B", "GLM-4.6"])
@pytest.mark.parametrize("profile", [*TEMPLATE_SERVERS, "ollama"])
def test_a_longer_conversation_gives_the_same_body(profile: str, model: str, source: str) -> None:
    turns: list[dict[str, Any]] = []
    for number in range(6):
        ids = [f"call_{number}{letter}" for letter in "abc"]
        turns += [
            user(),
            assistant_calls(*map(call, ids), content="hm" if number % 2 else ""),
            *map(result, ids),
            assistant(),
        ]
    body: Any = {"messages": [SYSTEM, *turns, user()], "tools": [TOOL]}
    if source != "openai-chat":
        body = segue.convert(body, source="openai-chat", target=source).body
    sessions.clear()
    key = WIRES[source].conversation_key
    ends = [index + 1 for index, item in enumerate(body[key]) if item["role"] == "user"]
    for end in ends:
        data = encode_json({**body, key: body[key][:end]})
        compare(data, source=source, target="openai-chat", profile=profile, model=model)


@pytest.mark.parametrize("profile", [*TEMPLATE_SERVERS, "ollama"])
@pytest.mark.parametrize("model", ["openai/gpt-oss-120b", "Llama-3.1-8B"])
def test_calls_are_split_for_models_with_one_call_per_message(profile: str, model: str) -> None:
    """TPL-02, TPL-12; TPL-13: gpt-oss fails on null content."""
    made = convert_for_profile(
        profile, user(), assistant_calls(call(), call("call_2"), content=None), result(), result("call_2"), model=model
    )
    assert [len(message.get("tool_calls", ())) for message in made["messages"]] == [0, 1, 0, 1, 0]
    contents = {message["content"] for message in made["messages"] if "tool_calls" in message}
    assert contents == {"" if "gpt-oss" in model or profile == "llama.cpp" else None}


@pytest.mark.parametrize("profile", TEMPLATE_SERVERS)
@pytest.mark.parametrize("source", ["openai-chat", "anthropic"])
def test_gemma_2_has_no_system_text(profile: str, source: str) -> None:
    """TPL-11: the template fails with «System role not supported»."""
    body: dict[str, Any] = {"messages": [SYSTEM, user(), assistant(), SYSTEM, user()]}
    if source == "anthropic":
        body = segue.convert(body, source="openai-chat", target=source).body
    for model in ("google/gemma-2-9b-it", "gemma-2-27b-it"):
        out = segue.convert(body, source=source, target="openai-chat", profile=profile, model=model)
        assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "user"]
        assert SYSTEM["content"] in str(out.body["messages"][0]["content"])
        assert out.report.findings_of("text")
    newer = segue.convert(body, source=source, target="openai-chat", profile=profile, model="gemma-3-27b-it")
    assert newer.body["messages"][0]["role"] == "system"
