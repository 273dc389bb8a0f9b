"""`segue.repair`: minimal changes, each reported."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import segue
from segue._repair import _diff_values
from tests.bodies import anthropic, chat
from tests.bodies.anthropic import assistant, result, user
from tests.budget import examples
from tests.properties import checks
from tests.properties.chaos import CHAOS, JSON_VALUES

GO = chat.user("go")
call = partial(anthropic.call, name="look")
body_with_tool = partial(anthropic.body, tools=[anthropic.tool("look")])
VALID_BODY = body_with_tool(GO, assistant(call()), user(result()))


@pytest.mark.parametrize("indent", [None, 2])
def test_valid_body_is_unchanged_byte_for_byte(indent: int | None) -> None:
    data = json.dumps(VALID_BODY, indent=indent).encode() + b"\n"
    repaired = segue.repair(data, "anthropic")
    assert repaired.data == data
    assert repaired.changes == ()
    assert str(repaired) == ""


def test_the_diff_names_each_place_and_each_reason() -> None:
    broken = body_with_tool(
        GO, assistant(call("bad id"), call("toolu_2")), user(result("bad id"), result("nobody", "lost"))
    )
    repaired = segue.repair(broken, "anthropic")
    assert segue.check(repaired.body, "anthropic")
    assert str(repaired) == snapshot("""\
