"""The profile `deepseek-responses`: outputs directly follow the calls of their turn, in call order (DS-11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue

API, PROFILE, MODEL = "openai-responses", "deepseek-responses", "deepseek-flash"
TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]


def call(name: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}


def output(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": name}


def thought(text: str = "hm") -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


USER = {"role": "user", "content": "go"}
HOOK = {"type": "message", "role": "developer", "content": "noted"}
SAID = {"role": "assistant", "content": "Let me see."}


def body(*items: dict[str, Any]) -> dict[str, Any]:
    return {"model": MODEL, "store": False, "input": [USER, *items], "tools": TOOLS}


VALID = {
    "one": [call("a"), output("a")],
    "two": [call("a"), call("b"), output("a"), output("b")],
    "one after the other": [call("a"), output("a"), call("b"), output("b")],
    "reasoning and text first": [thought(), SAID, call("a"), output("a"), thought(), SAID],
}
INVALID = {
    "developer message between": ([call("a"), HOOK, output("a")], [call("a"), output("a"), HOOK]),
    "user message between": ([call("a"), USER, output("a")], [call("a"), output("a"), USER]),
    "reasoning between": ([call("a"), thought(), output("a")], [thought(), call("a"), output("a")]),
    "text after the call": ([call("a"), SAID, output("a")], [SAID, call("a"), output("a")]),
    "text between calls": (
        [call("a"), SAID, call("b"), output("a"), output("b")],
        [SAID, call("a"), call("b"), output("a"), output("b")],
    ),
    "other order": ([call("a"), call("b"), output("b"), output("a")], [call("a"), call("b"), output("a"), output("b")]),
    "outputs far away": (
        [call("a"), HOOK, call("b"), output("b"), output("a")],
        [call("a"), output("a"), HOOK, call("b"), output("b")],
    ),
}


@pytest.mark.parametrize("items", VALID.values(), ids=VALID)
def test_valid_body_is_not_changed(items: list[dict[str, Any]]):
    assert segue.check(body(*items), API, profile=PROFILE)
    repaired = segue.repair(body(*items), API, profile=PROFILE)
    assert repaired.body == body(*items)
    assert not repaired.report.findings


@pytest.mark.parametrize(("items", "expected"), INVALID.values(), ids=INVALID)
def test_outputs_move_to_their_calls(items: list[dict[str, Any]], expected: list[dict[str, Any]]):
    verdict = segue.check(body(*items), API, profile=PROFILE)
    assert {violation.rule for violation in verdict if violation.severity == "reject"} == {"DS-11"}
    if thought() not in items:
        own = {**body(*items), "model": "gpt-5.6-terra"}
        assert segue.check(own, API), "OpenAI's own service accepts it"
        assert segue.repair(own, API).body == own
    for made in (
        segue.convert(body(*items), target=API, profile=PROFILE),
        segue.convert(body(*items), source=API, target=PROFILE),
        segue.repair(body(*items), API, profile=PROFILE),
        # The name of the model is enough.
        segue.repair(body(*items), API),
    ):
        assert made.body["input"] == [USER, *expected]
        assert segue.check(made.body, API, profile=PROFILE)
        assert made.report.findings


def test_conversation_renders_for_the_profile():
    chat = segue.Conversation.from_body(body(call("a"), SAID, HOOK, output("a")), source=API)
    made = chat.render(API, MODEL, profile=PROFILE)
    name = made.body["input"][2]["call_id"]
    assert made.body["input"] == [USER, SAID, call(name), {**output(name), "output": "a"}, HOOK]
    assert segue.check(made.body, API, profile=PROFILE)


def test_reasoning_is_plain_text_of_the_same_provider():
    """Reasoning of DeepSeek's Chat API goes to its Responses API and back; that of OpenAI does not."""
    chat_call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = {
        "messages": [
            USER,
            {"role": "assistant", "content": "", "reasoning_content": "because", "tool_calls": [chat_call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        ]
    }
    made = segue.convert(chat, source="deepseek", target=API, profile=PROFILE, model=MODEL)
    assert made.body["input"][1] == thought("because")
    assert segue.check(made.body, API, profile=PROFILE)
    conversation = segue.Conversation()
    conversation.add_user("go")
    conversation.render(API, "gpt-5.6-terra")
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    conversation.add_reply({"id": "r", "model": "gpt-5.6-terra", "output": [sealed, call("a")]}, source=API)
    conversation.add_result("a", "x")
    assert "gAAA" in json.dumps(conversation.render(API, "gpt-5.6-terra").body)
    rendered = conversation.render(API, MODEL, profile=PROFILE)
    assert "gAAA" not in json.dumps(rendered.body)
    assert rendered.report.findings_of("reasoning")


@pytest.mark.parametrize(
    ("api", "profile", "message"),
    [
        ("openai-chat", PROFILE, "deepseek-responses is a profile of openai-responses, not of openai-chat"),
        (API, "vllm", "vllm is a profile of openai-chat, not of openai-responses"),
        (API, "deepseek-response", "did you mean 'deepseek-responses'"),
        ("anthropic", PROFILE, "anthropic has no profiles; only openai-chat and openai-responses have"),
    ],
)
def test_profile_belongs_to_one_api(api: str, profile: Any, message: str):
    with pytest.raises(segue.InputError, match=message):
        segue.check({"messages": []}, api, profile=profile)


def test_large_body_is_repaired_too():
    """A body whose order is refused is not sent as it is."""
    turns = [
        item for n in range(200) for item in (call(f"a{n}"), call(f"b{n}"), output(f"b{n}"), output(f"a{n}"), SAID)
    ]
    made = segue.convert(json.dumps(body(*turns)).encode(), target=API, profile=PROFILE)
    assert segue.check(made.body, API, profile=PROFILE)


items = st.sampled_from([USER, HOOK, SAID, thought()])


@given(
    st.permutations([call("a"), call("b"), call("c"), output("a"), output("b"), output("c")]),
    st.lists(items),
    st.data(),
)
def test_check_agrees_with_convert_for_any_order(paired: list[Any], others: list[Any], data: st.DataObject):
    for item in others:
        paired.insert(data.draw(st.integers(0, len(paired))), item)
    made = segue.convert(body(*paired), target=API, profile=PROFILE)
    verdict = segue.check(made.body, API, profile=PROFILE)
    assert verdict, str(verdict)
    assert sorted(map(json.dumps, made.body["input"])) == sorted(map(json.dumps, [USER, *paired]))


REPLY = {
    "id": "0c9f0a5e-6e1b-4b0a-9f0e-1d0c5f2a7b11",
    "object": "response",
    "status": "completed",
    "model": MODEL,
    "output": [
        {**thought(), "id": "1dfb7474-dbd9-4b8d-a852-ebe49345dd32", "status": "completed"},
        {**call("a"), "id": "8fc1af85-3010-42b2-bcb8-1a6d5003ad3b", "status": "completed"},
        {
            "type": "message",
            "id": "8050c022-c55f-4377-b009-1d6341eacc57",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
    ],
}


@pytest.mark.parametrize("positions", [(0, 1), (0, 2)])
def test_its_own_reply_goes_back_as_it_came(positions: tuple[int, int]):
    """OAI-RESP-02, OAI-RESP-03: ids without a prefix are those of DeepSeek."""
    items = [REPLY["output"][position] for position in positions]
    given = body(*items, *([output("a")] if items[1]["type"] == "function_call" else []), USER)
    assert segue.check(given, API, profile=PROFILE)
    assert segue.convert(given, source=API, target=API, profile=PROFILE).body == given
    prefixed = segue.check({**given, "model": "gpt-5.5"}, API)
    assert {"OAI-RESP-03"} <= {violation.rule for violation in prefixed}


def test_reasoning_of_a_deepseek_model_without_the_profile_is_valid():
    chat = {
        "model": "deepseek-r1-distill-llama-70b",
        "messages": [USER, {"role": "assistant", "reasoning": "hm", "content": "Done."}, USER],
    }
    made = segue.convert(chat, source="openai-chat", target=API)
    assert "reasoning_text" in str(made.body)
    assert segue.check(made.body, API)
