"""Arguments that are not valid JSON: what `check` refuses, `convert`, `repair` and `Conversation.render` avoid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.wire.registry import SERVERS

CHAT_SERVERS = sorted(name for name, wire in SERVERS.items() if wire.name == "openai-chat")
# APIs on the chat wire, and model names whose own server has rules about arguments.
TARGETS = [
    *(("openai-chat", profile, "some-model") for profile in CHAT_SERVERS),
    *(("openai-chat", profile, "MiniMax-M2") for profile in CHAT_SERVERS),
    ("openai-chat", None, "gpt-4.1"),
    ("openai-chat", None, "MiniMax-M2"),
    ("openai-chat", None, "minimaxai/minimax-m2.5"),
    ("qwen", None, "qwen-plus"),
    ("kimi", None, "kimi-k2-0905-preview"),
    ("deepseek", None, "deepseek-chat"),
    ("mistral", None, "mistral-medium-2508"),
]
BROKEN = ['{"a":', "{path:", "", "  ", "null", "[1", "5", '"text"', "[]", "{'a': 1}", '{"a": NaN}', '{"a": 1}}', "\\"]
REFUSING = [("vllm", "some-model"), ("llama.cpp", "m"), ("ollama", "m"), ("minimax", "m"), (None, "MiniMax-M2")]


def body_with(arguments: str, model: str, content: str | None = None) -> dict[str, Any]:
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "abcdefgh1", "content": "r"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}}
        ],
    }


def render_all(body: dict[str, Any], api: str, profile: str | None, model: str) -> list[dict[str, Any]]:
    """Return the bodies of `convert`, of `repair`, and of a conversation that continues the body."""
    chat = segue.Conversation.from_body(body, source="openai-chat")
    return [
        segue.convert(body, source=api, target=api, profile=profile, model=model).body,
        segue.repair(body, api, profile=profile, model=model).body,
        segue.convert(body, source="openai-chat", target=api, profile=profile, model=model).body,
        chat.render(api, model, profile=profile).body,
    ]


def sent_arguments(body: dict[str, Any]) -> str:
    return next(m for m in body["messages"] if m.get("tool_calls"))["tool_calls"][0]["function"]["arguments"]


def is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@pytest.mark.parametrize(("profile", "model"), REFUSING)
@pytest.mark.parametrize("broken", ['{"a":', "{path:", "[1", "{'a': 1}"])
def test_broken_text_is_wrapped_where_it_is_refused(profile: str | None, model: str, broken: str):
    for body in render_all(body_with(broken, model), "openai-chat", profile, model):
        assert json.loads(sent_arguments(body)) == {"_raw": broken}


def test_broken_text_is_kept_where_it_is_accepted():
    body = body_with('{"a":', "gpt-4.1")
    assert all(sent_arguments(made) == '{"a":' for made in render_all(body, "openai-chat", None, "gpt-4.1"))
    assert segue.repair(body, "openai-chat").body == body


def test_model_of_the_body_decides_too():
    body = body_with("{path:", "MiniMax-M2")
    assert json.loads(sent_arguments(segue.convert(body, target="openai-chat").body)) == {"_raw": "{path:"}
    assert json.loads(sent_arguments(segue.repair(body, "openai-chat").body)) == {"_raw": "{path:"}


@pytest.mark.parametrize("content", [None, []])
def test_null_content_is_replaced_where_it_is_refused(content: Any):
    """COMP-05: also in a conversation that was parsed by the rules of openai-chat."""
    for body in render_all(body_with("{}", "grok-4", content), "openai-chat", "xai", "grok-4"):
        assert body["messages"][1]["content"] == ""
        assert segue.check(body, "openai-chat", profile="xai")


@pytest.mark.parametrize(("api", "profile", "model"), TARGETS)
@pytest.mark.parametrize("broken", BROKEN)
def test_check_accepts_what_is_rendered(api: str, profile: str | None, model: str, broken: str):
    for body in render_all(body_with(broken, model), api, profile, model):
        verdict = segue.check(body, api, model=model, profile=profile)
        assert verdict, str(verdict)


pieces = st.sampled_from(
    ['{"a"', ":", "1", '"x"', "}", "[", "]", ",", "null", "NaN", "{", " ", "\n", "é", '"', "-", "1e9"]
)


@given(target=st.sampled_from(TARGETS), text=st.one_of(st.text(max_size=12), st.lists(pieces, max_size=6).map("".join)))
def test_check_agrees_with_convert_for_any_text(target: tuple[str, str | None, str], text: str):
    api, profile, model = target
    body = body_with(text, model)
    refused = not segue.check(body, api, model=model, profile=profile)
    for made in render_all(body, api, profile, model):
        verdict = segue.check(made, api, model=model, profile=profile)
        assert verdict, str(verdict)
        # Nothing but what is refused is wrapped.
        assert refused or not is_json_object(text) or json.loads(sent_arguments(made)) == json.loads(text)
