"""The dialect `qwen`: what differs from the plain chat wire."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

import segue
from segue.canonical.blocks import responses_of
from segue.canonical.request import Options, Reasoning
from segue.models import parse_model
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.dialects.deepseek import WIRE as DEEPSEEK
from segue.wire.dialects.kimi import WIRE as KIMI
from segue.wire.dialects.qwen import WIRE as QWEN
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.bodies import chat
from tests.bodies.chat import assistant, call, result, user
from tests.bodies.chat import compatible_calls as assistant_calls
from tests.wire.conversion import convert_body, convert_reply

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
body_of = partial(chat.body, model="qwen-plus")


SAME_API = {
    "a loop": body_of(
        {"role": "system", "content": "s"},
        user(),
        assistant_calls(call(arguments='{"a": 1}'), call("call_2", "list")),
        result("call_2"),
        result(),
        user(),
        assistant("half", partial=True),
        tools=[TOOL],
        tool_choice="auto",
        parallel_tool_calls=True,
        enable_search=True,
        top_k=20,
        temperature=0.7,
    ),
    "thinking": body_of(
        user(),
        assistant_calls(call(), reasoning_content="hm"),
        result(),
        assistant(reasoning_content="so"),
        user(),
        model="qwen3.6-plus",
        enable_thinking=True,
        thinking_budget=1000,
        preserve_thinking=True,
    ),
    "a reply first, and last": body_of(assistant(), user(), assistant("b")),
    "pictures": body_of(
        user(
            [
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
                {"type": "video_url", "video_url": {"url": "https://x/y.mp4"}},
                {"type": "text", "text": "?"},
            ]
        ),
        model="qwen3-vl-plus",
    ),
}


@pytest.mark.parametrize("case", SAME_API)
def test_valid_body_is_unchanged_for_same_api(case: str) -> None:
    body = SAME_API[case]
    made, _ = convert_body(body, QWEN, QWEN)
    assert json.dumps(made) == json.dumps(body)
    assert made["messages"] is body["messages"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ('{"a":', {"_raw": '{"a":'}),
        ("3", {"value": 3}),
        ('["x"]', {"value": ["x"]}),
        ({"a": 1}, {"a": 1}),
        (None, {}),
        ("null", {"value": None}),
    ],
)
@pytest.mark.parametrize("source", [QWEN, OPENAI_CHAT])
def test_arguments_are_an_object(arguments: Any, expected: Any, source: Any) -> None:
    body = {"messages": [user(), assistant_calls(call(arguments=arguments)), result()]}
    made, report = convert_body(body, source, QWEN)
    text = made["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(text) == expected
    assert bool(report.findings_of("argument")) == (set(expected) in ({"_raw"}, {"value"}))
    assert convert_body(made, QWEN, QWEN)[0] == made


def test_user_message_is_required() -> None:
    system = {"role": "system", "content": "s"}
    made, _ = convert_body(body_of(system), QWEN, QWEN)
    assert made["messages"] == [system, user("Continue.")]
    loop = (assistant_calls(call()), result())
    made, _ = convert_body(body_of(system, *loop), QWEN, QWEN)
    assert made["messages"] == [system, *loop, user("Continue.")]
    assert convert_body(body_of(system, *loop, user("and?")), QWEN, QWEN)[0]["messages"][:3] == made["messages"][:3]
    made, _ = convert_body({"messages": [system, *loop]}, OPENAI_CHAT, QWEN)
    assert made["messages"][1] == user("[continued]")


def test_cross_api_ids_and_names() -> None:
    body = {
        "messages": [
            user(),
            assistant_calls(call("call_1"), call("call_2", "ns.list")),
            result("call_2"),
            result("call_1"),
        ],
        "tools": [TOOL, {"type": "custom", "custom": {"name": "patch"}}],
        "temperature": 2,
        "user": "u",
    }
    made, report = convert_body(body, OPENAI_CHAT, QWEN)
    call_message, first, second = made["messages"][1:]
    assert [entry["id"] for entry in call_message["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert all(entry["id"].startswith("call_") for entry in call_message["tool_calls"])
    assert "." not in call_message["tool_calls"][1]["function"]["name"]
    assert made["temperature"] < 2
    assert {"temperature", "user"} == {finding.subject for finding in report.findings_of("adjusted")}
    assert "name" not in first


def test_final_reply_is_followed_by_a_user_message_cross_api() -> None:
    made, _ = convert_body({"messages": [user(), assistant()]}, OPENAI_CHAT, QWEN)
    assert made["messages"][2] == user("Continue.")
    partial = body_of(user(), assistant("half", partial=True))
    assert "partial" not in json.dumps(convert_body(partial, QWEN, DEEPSEEK)[0])


def test_own_reasoning_is_sent_back_and_other_reasoning_dropped() -> None:
    body = body_of(user(), assistant_calls(call(), reasoning_content="hm"), result())
    assert convert_body(body, QWEN, QWEN, model="qwen3-32b")[0]["messages"][1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in convert_body(body, KIMI, QWEN)[0]["messages"][1]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"enable_thinking": True, "thinking_budget": 9}, Reasoning(enabled=True, budget=9)),
        ({"enable_thinking": False}, Reasoning(enabled=False)),
        ({"thinking_budget": 9}, Reasoning(budget=9)),
        ({"enable_thinking": None}, None),
    ],
)
def test_thinking_is_read(body: dict, expected: Reasoning | None) -> None:
    whole = body_of(user(), **body)
    assert QWEN.parse_request(whole).options == Options(reasoning=expected)
    assert convert_body(whole, QWEN, QWEN)[0] == whole


@pytest.mark.parametrize(
    ("effort", "model", "expected"),
    [
        ("high", "qwen-plus", {"enable_thinking": True, "thinking_budget": 16384}),
        ("max", "qwen-plus", {"enable_thinking": True}),
        ("none", "qwen-plus", {"enable_thinking": False}),
        ("high", None, {"enable_thinking": True, "thinking_budget": 16384}),
        ("high", "qwq-plus", {}),
        ("none", "qwen3-235b-a22b-thinking-2507", {}),
        ("high", "qwen3-coder-plus", {}),
        ("high", "qwen2.5-72b-instruct", {}),
        ("high", "qwen-max", {}),
        ("none", "qwen-max", {}),
    ],
)
def test_thinking_option_is_rendered(effort: str, model: str | None, expected: dict) -> None:
    made, report = convert_body({"messages": [user()], "reasoning_effort": effort}, OPENAI_CHAT, QWEN, model=model)
    assert {key: made[key] for key in made if "think" in key} == expected
    silent = bool(expected) and effort != "max"
    silent = silent or (effort, model) in (("high", "qwq-plus"), ("none", "qwen-max"))
    assert bool(report.findings_of("adjusted")) is not silent


def test_thinking_budget_is_kept() -> None:
    body = {"messages": [user()], "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}}
    made, _ = convert_body(body, ANTHROPIC, QWEN)
    assert (made["enable_thinking"], made["thinking_budget"]) == (True, 4000)


# The only tool there is: see `required_choice`.
CHOSEN = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("model", "more", "expected"),
    [
        ("qwen3.5-plus", {"tool_choice": "required"}, (CHOSEN, False, False)),
        ("qwen-plus", {"tool_choice": "required"}, (CHOSEN, None, False)),
        ("qwq-plus", {"tool_choice": "required"}, ("auto", None, False)),
        ("qwen3.5-plus", {"response_format": {"type": "json_object"}}, (None, False, True)),
        ("qwq-plus", {"response_format": {"type": "json_object"}}, (None, None, False)),
        ("qwen3-32b", {}, (None, False, False)),
        ("qwen3-32b", {"stream": True}, (None, None, False)),
        ("qwen3.5-plus", {}, (None, None, False)),
    ],
)
def test_options_incompatible_with_thinking(model: str, more: dict, expected: Any) -> None:
    body = {"messages": [user()], "tools": [TOOL], **more}
    made, report = convert_body(body, OPENAI_CHAT, QWEN, model=model)
    assert (made.get("tool_choice"), made.get("enable_thinking"), "response_format" in made) == expected
    changed = expected[0] == CHOSEN or expected[1] is False or model == "qwq-plus"
    assert bool(report.findings_of("adjusted")) is changed


def test_pictures_for_models_that_see() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    for model, seen in (("qwen-plus", False), ("qwen3-vl-plus", True), ("qwen3.5-plus", True), ("qwen-vl-max", True)):
        made, _ = convert_body({"messages": [user([picture])]}, OPENAI_CHAT, QWEN, model=model)
        assert ("image_url" in json.dumps(made)) is seen


def test_results_are_paired_by_id() -> None:
    request = QWEN.parse_request(SAME_API["a loop"])
    assert [responses_of(message)[0].name for message in request.messages[3:5]] == ["list", "f"]
    assert not QWEN.constraints(parse_model("qwen-plus")).pairs_by_position


def test_a_reply() -> None:
    choice = {"message": assistant_calls(call(), reasoning_content="hm"), "finish_reason": "tool_calls", "index": 0}
    body = {"id": "c", "model": "qwen-plus", "choices": [choice]}
    reply = QWEN.parse_reply(body)
    assert (reply.thinking, reply.finish, reply.calls[0].origin.raw_id) == ("hm", "tool_calls", "call_1")
    assert convert_reply(body, QWEN, QWEN)[0] is body


def test_an_error() -> None:
    body = {"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_parameter_error"}}
    error = QWEN.parse_error(400, body)
    assert (error.message, error.code) == ("no", "invalid_parameter_error")
    assert QWEN.render_error(error)["error"]["message"] == "no"


def test_body_is_detected_by_model() -> None:
    assert segue.convert(body_of(user(), enable_thinking=True), target="openai-chat").source == "qwen"
