"""The dialect `azure-foundry`: what differs from the plain Responses wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import Opaque, ToolCall, ToolResponse
from segue.wire.detect_body import detect_source, find_contradicting_api
from segue.wire.dialects.azure_foundry import WIRE as AZURE_FOUNDRY
from segue.wire.openai_responses import WIRE as OPENAI_RESPONSES
from segue.wire.registry import WIRES
from tests.bodies.responses import user
from tests.catalog.vendor_catalog import Sample, catalogue, samples
from tests.conversations.foundry import AGENT, MEMORY, agent, foundry, make_id, service_call, service_output
from tests.conversations.replies import responses_reply
from tests.each import for_each
from tests.wire.conversion import convert_reply

API = "azure-foundry"
ITEMS = {row["wire_type"] for row in catalogue() if row["provider_key"] == API and row["surface"] == "Responses items"}
SAMPLES = [sample for sample in samples() if sample.provider == API and sample.wire_type in ITEMS]
ELSEWHERE = [wire for wire in WIRES if wire != API]


def convert_same_api(body: dict[str, Any], **policy: Any) -> segue.Converted:
    """The body converted for the same API: it must be valid, and a second conversion changes nothing."""
    out = segue.convert(body, source=API, target=API, **policy)
    assert segue.check(out.body, API), str(segue.check(out.body, API))
    assert segue.convert(out.body, source=API, target=API).body == out.body
    return out


def findings(out: Any) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.subject) for finding in out.report.findings]


# -------------------------------------------------------------------------------------------- what stands in replies


def test_there_are_samples_of_every_item():
    assert len(ITEMS) == 23
    assert {sample.wire_type for sample in SAMPLES} == ITEMS


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_reply_returns_every_item_unchanged(sample: Sample):
    reply = responses_reply(sample.payload, {"type": "message", "role": "assistant", "id": "m", "content": []})
    assert convert_reply(reply, AZURE_FOUNDRY, AZURE_FOUNDRY)[0] == reply


@for_each("target", WIRES)
@pytest.mark.parametrize("source", [API, "openai-responses"])
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_reply_only_item_becomes_text_in_a_request(sample: Sample, source: str, target: str):
    """AZF-08: on every target, the same API included, and for either dialect that may have it in a body."""
    body = {"input": [user(), sample.payload, user("well?")]}
    for hosted in ("pair", "text", "drop"):
        out = segue.convert(body, source=source, target=target, hosted=hosted)
        assert segue.check(out.body, target), f"{hosted}: {segue.check(out.body, target)}"
        kept = target == source == API and sample.payload["type"] == "memory_search_call"
        types = [item.get("type") for item in out.body.get("input", ())]
        assert (sample.payload["type"] in types) is kept
        converted = out.report.findings_of("text") if hosted != "drop" else out.report.findings_of("dropped")
        assert (
            kept
            or any("hosted tool call" in finding.message for finding in converted)
            or out.report.findings_of("orphan")
        )


def test_conversation_renders_reply_items_as_text():
    chat = segue.Conversation()
    chat.add_user("Is it safe?")
    chat.add_reply(
        responses_reply(
            service_call("openapi", "call_1", '{"id":7}', name="getBerth"),
            service_output("openapi", "call_1", {"name": "N-14"}, name="getBerth"),
            {"type": "structured_outputs", "id": "so_1", "output": {"eta": 1}},
        ),
        source=API,
    )
    chat.add_user("Thanks.")
    for target in WIRES:
        body = chat.render(target).body
        assert segue.check(body, target)
        assert "N-14" in json.dumps(body)
    types = [item.get("type") for item in chat.render(API).body["input"]]
    assert types == [None, None, "function_call", "function_call_output", None]


def test_calls_outputs_and_uncalled_items_are_distinguished():
    request = AZURE_FOUNDRY.parse_request(
        agent(
            user(),
            service_call("a2a_preview", "call_1", "not json", name="surveyor"),
            service_output("a2a_preview", "call_1", [1], name="surveyor", status="in_progress"),
            {"type": "workflow_action", "id": "w", "kind": "Set", "action_id": "a", "status": "cancelled"},
            {"type": "memory_search_call", "results": [MEMORY]},
        )
    )
    call, result, action, search, found = request.messages[1].blocks
    assert isinstance(call, ToolCall)
    assert (call.name, call.kind, call.arguments_text, call.origin.provider) == ("surveyor", "hosted", "not json", API)
    assert isinstance(result, ToolResponse)
    assert (result.call_id, result.structured, result.is_complete, result.hosted) == (call.id, [1], False, True)
    assert isinstance(action, ToolResponse)
    assert (action.name, action.outcome, action.origin.identity) == ("Set", "cancelled", "conflated")
    assert action.structured == {"action_id": "a", "status": "cancelled"}
    assert isinstance(search, ToolCall)
    assert isinstance(found, ToolResponse)
    assert (search.origin.identity, found.call_id) == ("absent", search.id)


# ---------------------------------------------------------------------------------------------------------- requests


def test_azf_01_and_02_an_agent_is_named_once_and_brings_its_tools():
    out = convert_same_api(foundry(user()) | {"agent": {"name": "a"}})
    assert out.body == {"input": [user()], "agent_reference": {"name": "a", "type": "agent_reference"}}
    assert findings(out) == [("adjusted", "agent"), ("tools", "tools")]
    assert convert_same_api(foundry(user(), tools=[]) | {"agent_reference": AGENT}).body == agent(user())
    both = foundry(user()) | {"agent": {"name": "old"}, "agent_reference": AGENT}
    assert convert_same_api(both).body == agent(user())
    assert convert_same_api(foundry(user(), tools=[]) | {"agent_reference": {"version": "1"}}).body == {
        "input": [user()],
        "tools": [],
    }


@pytest.mark.parametrize("target", ELSEWHERE)
def test_agent_is_not_converted(target: str):
    out = segue.convert(agent(user()), target=target)
    assert out.source == API
    assert ("dropped", "agent_reference") in findings(out)
    assert "harbour-desk" not in json.dumps(out.body)


def test_azf_03_and_04_no_nulls_and_typed_output_parts():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    content = {"type": "output_text", "text": "a"}
    out = convert_same_api(
        {
            "model": None,
            "tools": None,
            "input": [
                user(),
                {**call, "status": None, "namespace": None},
                {**result, "status": None},
                {"role": "assistant", "content": [content]},
                {"role": "assistant", "content": "b", "status": None},
            ],
        }
    )
    assert out.body == {
        "input": [
            user(),
            call,
            result,
            {"type": "message", "role": "assistant", "content": [{**content, "annotations": []}]},
            {"type": "message", "role": "assistant", "content": "b"},
        ]
    }


def test_member_of_wrong_type_is_dropped_and_reported():
    item = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "r"}
    out = convert_same_api({"input": [user(), {**item, "caller": 7}, result], "tools": [{"type": "new"}]})
    assert out.body == {"input": [user(), item, result], "tools": []}
    assert {("dropped", "caller"), ("tools", "tools")} <= set(findings(out))


def test_azf_06_encrypted_reasoning_of_two_replies_and_its_ids_are_dropped():
    thought = {"type": "reasoning", "id": make_id("rs"), "summary": [], "encrypted_content": "gAAAAx"}
    call = {"type": "function_call", "id": make_id("fc"), "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    answer = {"type": "message", "role": "assistant", "content": "a"}
    newer = [{**thought, "id": make_id("rs", 2)}, {**answer, "id": make_id("msg")}]
    out = convert_same_api({"input": [user(), thought, call, result, *newer, user()]})
    bare = {key: value for key, value in call.items() if key != "id"}
    assert "gAAAAx" not in out.data.decode()
    assert out.body["input"][1:3] == [bare, result]
    assert out.report.findings_of("reasoning")


def test_azf_06_encrypted_reasoning_of_the_newest_reply_alone_is_kept():
    """Also as the conversation grows: nothing of it is remembered once another reply has reasoning too."""
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]

    def turn(number: int) -> list[dict[str, Any]]:
        thought = {"type": "reasoning", "id": make_id("rs", number), "summary": [], "encrypted_content": "gAAAAx"}
        call = {"type": "function_call", "id": make_id("fc", number), "call_id": f"c{number}", "name": "f"}
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": "r"}
        return [thought, {**call, "arguments": "{}"}, output]

    items = [user()]
    for number in range(1, 4):
        items += turn(number)
        body = {"input": items, "tools": tools}
        out = convert_same_api(json.loads(json.dumps(body)))
        assert segue.convert(json.dumps(body).encode(), source=API, target=API).body == out.body
        assert ("reasoning" in out.data.decode()) is (number == 1)
        assert number > 1 or out.body == body
    bare = [{key: item[key] for key in item if key != "id"} for item in items if item.get("type") != "reasoning"]
    assert convert_same_api({"input": [*bare, *turn(4)]}).body["input"] == [*bare, *turn(4)]


def test_azf_06_reasoning_may_become_text():
    thought = {"type": "reasoning", "id": make_id("rs"), "summary": []}
    converted = convert_same_api(
        {"input": [user(), {**thought, "summary": [{"type": "summary_text", "text": "hm"}]}]}, reasoning="text"
    )
    assert converted.body["input"][1]["content"] == "[reasoning] hm"


@pytest.mark.parametrize("target", ["openai-responses", API])
def test_reasoning_is_not_shared_with_openai(target: str):
    other = API if target != API else "openai-responses"
    thought = {"type": "reasoning", "id": make_id("rs"), "summary": [], "encrypted_content": "gAAAAx"}
    answer = {"type": "message", "id": make_id("msg"), "role": "assistant", "status": "completed", "content": []}
    out = segue.convert({"input": [user(), thought, answer, user()]}, source=other, target=target)
    assert "gAAAAx" not in json.dumps(out.body)
    assert make_id("msg") not in json.dumps(out.body)


def test_azf_07_only_service_ids_are_sent_back():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    assert convert_same_api({"input": [user(), {**call, "id": "fc_1"}, {**result, "id": "fco_1"}]}).body["input"] == [
        user(),
        call,
        result,
    ]
    named = {"input": [user(), {**call, "id": make_id("fc")}, {**result, "id": make_id("fco")}]}
    assert convert_same_api(named).body == named
    wrong = {"input": [user(), {**call, "id": make_id("msg")}, result]}
    assert convert_same_api(wrong).body["input"][1] == call


def test_azf_07_previous_response_of_another_service_is_dropped():
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    held = {"input": [result], "previous_response_id": make_id("caresp")}
    assert convert_same_api(held).body == held
    out = convert_same_api({"input": [user(), result], "previous_response_id": "resp_1"})
    assert "previous_response_id" not in out.body
    assert out.report.findings_of("orphan")
    cross_api = segue.convert({"input": [user()], "previous_response_id": "resp_1"}, source=API, target="anthropic")
    assert ("dropped", "previous_response_id") in findings(cross_api)


def test_azf_08_unlisted_item_type_becomes_text():
    out = convert_same_api({"input": [user(), {"type": "agent_message", "text": "hello there"}]})
    assert out.body["input"][1] == {
        "type": "message",
        "role": "assistant",
        "content": "[agent_message not supported here] hello there",
    }
    referred = convert_same_api({"input": [{"id": make_id("msg")}, user()], "previous_response_id": make_id("caresp")})
    assert referred.body["input"][0] == {"type": "item_reference", "id": make_id("msg")}


def test_azf_05_no_result_names_the_item_of_a_hosted_call():
    ran_there = {
        "type": "mcp_call",
        "id": "mcp_06b6",
        "name": "f",
        "server_label": "s",
        "arguments": "{}",
        "output": "r",
    }
    out = convert_same_api({"input": [user(), ran_there, user()]})
    call, result = out.body["input"][1:3]
    assert (call["type"], result["type"]) == ("function_call", "function_call_output")
    assert call["call_id"] == result["call_id"] != "mcp_06b6"


def test_azf_10_arguments_are_a_string():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}}
    result = {"type": "function_call_output", "call_id": "c", "output": "r"}
    assert convert_same_api({"input": [user(), call, result]}).body["input"][1]["arguments"] == '{"a":1}'


def test_openai_only_options_are_not_converted_to_or_from_foundry():
    body = {"input": [user()], "store": False, "metadata": {"k": "v"}, "temperature": 0.5}
    there = segue.convert(body, source="openai-responses", target=API)
    assert there.body == {"input": [user()], "temperature": 0.5}
    assert {("dropped", "store"), ("dropped", "metadata")} <= set(findings(there))
    back = segue.convert(body, source=API, target="openai-responses")
    assert back.body == {"input": [user()], "temperature": 0.5}
    assert convert_same_api(body).body == body


@pytest.mark.parametrize("target", [API, "openai-responses"])
@pytest.mark.parametrize("grammar", [{"definition": "x"}, {"syntax": [], "definition": "x"}])
def test_incomplete_grammar_is_dropped(grammar: dict[str, Any], target: str):
    tool = {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": grammar}}}
    out = segue.convert({"messages": [user()], "tools": [tool]}, source="openai-chat", target=target)
    assert out.body["tools"] == [{"type": "custom", "name": "f"}]
    assert ("tools", "f") in findings(out)


def test_service_file_id_is_not_sent_to_other_apis():
    body = {"input": [user([{"type": "input_file", "file_id": "assistant-1"}])]}
    assert convert_same_api(body).body == body
    for source, target in ((API, "openai-responses"), ("openai-responses", API)):
        out = segue.convert(body, source=source, target=target)
        assert out.body["input"] == [user("[document not supported here] assistant-1")]


# --------------------------------------------------------------------------------------------------------- approvals

APPROVAL_REQUEST = {"type": "mcp_approval_request", "server_label": "s", "name": "f", "arguments": '{"a":1}'}
GIVEN = {"type": "mcp_approval_response", "approve": False, "reason": "no"}


def approval(request_id: str, **more: Any) -> dict[str, Any]:
    return {
        "input": [user(), {**APPROVAL_REQUEST, "id": request_id}, {**GIVEN, "approval_request_id": request_id}],
        **more,
    }


@pytest.mark.parametrize(("wire", "request_id"), [(AZURE_FOUNDRY, make_id("mcpr")), (OPENAI_RESPONSES, "mcpr_1")])
def test_approval_request_is_a_call_without_result(wire: Any, request_id: str):
    body = approval(request_id)
    assert segue.convert(body, source=wire.name, target=wire.name).body == body
    call_item, given = (message.blocks[0] for message in wire.parse_request(body).messages[1:])
    assert isinstance(call_item, ToolCall)
    assert (call_item.name, call_item.arguments, call_item.kind, call_item.awaited) == (
        "s.f",
        {"a": 1},
        "hosted",
        False,
    )
    assert isinstance(given, Opaque)
    assert (given.origin.family, given.origin.raw_id, given.text) == ("mcp-approval", request_id, "refused: no")
    assert call_item.origin.is_approval


@pytest.mark.parametrize("target", ELSEWHERE)
@pytest.mark.parametrize("hosted", ["pair", "text"])
def test_cross_api_approval_becomes_text(target: str, hosted: str):
    out = segue.convert(approval(make_id("mcpr")), source=API, target=target, hosted=hosted)
    assert segue.check(out.body, target)
    content = json.dumps(out.body).replace("\\", "")
    assert '[approval asked for s.f: {"a":1}]' in content
    assert "[answer to the request for approval] refused: no" in content
    assert not out.report.findings_of("synthetic")


def test_approval_response_goes_with_its_request():
    """OAI-RESP-21: without the request's id, the approval response has nothing to refer to."""
    out = convert_same_api(approval("mcpr_1"))
    assert [item["type"] if "type" in item else item["role"] for item in out.body["input"]] == ["user", "user", "user"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAx"}
    body = approval("mcpr_1", model="gpt-5")
    body["input"].insert(1, thought)
    kept = segue.convert(body, source="openai-responses", target="openai-responses")
    assert kept.body == body
    moved = segue.convert(body, source="openai-responses", target="openai-responses", model="gpt-4.1")
    assert segue.check(moved.body, "openai-responses")
    assert "mcpr_1" not in json.dumps(moved.body)


def test_tool_result_is_not_taken_for_an_approval_response():
    body = approval("x")
    body["input"] += [{"type": "workflow_action", "id": "x", "kind": "Set", "action_id": "a", "status": "completed"}]
    for target in WIRES:
        out = segue.convert(body, source=API, target=target)
        assert segue.check(out.body, target)
        assert "[result of Set, run by the provider]" in json.dumps(out.body)


@pytest.mark.parametrize("source", ["openai-chat", "anthropic", "gemini", "openai-responses"])
def test_cross_api_client_gets_approval_request_as_text(source: str):
    client: dict[str, Any] = {
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
        "openai-responses": {"input": [user()]},
    }.get(source, {"messages": [user()], "max_tokens": 9})
    out = segue.convert(client, source=source, target=API)
    back = out.reply(responses_reply({**APPROVAL_REQUEST, "id": make_id("mcpr")}))
    assert "[approval asked for s.f" in json.dumps(back)


# ------------------------------------------------------------------------------------------------------ whose body


def test_body_is_detected_by_agent_or_foundry_only_items():
    assert detect_source(agent(user())) == API
    assert detect_source({"input": "go", "agent": {"name": "a"}}) == API
    assert detect_source({"input": [user(), service_call("openapi", "c", "{}", name="f")]}) == API
    assert detect_source({"input": [user()]}) == "openai-responses"
    assert detect_source({"input": [user()], "agent_reference": None}) == "openai-responses"
    assert find_contradicting_api(agent(user()), "openai-responses") is None
    assert find_contradicting_api({"input": [user()]}, API) is None
    assert (
        find_contradicting_api({"messages": [user()], "max_tokens": 1, "tools": [{"input_schema": {}}]}, API)
        == "anthropic"
    )


def test_reply_ids_for_a_client_are_never_sent_to_the_provider():
    out = segue.convert({"input": [user()], "agent_reference": AGENT}, target="anthropic", model="claude-sonnet-4-5")
    reply = out.reply(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    assert reply["id"].startswith("caresp_")
    call = reply["output"][1]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "r"}
    again = convert_same_api({"input": [user(), *reply["output"], result], "previous_response_id": reply["id"]})
    assert "hist" not in json.dumps(again.body["input"])
