"""The dialect `kimi`: what differs from the plain chat wire."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Thinking, responses_of
from segue.canonical.request import Options, Reasoning, Reply, ToolChoice
from segue.wire.dialects.kimi import WIRE as KIMI
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.bodies import chat
from tests.bodies.chat import call, result, user
from tests.bodies.chat import compatible_calls as assistant_calls
from tests.wire.conversion import convert_body, convert_reply, render_client_reply

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
A = "functions.f:0"
body_of = partial(chat.body, model="kimi-k2-0905-preview")


SAME_API = {
    "K2": body_of(
        {"role": "system", "content": "s"},
        user(),
        assistant_calls(call(A), call("functions.list:1", "list")),
        result("functions.list:1"),
        result(A, name="f", content=""),
        user(
            [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
        ),
        {"role": "assistant", "content": "half", "partial": True},
        max_tokens=5,
        temperature=0.6,
        tools=[TOOL],
        tool_choice="auto",
        response_format={"type": "json_object"},
    ),
    "short ids": body_of(user(), assistant_calls(call("f:0")), result("f:0")),
    "thinking": body_of(
        user(),
        assistant_calls(call(A), reasoning_content="hm"),
        result(A),
        assistant_calls(call("functions.f:1"), reasoning_content=""),
        result("functions.f:1"),
        model="kimi-k2.5",
        thinking={"type": "enabled", "keep": "all"},
    ),
    "no thinking": body_of(
        user(), assistant_calls(call(A)), result(A), model="kimi-k2.5", thinking={"type": "disabled"}
    ),
    "K3": body_of(
        user(),
        assistant_calls(call("x"), call("y"), reasoning_content="a"),
        result("x"),
        result("y", name="f"),
        model="kimi-k3",
    ),
    "built-in tools": body_of(user(), tools=[{"type": "builtin_function", "function": {"name": "$web_search"}}]),
    "an empty user": body_of(user("")),
}


@pytest.mark.parametrize("case", SAME_API)
def test_valid_body_is_unchanged_for_same_api(case: str) -> None:
    body = SAME_API[case]
    made, _ = convert_body(body, KIMI, KIMI)
    assert json.dumps(made) == json.dumps(body)
    assert made["messages"] is body["messages"]


def test_a_built_in_call_keeps_its_name() -> None:
    entry = {"id": "t:0", "type": "builtin_function", "function": {"name": "$web_search", "arguments": "{}"}}
    made, _ = convert_body(body_of(user(), assistant_calls(entry), result("t:0")), KIMI, KIMI)
    assert made["messages"][1]["tool_calls"][0]["function"]["name"] == "$web_search"


def test_cross_api_ids_and_names() -> None:
    body = {
        "model": "gpt-4.1",
        "messages": [
            user(),
            assistant_calls(call("call_a"), call("call_b", "ns.list")),
            result("call_b"),
            result("call_a"),
            {"role": "system", "content": "later"},
        ],
        "tools": [TOOL, {"type": "custom", "custom": {"name": "patch"}}],
        "max_completion_tokens": 9,
        "temperature": 1.5,
    }
    made, report = convert_body(body, OPENAI_CHAT, KIMI)
    call_message, first, second, later = made["messages"][1:]
    spelled = call_message["tool_calls"][1]["function"]["name"]
    assert [entry["id"] for entry in call_message["tool_calls"]] == ["functions.f:0", f"functions.{spelled}:1"]
    assert first == {"role": "tool", "tool_call_id": "functions.f:0", "content": "r", "name": "f"}
    assert second["name"] == spelled
    assert later == user("[system] later")
    assert [tool["type"] for tool in made["tools"]] == ["function", "function"]
    assert (made["max_tokens"], made["temperature"]) == (9, 1)
    assert "model" not in made
    assert "temperature" in {finding.subject for finding in report.findings_of("adjusted")}


def test_every_call_carries_reasoning_while_the_model_thinks() -> None:
    body = {
        "messages": [user(), assistant_calls(call("call_a")), result("call_a"), {"role": "assistant", "content": "x"}]
    }
    made, _ = convert_body(body, OPENAI_CHAT, KIMI, model="kimi-k2-thinking")
    assert made["messages"][1]["reasoning_content"] == "."
    assert "reasoning_content" not in made["messages"][3]
    made, _ = convert_body(body, OPENAI_CHAT, KIMI)
    assert "reasoning_content" not in made["messages"][1]


def test_reasoning_under_another_key_is_moved_to_reasoning_content() -> None:
    body = body_of(user(), assistant_calls(call(A), reasoning="hm", note=1), result(A), model="kimi-k2.5")
    request = KIMI.parse_request(body)
    assert isinstance(request.messages[1].blocks[0], Thinking)
    made, _ = convert_body(body, KIMI, KIMI)
    assert made["messages"][1]["reasoning_content"] == "hm"
    assert made["messages"][1]["note"] == 1
    assert "reasoning" not in made["messages"][1]


def test_empty_texts_and_messages_are_left_out() -> None:
    body = body_of(
        user(),
        assistant_calls(call(A), content=[{"type": "text", "text": ""}]),
        result(A),
        {"role": "assistant", "content": ""},
    )
    made, _ = convert_body(body, KIMI, KIMI)
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "tool"]
    assert made["messages"][1]["content"] is None


def test_k3_pairs_by_order() -> None:
    body = body_of(
        user(),
        assistant_calls(call("a"), call("b", "list"), reasoning_content="."),
        result("x"),
        result("y"),
        model="kimi-k3",
    )
    request = KIMI.parse_request(body)
    assert [responses_of(message)[0].name for message in request.messages[2:]] == ["f", "list"]
    made, _ = convert_body(body, KIMI, KIMI)
    assert [message["tool_call_id"] for message in made["messages"][2:]] == ["a", "b"]


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ({"type": "enabled"}, Options(reasoning=Reasoning(enabled=True))),
        ({"type": "disabled"}, Options(reasoning=Reasoning(enabled=False))),
        ({"type": "sometimes"}, Options()),
        (None, Options()),
    ],
)
def test_thinking_is_read(thinking: Any, expected: Options) -> None:
    assert KIMI.parse_request(body_of(user(), thinking=thinking)).options == expected


@pytest.mark.parametrize(
    ("effort", "model", "expected"),
    [
        ("high", "kimi-k2.5", {"type": "enabled"}),
        ("none", "kimi-k2.5", {"type": "disabled"}),
        ("high", "kimi-k2-0905-preview", None),
        ("none", "kimi-k2-0905-preview", None),
        ("high", None, None),
        ("none", None, None),
    ],
)
def test_thinking_option_is_rendered(effort: str, model: str | None, expected: Any) -> None:
    made, report = convert_body({"messages": [user()], "reasoning_effort": effort}, OPENAI_CHAT, KIMI, model=model)
    assert made.get("thinking") == expected
    assert "reasoning_effort" not in made
    assert bool(report.findings_of("adjusted")) == (effort == "high")


def test_no_tool_is_forced_while_the_model_thinks() -> None:
    body = {"messages": [user()], "tools": [TOOL], "tool_choice": "required"}
    assert convert_body(body, OPENAI_CHAT, KIMI, model="kimi-k2.5")[0]["tool_choice"] == "auto"
    assert convert_body(body, OPENAI_CHAT, KIMI)[0]["tool_choice"] == "required"
    off = {**body, "reasoning_effort": "none"}
    assert convert_body(off, OPENAI_CHAT, KIMI, model="kimi-k2.5")[0]["tool_choice"] == "required"
    assert KIMI.parse_request(body).options.tool_choice == ToolChoice("required")


def test_a_reply() -> None:
    message = assistant_calls(call("f:0"), reasoning_content="hm")
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cached_tokens": 1}
    body = {
        "id": "c",
        "model": "kimi-k2.5",
        "choices": [{"message": message, "finish_reason": "tool_calls", "usage": usage}],
    }
    reply = KIMI.parse_reply(body)
    assert reply.thinking == "hm"
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.cache_read) == (1, 1)
    assert reply.calls[0].origin.raw_id == "f:0"
    assert convert_reply(body, KIMI, KIMI)[0] is body
    made, _ = render_client_reply(Reply((Thinking("hm"),)), KIMI)
    assert made["choices"][0]["message"] == {"role": "assistant", "content": "", "reasoning_content": "hm"}


@pytest.mark.parametrize("source", ["qwen", "openai-chat"])
def test_videos_are_sent_to_models_that_support_them(source: str) -> None:
    part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}
    body = {"messages": [{"role": "user", "content": [part, {"type": "text", "text": "what is it?"}]}]}
    for model in (None, "kimi-k2.5", "kimi-k3"):
        made = segue.convert(body, source=source, target="kimi", model=model)
        assert made.body["messages"] == body["messages"]
        assert not made.report.findings_of("text", "dropped")
    older = segue.convert(body, source=source, target="kimi", model="moonshot-v1-8k-vision-preview")
    assert older.body["messages"][0]["content"][0]["text"].startswith("[video not supported here]")
    assert [finding.subject for finding in older.report.findings_of("text")] == ["video"]
