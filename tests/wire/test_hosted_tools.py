"""Every hosted tool interaction × every target × every policy: valid, kept as text, and reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from segue.canonical.blocks import ToolCall
from segue.conformance import apis
from segue.wire.registry import WIRES
from tests.bodies import anthropic
from tests.conversations.build import PNG
from tests.conversations.sdk import complaints
from tests.each import for_each
from tests.wire.hosted_bodies import ALL, HostedCase

TARGETS = tuple(row.name for row in segue.formats() if row.kind != "text" and row.name in apis())
EVERY = pytest.mark.parametrize("ran", ALL, ids=lambda ran: f"{ran.source}-{ran.name}")
EVERY_TARGET = for_each("target", TARGETS)
EVERY_POLICY = for_each("policy", ["pair", "text", "drop"])


def leaves(value: Any) -> str:
    """All strings of a body as one text, including JSON inside strings."""
    if isinstance(value, dict):
        return "\n".join(leaves(inner) for inner in value.values())
    if isinstance(value, list):
        return "\n".join(map(leaves, value))
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return f"{value}\n{leaves(json.loads(value))}"
        except ValueError:
            return value
    return str(value)


def keyed(body: Any) -> str:
    """The text of the conversation, including names."""
    return leaves(body.get("messages") or body.get("input") or body.get("contents"))


@EVERY_POLICY
@EVERY_TARGET
@EVERY
def test_is_accepted(ran: HostedCase, target: str, policy: str) -> None:
    out = segue.convert(ran.body, source=ran.source, target=target, hosted=policy).body
    assert segue.check(out, target), f"{segue.check(out, target)}\n{json.dumps(out, indent=1)}"
    known = complaints(ran.body, target) if ran.source == target else ()
    assert set(complaints(out, target)) <= set(known)


@EVERY
def test_same_api_body_is_unchanged(ran: HostedCase) -> None:
    made = segue.convert(ran.body, source=ran.source, target=ran.source).body
    # ANT-09: a call without a result that is not at the end is rejected.
    is_open = (ran.source, ran.name) == ("anthropic", "still running")
    assert (made == ran.body) is not is_open


@for_each("policy", ["pair", "text"])
@EVERY_TARGET
@EVERY
def test_no_text_is_lost(ran: HostedCase, target: str, policy: str) -> None:
    if target == ran.source:
        return
    made = segue.convert(ran.body, source=ran.source, target=target, hosted=policy)
    body_text = keyed(made.body)
    for text in ran.expected_texts:
        assert text in body_text, f"{text!r} is not in\n{json.dumps(made.body, indent=1)}"
    for text in ran.opaque_texts:
        assert text not in json.dumps(made.body)
    # Their usual models read no pictures.
    if ran.picture and target not in ("deepseek", "qwen"):
        assert PNG in body_text


@EVERY_POLICY
@EVERY_TARGET
@EVERY
def test_conversion_is_reported(ran: HostedCase, target: str, policy: str) -> None:
    if target == ran.source or ran.tool is None:
        return
    report = segue.convert(ran.body, source=ran.source, target=target, hosted=policy).report
    kind = "dropped" if policy == "drop" else "text"
    assert ran.tool in [f.subject for f in report.findings_of(kind) if "hosted tool call" in f.message]


@EVERY_TARGET
@EVERY
def test_drop_policy_removes_every_trace(ran: HostedCase, target: str) -> None:
    if target == ran.source or ran.tool is None or ran.name.startswith("program"):
        return
    out = segue.convert(ran.body, source=ran.source, target=target, hosted="drop").body
    body_text = keyed(out)
    assert not [text for text in ran.expected_texts if text in body_text]


# ----------------------------------------------------------------------------------------- calls that other calls made

CALLER = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "get(1); get(2)"}}
RAN = {"type": "code_execution_result", "stdout": "sum 3", "stderr": "", "return_code": 0, "content": []}


def nested(number: int) -> Any:
    return anthropic.call(f"toolu_{number}", name="get", input={"n": number}, caller=CALLER)


def tool_result(number: int) -> Any:
    return anthropic.user(anthropic.result(f"toolu_{number}", f"#{number}"))


OPEN = [
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": [CODE, nested(1)]},
    tool_result(1),
    {"role": "assistant", "content": [nested(2)]},
    tool_result(2),
]
CLOSED = [
    *OPEN,
    {
        "role": "assistant",
        "content": [
            {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": RAN},
            {"type": "text", "text": "Three."},
        ],
    },
    {"role": "user", "content": "And now?"},
]


def pairs(request: Any) -> dict[str, tuple[str, Any, str]]:
    """Each call of a request with its result text, keyed by arguments."""
    calls = {block.id: block for message in request.messages for block in message.blocks if hasattr(block, "arguments")}
    found: dict[str, tuple[str, Any, str]] = {}
    for message in request.messages:
        for block in message.blocks:
            if hasattr(block, "call_id"):
                call = calls[block.call_id]
                result_text = "".join(part.text for part in block.content or ())
                found[json.dumps(call.arguments)] = (
                    call.name,
                    call.arguments,
                    result_text or json.dumps(block.structured),
                )
    return found


@pytest.mark.parametrize("messages", [OPEN, CLOSED], ids=["open", "closed"])
@EVERY_POLICY
@EVERY_TARGET
def test_results_of_nested_calls_stay_with_them(target: str, policy: str, messages: Any) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}
    out = segue.convert(body, source="anthropic", target=target, hosted=policy)
    assert segue.check(out.body, target)
    if target == "anthropic":
        assert out.body == body
        return
    found = pairs(WIRES[target].parse_request(out.body))
    assert {key: result_text for key, (name, _, result_text) in found.items() if name == "get"} == {
        '{"n": 1}': "#1",
        '{"n": 2}': "#2",
    }
    lines = [finding for finding in out.report.findings if "call made by" in finding.message]
    assert [len(finding.call_ids) for finding in lines] == [2]
    assert all("code_execution" in finding.message for finding in lines)
    if messages is CLOSED and policy == "pair":
        assert found[json.dumps(CODE["input"])][2] == "sum 3"


def test_caller_is_found_in_the_request() -> None:
    request = WIRES["anthropic"].parse_request({"max_tokens": 9, "messages": OPEN})
    made = [block for message in request.messages for block in message.blocks if isinstance(block, ToolCall)]
    assert [call.origin.parent for call in made] == [None, "srvtoolu_1", "srvtoolu_1"]
    program = next(ran.body for ran in ALL if ran.name.startswith("program"))
    request = WIRES["openai-responses"].parse_request(program)
    made = [block for message in request.messages for block in message.blocks if isinstance(block, ToolCall)]
    assert [call.origin.parent for call in made] == [None, "call_p"]


def test_direct_call_has_no_caller_to_report() -> None:
    direct = {**nested(1), "caller": {"type": "direct"}}
    body = {"max_tokens": 9, "messages": [OPEN[0], {"role": "assistant", "content": [direct]}, tool_result(1)]}
    report = segue.convert(body, source="anthropic", target="openai-chat").report
    assert not [finding for finding in report.findings if "call" in finding.message]


def test_deeply_nested_tool_output() -> None:
    deep: Any = "the bottom"
    for _ in range(150):
        deep = {"type": "x", "content": [deep]}
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "dive", "input": {}}
    given = {"type": "dive_tool_result", "tool_use_id": "srvtoolu_1", "content": deep}
    body = {"max_tokens": 9, "messages": [OPEN[0], {"role": "assistant", "content": [use, given]}]}
    assert "the bottom" in keyed(segue.convert(body, source="anthropic", target="openai-chat").body)


@pytest.mark.parametrize("behind", [[], [{"role": "user", "content": "go on"}]], ids=["at the end", "before the user"])
def test_ant_10_an_mcp_call_may_be_without_its_result(behind):
    call = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [call]}, *behind],
        "mcp_servers": [{"type": "url", "url": "https://example.com", "name": "s"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}],
    }
    assert segue.check(body, "anthropic")
    assert segue.convert(body, source="anthropic", target="anthropic").body == body
    elsewhere = segue.convert(body, source="anthropic", target="openai-chat").body["messages"]
    assert [message["role"] for message in elsewhere][:3] == ["user", "assistant", "tool"]
