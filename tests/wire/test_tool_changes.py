"""Blocks that add or remove a tool in the middle of a conversation: kept between Claude's APIs, text elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from tests.each import for_each

CLAUDE = {"anthropic": "claude-opus-4-8", "bedrock": "us.anthropic.claude-opus-4-8"}
REFERENCES: dict[str, dict[str, Any]] = {
    "tool": {"type": "tool_reference", "name": "look"},
    "tool of a server": {"type": "mcp_tool_reference", "server_name": "files", "name": "look"},
}


def _body(api: str, role: str, reference: dict[str, Any]) -> dict[str, Any]:
    if api == "anthropic":
        changes: list[Any] = [{"type": kind, "tool": reference} for kind in ("tool_addition", "tool_removal")]
        text: Any = {"type": "text", "text": "Go on."}
        fields: dict[str, Any] = {"model": CLAUDE[api], "max_tokens": 99}
        fields["tools"] = [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    else:
        tool = {key.replace("server_name", "serverName"): value for key, value in reference.items()}
        changes = [{kind: {"tool": tool}} for kind in ("toolAddition", "toolRemoval")]
        text = {"text": "Go on."}
        schema = {"json": {"type": "object", "properties": {}}}
        fields = {
            "modelId": CLAUDE[api],
            "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": schema}}]},
        }
        fields["inferenceConfig"] = {"maxTokens": 99}
    asked = [{"role": "user", "content": [text]}, {"role": "assistant", "content": [text]}]
    later = [{"role": role, "content": changes}] if role == "system" else []
    return {**fields, "messages": [*asked, *later, {"role": "user", "content": [text] if later else [*changes, text]}]}


@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.parametrize("reference", REFERENCES)
@for_each("source, target", [(a, b) for a in CLAUDE for b in CLAUDE], ids="-".join)
def test_is_kept_by_apis_of_claude(role: str, reference: str, source: str, target: str) -> None:
    body = _body(source, role, REFERENCES[reference])
    out = segue.convert(body, source=source, target=target, model=CLAUDE[target])
    assert out.body["messages"] == _body(target, role, REFERENCES[reference])["messages"]
    assert out.report.findings == []
    assert segue.check(out.body, target)


@for_each("api", list(CLAUDE))
def test_system_text_beside_it_follows_as_user_text(api: str) -> None:
    body = _body(api, "system", REFERENCES["tool"])
    text = body["messages"][0]["content"][0]
    body["messages"][2]["content"].append(text)
    (target,) = CLAUDE.keys() - {api}
    out = segue.convert(body, source=api, target=target, model=CLAUDE[target])
    assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "system", "user"]
    assert segue.check(out.body, target)


@for_each("target", ["openai-chat", "openai-responses", "gemini", "mistral"])
def test_is_text_elsewhere_and_reported(target: str) -> None:
    for api in CLAUDE:
        out = segue.convert(_body(api, "user", REFERENCES["tool"]), source=api, target=target)
        assert "[tool_addition not supported here]" in out.data.decode()
        found = out.report.findings_of("text")
        assert [finding.subject for finding in found] == ["tool_addition", "tool_removal"]
        assert segue.check(out.body, target)


def test_a_model_of_another_maker_gets_text() -> None:
    body = _body("anthropic", "user", REFERENCES["tool"])
    out = segue.convert(body, source="anthropic", target="bedrock", model="us.amazon.nova-pro-v1:0")
    assert b"toolAddition" not in out.data


@for_each(
    "change", [{"tool": {"type": "tool_definition", "definition": {"name": "look"}}}, {"tool": {}}, {}, {"tool": 1}]
)
def test_a_change_without_a_reference_is_read(change: dict[str, Any]) -> None:
    body = _body("anthropic", "user", REFERENCES["tool"])
    body["messages"][-1]["content"][0] = {"type": "tool_addition", **change}
    for target in ("anthropic", "bedrock", "openai-chat"):
        out = segue.convert(body, source="anthropic", target=target)
        assert target == "anthropic" or out.report.findings_of("text")
