"""The dialect `deepseek`: what differs from the plain chat wire."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Thinking
from segue.canonical.request import Options, Reasoning
from segue.wire.anthropic import WIRE as ANTHROPIC
from segue.wire.dialects.deepseek import WIRE as DEEPSEEK
from segue.wire.dialects.kimi import WIRE as KIMI
from segue.wire.dialects.mistral import WIRE as MISTRAL
from segue.wire.openai_chat import WIRE as OPENAI_CHAT
from tests.bodies import chat
from tests.bodies.chat import assistant, call, result, user
from tests.bodies.chat import compatible_calls as assistant_calls
from tests.wire.conversion import convert_body, convert_reply

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
V4 = "deepseek-v4-pro"
body_of = partial(chat.body, model="deepseek-chat")


ON, OFF = {"type": "enabled"}, {"type": "disabled"}
LOOP = (user(), assistant_calls(call()), result(), assistant(), user())

SAME_API = {
    "without thinking": body_of(
        {"role": "system", "content": "s"},
        *LOOP,
        {"role": "system", "content": "later"},
        user("again"),
        assistant("half", prefix=True),
        tools=[TOOL],
        tool_choice="required",
        stop=["a"] * 9,
        response_format={"type": "json_object"},
        logprobs=True,
    ),
    "V4 thinks": body_of(
        user(),
        assistant_calls(call(), reasoning_content="hm", content=None),
        result(),
        assistant(reasoning_content=""),
        user(),
        model=V4,
        thinking=ON,
        reasoning_effort="max",
    ),
    "V4 is told not to": body_of(*LOOP, model=V4, thinking=OFF, tools=[TOOL], tool_choice="required"),
    "V3.2 thinks beside calls": body_of(
        user(),
        assistant_calls(call(), reasoning_content="hm"),
        result(),
        assistant(),
        user(),
        model="deepseek-v3.2",
        thinking=ON,
    ),
    "R1": body_of(user(), assistant(), user(), model="deepseek-r1"),
    "a reply at the end": body_of(user(), assistant()),
    "ids of any kind": body_of(user(), assistant_calls(call("é .")), result("é .")),
    "a list of texts": body_of(user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
}


@pytest.mark.parametrize("case", SAME_API)
def test_valid_body_is_unchanged_for_same_api(case: str) -> None:
    body = SAME_API[case]
    made = segue.convert(body, source="deepseek", target="deepseek").body
    assert json.dumps(made) == json.dumps(body)


@pytest.mark.parametrize(
    ("model", "thinking", "on_calls", "on_words"),
    [
        ("deepseek-chat", None, False, False),
        ("deepseek-chat", ON, True, True),
        ("deepseek-reasoner", None, True, True),
        ("deepseek-reasoner", OFF, True, True),
        (V4, None, True, True),
        (V4, ON, True, True),
        (V4, OFF, False, False),
        ("deepseek-flash", None, True, True),
        ("deepseek-v3.2", None, False, False),
        ("deepseek-v3.2", ON, True, False),
        ("deepseek-v3.1", OFF, False, False),
        ("deepseek-r1", None, False, False),
        ("deepseek-r1-0528", ON, False, False),
    ],
)
@pytest.mark.parametrize("source", [DEEPSEEK, OPENAI_CHAT])
def test_reasoning_by_model_and_mode(model: str, thinking: Any, on_calls: bool, on_words: bool, source: Any) -> None:
    if source is DEEPSEEK:
        body = body_of(*LOOP, model=model, **({} if thinking is None else {"thinking": thinking}))
    else:
        effort = {} if thinking is None else {"reasoning_effort": "high" if thinking == ON else "none"}
        body = {"messages": list(LOOP), **effort}
    made, report = convert_body(body, source, DEEPSEEK, model=model)
    assert (made["messages"][1].get("reasoning_content") == ".") is on_calls
    assert (made["messages"][3].get("reasoning_content") == ".") is on_words
    assert bool(report.findings_of("reasoning")) is (on_calls or on_words)
    assert convert_body(made, DEEPSEEK, DEEPSEEK, model=model)[0] == made


def test_every_turn_gets_what_the_current_one_needs() -> None:
    longer = (*LOOP, assistant_calls(call("call_01_b")), result("call_01_b"), assistant("y"), user("more"))
    short = convert_body({"messages": list(LOOP)}, OPENAI_CHAT, DEEPSEEK, model=V4)[0]["messages"]
    long = convert_body({"messages": list(longer)}, OPENAI_CHAT, DEEPSEEK, model=V4)[0]["messages"]
    assert long[: len(short)] == short
    assert all("reasoning_content" in message for message in long if message["role"] == "assistant")


def test_own_reasoning_is_sent_back_and_other_reasoning_dropped() -> None:
    body = body_of(user(), assistant(reasoning_content="hm"), user(), model=V4)
    assert convert_body(body, DEEPSEEK, DEEPSEEK)[0]["messages"][1]["reasoning_content"] == "hm"
    assert convert_body(body, KIMI, DEEPSEEK, model=V4)[0]["messages"][1]["reasoning_content"] == "."
    converted, _ = convert_body(body, KIMI, DEEPSEEK, model="deepseek-chat", reasoning="text")
    assert converted["messages"][1]["content"] == "[reasoning] hm\na"


def test_r1_refuses_its_own_reasoning() -> None:
    body = body_of(user(), assistant(reasoning_content="hm"), user(), model="deepseek-r1")
    made, report = convert_body(body, DEEPSEEK, DEEPSEEK)
    assert made["messages"][1] == assistant()
    assert report.findings_of("reasoning")


def test_reasoning_under_another_key_is_moved_to_reasoning_content() -> None:
    body = body_of(user(), assistant_calls(call(), reasoning="hm", note=1), result(), model=V4)
    made, _ = convert_body(body, DEEPSEEK, DEEPSEEK)
    assert made["messages"][1]["reasoning_content"] == "hm"
    assert made["messages"][1]["note"] == 1
    assert "reasoning" not in made["messages"][1]


def test_neighbouring_messages_are_merged_for_r1() -> None:
    messages = (user("a"), user("b"), assistant("c"), assistant("d"), user("e"))
    made, _ = convert_body(body_of(*messages, model="deepseek-r1"), DEEPSEEK, DEEPSEEK)
    assert made["messages"] == [user("a\nb"), assistant("c\nd"), user("e")]
    assert convert_body(made, DEEPSEEK, DEEPSEEK, model="deepseek-r1")[0] == made
    made, _ = convert_body(body_of(*messages, model="deepseek-reasoner"), DEEPSEEK, DEEPSEEK)
    assert len(made["messages"]) == 5
    made, _ = convert_body({"messages": list(messages)}, OPENAI_CHAT, DEEPSEEK, model="deepseek-reasoner")
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "user"]
    results = (user(), assistant_calls(call(), call("call_00_b")), result(), result("call_00_b"), user("so"))
    made, _ = convert_body(body_of(*results, model="deepseek-r1"), DEEPSEEK, DEEPSEEK)
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "tool", "tool", "user"]


@pytest.mark.parametrize("model", ["deepseek-r1", "deepseek-reasoner", V4])
def test_final_assistant_message_needs_prefix(model: str) -> None:
    made, _ = convert_body(body_of(user(), assistant(), model=model), DEEPSEEK, DEEPSEEK)
    assert made["messages"][2] == user("Continue.")
    system = {"role": "system", "content": "s"}
    assert convert_body(body_of(user(), system, model=model), DEEPSEEK, DEEPSEEK)[0]["messages"][2] == user("Continue.")
    assert convert_body(body_of(system, model=model), DEEPSEEK, DEEPSEEK)[0]["messages"] == [system, user("Continue.")]
    made, _ = convert_body({"messages": [user(), assistant()]}, OPENAI_CHAT, DEEPSEEK, model="deepseek-chat")
    assert made["messages"][2] == user("Continue.")
    if model == "deepseek-r1":
        return
    marked = body_of(user(), assistant("half", prefix=True, reasoning_content="."), model=model)
    assert convert_body(marked, DEEPSEEK, DEEPSEEK)[0] == marked
    assert convert_body(marked, DEEPSEEK, MISTRAL)[0]["messages"][2] == user("Continue.")


@pytest.mark.parametrize(
    ("model", "thinking", "choice", "expected"),
    [
        ("deepseek-chat", None, "required", ("required", None)),
        ("deepseek-chat", ON, "required", ("required", OFF)),
        (V4, None, "required", ("required", OFF)),
        (V4, None, {"type": "function", "function": {"name": "f"}}, (TOOL, OFF)),
        (V4, None, "auto", ("auto", None)),
        (V4, OFF, "required", ("required", OFF)),
        ("deepseek-reasoner", None, "required", ("auto", None)),
    ],
)
def test_no_tool_is_forced_while_the_model_thinks(model: str, thinking: Any, choice: Any, expected: Any) -> None:
    more = {} if thinking is None else {"thinking": thinking}
    body = body_of(user(), model=model, tools=[TOOL], tool_choice=choice, **more)
    made, report = convert_body(body, DEEPSEEK, DEEPSEEK)
    forced = choice if expected[0] is TOOL else expected[0]
    assert (made["tool_choice"], made.get("thinking")) == (forced, expected[1])
    assert bool(report.findings_of("adjusted")) == (made != body)


def test_no_reasoning_placeholder_where_thinking_is_disabled() -> None:
    body = body_of(*LOOP, model=V4, tools=[TOOL], tool_choice="required")
    made, _ = convert_body(body, DEEPSEEK, DEEPSEEK)
    assert made == {**body, "thinking": OFF}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"thinking": ON, "reasoning_effort": "max"}, Reasoning(enabled=True, effort="max")),
        ({"thinking": OFF}, Reasoning(enabled=False)),
        ({"reasoning_effort": "low"}, Reasoning(effort="low")),
    ],
)
def test_thinking_is_read(body: dict, expected: Reasoning | None) -> None:
    assert DEEPSEEK.parse_request(body_of(user(), **body)).options == Options(reasoning=expected)


@pytest.mark.parametrize(
    ("effort", "model", "expected"),
    [
        ("high", V4, (ON, "high")),
        ("xhigh", V4, (ON, "xhigh")),
        ("none", V4, (OFF, None)),
        ("high", "deepseek-reasoner", (None, None)),
        ("none", "deepseek-reasoner", (None, None)),
        ("low", None, (ON, "low")),
    ],
)
def test_thinking_option_is_rendered(effort: str, model: str | None, expected: Any) -> None:
    made, report = convert_body({"messages": [user()], "reasoning_effort": effort}, OPENAI_CHAT, DEEPSEEK, model=model)
    assert (made.get("thinking"), made.get("reasoning_effort")) == expected
    assert bool(report.findings_of("adjusted")) == ((effort, model) == ("none", "deepseek-reasoner"))


def test_a_budget_becomes_an_effort() -> None:
    body = {"messages": [user()], "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}}
    made, _ = convert_body(body, ANTHROPIC, DEEPSEEK, model=V4)
    assert (made["thinking"], made["reasoning_effort"]) == (ON, "medium")


def test_cross_api_content_is_one_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    parts = [{"type": "text", "text": "a"}, picture]
    body = {
        "messages": [
            user(parts),
            assistant_calls(call()),
            result(content=[*parts[:1], {"type": "text", "text": "b"}]),
            user(),
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
    }
    made, report = convert_body(body, OPENAI_CHAT, DEEPSEEK)
    assert made["messages"][1]["content"] == "a\n[image not supported here] https://x/y.png"
    assert made["messages"][3]["content"] == "a\nb"
    assert made["response_format"] == {"type": "json_object"}
    assert {"response_format"} == {finding.subject for finding in report.findings_of("adjusted")}


def test_same_api_text_keeps_reasoning_where_calls_do() -> None:
    body = body_of(user(), assistant(), user(), assistant_calls(call()), result(), assistant("y"), user(), model=V4)
    made, _ = convert_body(body, DEEPSEEK, DEEPSEEK)
    assert ["reasoning_content" in message for message in made["messages"]] == [0, 0, 0, 1, 0, 1, 0]


def test_only_function_tools_and_no_empty_list() -> None:
    assert "tools" not in convert_body(body_of(user(), tools=[]), DEEPSEEK, DEEPSEEK)[0]
    made, report = convert_body(body_of(user(), tools=[TOOL, {"type": "web_search"}]), DEEPSEEK, DEEPSEEK)
    assert made["tools"] == [TOOL]
    assert report.findings_of("tools")


def test_developer_message_becomes_system() -> None:
    body = body_of({"role": "developer", "content": "s", "x": 1}, user())
    assert convert_body(body, DEEPSEEK, DEEPSEEK)[0]["messages"][0] == {"role": "system", "content": "s", "x": 1}


def test_a_reply() -> None:
    message = assistant_calls(call(), reasoning_content="hm")
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage: dict[str, Any] = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_cache_hit_tokens": 4,
    }
    usage["prompt_tokens_details"] = {"cached_tokens": 4}
    body = {"id": "c", "model": V4, "choices": [choice], "usage": usage}
    reply = DEEPSEEK.parse_reply(body)
    assert isinstance(reply.blocks[0], Thinking)
    assert (reply.thinking, reply.finish) == ("hm", "tool_calls")
    assert reply.usage is not None
    assert reply.usage.cache_read == 4
    assert convert_reply(body, DEEPSEEK, DEEPSEEK)[0] is body
    cut = {**body, "choices": [{**choice, "message": assistant(), "finish_reason": "insufficient_system_resource"}]}
    assert DEEPSEEK.parse_reply(cut).finish == "error"


def test_body_is_detected_by_model() -> None:
    assert segue.convert(body_of(*LOOP, model=V4), target="openai-chat").source == "deepseek"
