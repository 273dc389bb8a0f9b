"""Ids of a request are distinct whatever ids the history has, also same-API, and stay as the history grows."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from tests.budget import examples, sample_pairs
from tests.properties import checks
from tests.properties.readers import read
from tests.store.reply_bodies import reply_body

PAIRS = sample_pairs(checks.TARGETS, start=1)
IDS = st.sampled_from(
    [
        *("call_0", "call_1", "functions.f:0", "functions.f:1", "functions.g:0", "f:0", "", "null", None),
        *("hist_tool_a", "hist_tool_MBmBWUVWMIhAWBl89r3g9lNG", "call_MBmBWUVWMIhAWBl89r3g9lNG", "toolu_1", "abcdefgh1"),
        *("x" * 200, "x" * 199 + "y", "a.b:c|d"),
    ]
)
TURNS = st.lists(st.lists(st.tuples(IDS, st.sampled_from(["f", "g"])), min_size=1, max_size=3), min_size=1, max_size=4)
Turns = list[list[tuple[str | None, str]]]


def build_body(api: str, turns: Turns) -> dict[str, Any]:
    """A body whose calls have these ids; each result has the id of its call and the call's number as text."""
    number = 0
    chat: list[Any] = [{"role": "user", "content": "q"}]
    claude: list[Any] = [{"role": "user", "content": "q"}]
    converse: list[Any] = [{"role": "user", "content": [{"text": "q"}]}]
    gemini: list[Any] = [{"role": "user", "parts": [{"text": "q"}]}]
    responses: list[Any] = [{"role": "user", "content": "q"}]
    for turn in turns:
        numbered = [(number + index, raw_id, name) for index, (raw_id, name) in enumerate(turn)]
        number += len(turn)
        calls = [
            {"id": raw_id, "type": "function", "function": {"name": name, "arguments": json.dumps({"n": n})}}
            for n, raw_id, name in numbered
        ]
        chat.append({"role": "assistant", "content": None, "tool_calls": calls})
        chat += [{"role": "tool", "tool_call_id": raw_id, "content": f"r{n}"} for n, raw_id, _ in numbered]
        claude += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": i, "name": name, "input": {"n": n}} for n, i, name in numbered],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": i, "content": f"r{n}"} for n, i, _ in numbered],
            },
        ]
        converse += [
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": i or "", "name": name, "input": {"n": n}}} for n, i, name in numbered
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": i or "", "content": [{"text": f"r{n}"}]}} for n, i, _ in numbered
                ],
            },
        ]
        gemini += [
            {
                "role": "model",
                "parts": [{"functionCall": {"id": i, "name": name, "args": {"n": n}}} for n, i, name in numbered],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": i, "name": name, "response": {"output": f"r{n}"}}}
                    for n, i, name in numbered
                ],
            },
        ]
        responses += [
            {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps({"n": n})}
            for n, i, name in numbered
        ]
        responses += [{"type": "function_call_output", "call_id": i, "output": f"r{n}"} for n, i, _ in numbered]
    match api:
        case "anthropic":
            return {
                "max_tokens": 100,
                "messages": claude,
                "tools": [{"name": n, "input_schema": {"type": "object"}} for n in "fg"],
            }
        case "bedrock":
            tools = [{"toolSpec": {"name": n, "inputSchema": {"json": {"type": "object"}}}} for n in "fg"]
            return {"messages": converse, "toolConfig": {"tools": tools}}
        case "gemini":
            return {"contents": gemini}
        case "openai-responses" | "azure-foundry":
            return {"input": responses}
        case _:
            return {"messages": chat}


@pytest.mark.parametrize(("source", "target"), PAIRS)
@examples(12, items=len(PAIRS))
@given(turns=TURNS)
def test_ids_are_distinct_and_pair_the_right_results(source: str, target: str, turns: Turns) -> None:
    out = segue.convert(build_body(source, turns), source=source, target=target)
    reading = read(out.body, target)
    given_ids = [one for one in reading.ids if one]
    assert len(set(given_ids)) == len(given_ids), given_ids
    assert [one.text for one in reading.interactions] == [f"r{one.arguments['n']}" for one in reading.interactions]
    checks.check_accepted(out.body, target, None)
    repaired = segue.repair(out.body, target)
    assert not repaired.changes, str(repaired)