~ messages[1].content[0].id: "bad id" → "toolu_tZnfvcQHcVTpY2qh3CMTC3gF"
- messages[2].content[1]: {"type":"tool_result","tool_use_id":"nobody","content":"lost"}
~ messages[2].content[0].tool_use_id: "bad id" → "toolu_tZnfvcQHcVTpY2qh3CMTC3gF"
+ messages[2].content[1]: {"type":"tool_result","tool_use_id":"toolu_2","content":"[interrupted: no result…
+ messages[3]: {"role":"user","content":"[result of a tool; its call is no longer part of this …
# tool result without a call rendered as text
# added an error result for a tool call without a result
# call id 'bad id' replaced by 'toolu_tZnfvcQHcVTpY2qh3CMTC3gF': it is invalid or used by another call\
""")


def test_one_fault_is_one_change() -> None:
    broken = body_with_tool(
        GO, assistant(call()), user(result(), result("x")), chat.assistant("done"), chat.user("thanks")
    )
    touched = {change.path.partition("]")[0] for change in segue.repair(broken, "anthropic").changes}
    assert touched == {"messages[2"}


def test_move_is_one_change() -> None:
    before = [{"role": "a", "n": 1}, {"role": "b", "n": 2}, {"role": "c", "n": 3}]
    after = [before[0], before[2], before[1]]
    assert [(change.kind, change.path, change.origin) for change in _diff_values(before, after, "m")] == [
        ("moved", "m[2]", "m[1]")
    ]


def test_the_model_named_for_its_rules_is_not_written_into_the_body() -> None:
    begun = body_with_tool(GO, chat.assistant("I think"))
    kept = segue.repair(begun, "anthropic", model="claude-opus-4-8")
    assert kept.body["model"] == "claude-sonnet-4-5"
    assert segue.check(kept.body, "anthropic", model="claude-opus-4-8")
    del begun["model"]
    assert "model" not in segue.repair(begun, "anthropic", model="claude-opus-4-8").body


def test_unreadable_body_is_rejected() -> None:
    with pytest.raises(segue.InputError, match="messages"):
        segue.repair({"messages": 3}, "openai-chat")
    with pytest.raises(segue.InputError, match="api"):
        segue.repair(VALID_BODY, "openia")


PDF = {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBERi0xLjQK"}}}
PLAIN_TEXT = {"document": {"format": "txt", "name": "b", "source": {"text": "hello"}}}


@pytest.mark.parametrize(
    "content",
    [
        [PDF],
        [PLAIN_TEXT],
        [PLAIN_TEXT, PDF],
        [{"citationsContent": {"content": [{"text": "cited"}], "citations": []}}, PDF],
        [{"guardContent": {"text": {"text": "guarded"}}}, PDF],
    ],
)
def test_document_without_a_text_field_gets_one(content: list[Any]) -> None:
    repaired = segue.repair({"messages": [{"role": "user", "content": content}]}, "bedrock")
    assert repaired.body["messages"] == [{"role": "user", "content": [*content, {"text": "[document attached]"}]}]
    checks.check_accepted(repaired.body, "bedrock", None)
    assert segue.repair(repaired.data, "bedrock").changes == ()


@pytest.mark.parametrize("api", sorted(CHAOS))
@examples(4, items=len(CHAOS))
@given(data=st.data())
def test_repaired_chaos_is_valid_and_stable(api: str, data: st.DataObject) -> None:
    body = data.draw(CHAOS[api])
    before = copy.deepcopy(body)
    repaired = segue.repair(body, api)
    assert checks.dump_json(body) == checks.dump_json(before)
    checks.check_accepted(repaired.body, api, checks.model_of(body))
    assert bool(repaired.changes) == (checks.dump_json(repaired.body) != checks.dump_json(body))
    again = segue.repair(repaired.data, api)
    assert again.data == repaired.data
    assert again.changes == ()


def applied(before: Any, after: Any) -> bool:
    """Whether the differences are none exactly where the values are equal, whatever the order of keys."""
    one, other = (json.dumps(value, sort_keys=True) for value in (before, after))
    return (not list(_diff_values(before, after, ""))) == (one == other)


@examples(4)
@given(before=JSON_VALUES, after=JSON_VALUES)
def test_every_difference_is_listed(before: Any, after: Any) -> None:
    assert applied(before, after)
    assert applied(before, before)


NO_IDS: list[dict[str, Any]] = [{}, {"id": None}, {"id": ""}]


def _body_with_ids(api: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return a body with a call and its result, with the given id in the key of this API."""

    def put(key: str) -> dict[str, Any]:
        return {key: given["id"]} if "id" in given else {}

    function = {"name": "look", "arguments": "{}"}
    match api:
        case "openai-responses":
            items = [{"type": "function_call", **put("call_id"), **function}]
            return {"input": [GO, *items, {"type": "function_call_output", **put("call_id"), "output": "r"}]}
        case "anthropic":
            made: Any = {"type": "tool_use", **put("id"), "name": "look", "input": {}}
            return body_with_tool(GO, assistant(made), user({"type": "tool_result", **put("tool_use_id")}))
        case "bedrock":
            use = {"toolUse": {**put("toolUseId"), "name": "look", "input": {}}}
            response = {"toolResult": {**put("toolUseId"), "content": [{"text": "r"}]}}
            sides = [("user", {"text": "go"}), ("assistant", use), ("user", response)]
            return {"messages": [{"role": role, "content": [block]} for role, block in sides]}
        case "gemini":
            made = {"functionCall": {**put("id"), "name": "look", "args": {}}}
            response = {"functionResponse": {**put("id"), "name": "look", "response": {}}}
            sides = [("user", {"text": "go"}), ("model", made), ("user", response)]
            return {"contents": [{"role": role, "parts": [part]} for role, part in sides]}
        case _:
            made = {**put("id"), "type": "function", "function": function}
            return chat.body(GO, chat.assistant_calls(made), {"role": "tool", **put("tool_call_id"), "content": "r"})


@pytest.mark.parametrize("given_id", NO_IDS, ids=["missing", "null", "empty"])
@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "bedrock", "mistral", "deepseek"])
def test_added_id_is_a_finding(api: Any, given_id: dict[str, Any]) -> None:
    report = segue.repair(_body_with_ids(api, given_id), api).report
    (finding,) = report.findings_of("id")
    assert (finding.level, finding.subject, len(finding.call_ids)) == ("changed", "look", 1)


@pytest.mark.parametrize("given_id", NO_IDS, ids=["missing", "null", "empty"])
def test_optional_id_is_not_added(given_id: dict[str, Any]) -> None:
    repaired = segue.repair(_body_with_ids("gemini", given_id), "gemini")
    assert repaired.changes == ()
    assert repaired.report.findings == []