@pytest.mark.parametrize("api", checks.TARGETS)
@examples(4, items=len(checks.TARGETS))
@given(turns=TURNS, later=TURNS)
def test_ids_stay_when_the_history_grows(api: str, turns: Turns, later: Turns) -> None:
    first = read(segue.repair(build_body(api, turns), api).body, api).ids
    both = read(segue.repair(build_body(api, [*turns, *later]), api).body, api).ids
    assert both[: len(first)] == first


@pytest.mark.parametrize("source", ["openai-chat", "anthropic", "gemini", "openai-responses"])
def test_a_repeated_id_is_reported(source: str) -> None:
    body = build_body(source, [[("call_0", "f"), ("call_0", "f")], [("call_0", "g")]])
    for target in checks.TARGETS:
        report = segue.convert(body, source=source, target=target).report
        reported = {call_id for finding in report.findings_of("id") for call_id in finding.call_ids}
        assert len(reported) == 2, (target, report.findings)


def claude_reply(name: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def kimi_reply(call_id: str, name: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    choice = {"index": 0, "message": {"role": "assistant", "content": "", "tool_calls": [call]}}
    return {
        "id": "c",
        "object": "chat.completion",
        "model": "kimi-k2-0905-preview",
        "choices": [{**choice, "finish_reason": "tool_calls"}],
    }


def test_an_id_of_kimi_that_segue_has_given_away() -> None:
    """Claude's call is `functions.f:0` at Kimi K2, which then starts at that id itself; incremental and fresh agree."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    chat = segue.Conversation.from_body(
        {"messages": [{"role": "user", "content": "q"}], "tools": [tool]}, source="openai-chat"
    )
    sent: list[list[str]] = []
    for index in range(8):
        reply = claude_reply("f") if index % 3 == 0 else kimi_reply(f"functions.f:{index % 2}", "f")
        for call in chat.add_reply(reply, source="anthropic" if index % 3 == 0 else "kimi").calls:
            chat.add_result(call, f"r{index}")
        rendered = chat.render("kimi", model="kimi-k2-0905-preview")
        fresh = segue.Conversation.load(chat.dump()).render("kimi", model="kimi-k2-0905-preview")
        assert rendered.data == fresh.data
        sent.append(read(rendered.body, "kimi").ids)
        chat.add_user(f"q{index}")
    assert len(set(sent[-1])) == 8
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))


@pytest.mark.parametrize("target", checks.TARGETS)
@examples(2, items=len(checks.TARGETS))
@given(data=st.data())
def test_a_later_reply_has_an_id_that_was_projected(target: str, data: st.DataObject) -> None:
    """The target's own model repeats ids that segue gave to calls of others: each call keeps its id and its result."""
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "fg"]
    model = data.draw(st.sampled_from(checks.models(target)))
    chat = segue.Conversation(tools=tools)
    chat.add_user("q")
    sent: dict[str, str] = {}
    for number in range(data.draw(st.integers(2, 6))):
        api = data.draw(st.sampled_from(checks.TARGETS) | st.just(target))
        own_ids = (
            st.sampled_from([*sent.values(), "functions.f:0", "abcdefgh1"]) if api == target else st.just(f"i{number}")
        )
        calls = data.draw(st.lists(st.tuples(st.sampled_from("fg"), own_ids), min_size=1, max_size=2))
        for call in chat.add_reply(reply_body(api, calls=calls), source=api).calls:
            chat.add_result(call, f"result of {call.id}")
        if data.draw(st.booleans()):
            chat = segue.Conversation.load(chat.dump())
        rendered = chat.render(target, model)
        assert rendered.data == segue.Conversation.load(chat.dump()).render(target, model).data
        emitted = dict(rendered.report.emitted_calls)
        assert len(set(emitted.values())) == len(emitted)
        assert sent.items() <= emitted.items()
        sent = emitted
        reading = read(rendered.body, target)
        assert not checks.has_repeated_ids(reading)
        assert [one.text for one in reading.interactions] == [f"result of {call_id}" for call_id in emitted]
        checks.check_accepted(rendered.body, target, model)
