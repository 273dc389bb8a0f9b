"""The complete report of one broken history."""

from __future__ import annotations

import json

from inline_snapshot import snapshot

import segue
from segue.render.report import Report
from tests.bodies.chat import assistant_calls, body, call, result, user

BROKEN = body(
    user("Go."),
    assistant_calls(call("call_0", "ns.look"), call("call_0", "glob")),
    user("Never mind."),
    result("call_0", "late"),
    result("call_9", "whose?"),
    model="gpt-4.1",
    seed=7,
    logprobs=True,
)


def test_the_whole_report():
    report = segue.convert(BROKEN, target="anthropic", model="claude-sonnet-4-5").report
    assert report.to_dict() == snapshot(
        {
            "target": "anthropic",
            "model": "claude-sonnet-4-5",
            "id_scheme": "anthropic",
            "tool_format": "anthropic",
            "seen": ["hist_tool_5S-4KV6a6vCpnGNZPscjzK6B", "hist_tool_qLV51fWowAMvi1MvPJyw1EPL"],
            "emitted_calls": [
                ["hist_tool_5S-4KV6a6vCpnGNZPscjzK6B", "toolu_5S-4KV6a6vCpnGNZPscjzK6B"],
                ["hist_tool_qLV51fWowAMvi1MvPJyw1EPL", "toolu_qLV51fWowAMvi1MvPJyw1EPL"],
            ],
            "emitted_results": [
                ["hist_tool_5S-4KV6a6vCpnGNZPscjzK6B", "toolu_5S-4KV6a6vCpnGNZPscjzK6B"],
                ["hist_tool_qLV51fWowAMvi1MvPJyw1EPL", "toolu_qLV51fWowAMvi1MvPJyw1EPL"],
            ],
            "findings": [
                {
                    "kind": "orphan",
                    "level": "changed",
                    "fault": "canonical",
                    "message": "tool result without a call rendered as text",
                    "subject": "a tool",
                    "call_ids": ["hist_tool_ie37Hop9YoFxBfzvxd7e_vSx"],
                },
                {
                    "kind": "synthetic",
                    "level": "changed",
                    "fault": "canonical",
                    "message": "added an error result for a tool call without a result",
                    "subject": "glob",
                    "call_ids": ["hist_tool_qLV51fWowAMvi1MvPJyw1EPL"],
                },
                {
                    "kind": "reordered",
                    "level": "changed",
                    "fault": "rendering",
                    "message": "tool results moved directly after their calls",
                    "call_ids": ["hist_tool_5S-4KV6a6vCpnGNZPscjzK6B"],
                },
                {
                    "kind": "tools",
                    "level": "changed",
                    "fault": "rendering",
                    "message": "added a stub tool declaration: the history has tool calls but no tools are declared",
                },
                {
                    "kind": "dropped",
                    "level": "lost",
                    "fault": "projection",
                    "message": "`logprobs` dropped: not supported by anthropic",
                    "subject": "logprobs",
                    "paths": ["logprobs"],
                },
                {
                    "kind": "adjusted",
                    "level": "changed",
                    "fault": "projection",
                    "message": "`max_tokens` set to 8192: Anthropic requires it, the body has none",
                    "subject": "max_tokens",
                },
                {
                    "kind": "adjusted",
                    "level": "lost",
                    "fault": "projection",
                    "message": "`seed` dropped: the API has no such option",
                    "subject": "seed",
                },
                {
                    "kind": "id",
                    "level": "changed",
                    "fault": "canonical",
                    "message": "call id 'call_0' used by an earlier call too: results paired with their calls by order",
                    "subject": "glob",
                    "call_ids": ["hist_tool_qLV51fWowAMvi1MvPJyw1EPL"],
                },
                {
                    "kind": "name",
                    "level": "changed",
                    "fault": "projection",
                    "message": "tool 'ns.look' renamed to 'ns_look_yiufnj7d'",
                    "subject": "ns.look",
                },
            ],
        }
    )
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()


def test_a_report_is_empty_where_nothing_was_decided():
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}]}
    assert segue.convert(body, target="openai-chat").report.findings == []


def test_every_kind_has_a_fault():
    report = Report()
    report.add("dedupe", "x")
    report.add("moved", "x")
    report.add("name", "x")
    report.add("name", "x", fault="canonical")
    assert [finding.fault for finding in report.findings] == ["canonical", "rendering", "projection", "canonical"]


def test_findings_that_differ_only_in_call_or_path_are_merged():
    report = Report()
    for number in range(3):
        report.add("synthetic", "x", call_id=f"call_{number}", path=f"messages[{number}]")
    report.add("synthetic", "x", call_id="call_1")
    report.add("synthetic", "x", subject="other")
    merged, other = report.findings
    assert merged.call_ids == ("call_0", "call_1", "call_2")
    assert merged.paths == ("messages[0]", "messages[1]", "messages[2]")
    assert (other.subject, other.call_ids) == ("other", ())
    again = Report()
    again.extend(report.findings)
    again.extend(report.findings)
    assert again.findings == report.findings


def test_every_kind_has_a_level():
    report = Report()
    for kind in ("dropped", "moved", "reasoning"):
        report.add(kind, "x")
        report.add(kind, "x", level="note")
    assert [finding.level for finding in report.findings] == ["lost", "note", "changed", "note", "lost", "note"]


def test_placeholders_are_not_lost_reasoning():
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
    result = {"functionResponse": {"name": "f", "response": {"result": "r"}}}
    user = {"role": "user", "parts": [{"text": "go"}]}
    body = {"contents": [user, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]}
    assert segue.convert(body, source="gemini", target="openai-chat").report.findings_of("reasoning") == []
    call["thoughtSignature"] = "c2lnbmF0dXJl"
    (finding,) = segue.convert(body, source="gemini", target="openai-chat").report.findings_of("reasoning")
    assert finding.level == "lost"


def test_model_of_another_provider_is_reported_by_a_conversation():
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}]}
    chat = segue.Conversation.from_body(body, source="openai-chat")
    (finding,) = chat.render("anthropic").report.findings_of("model")
    assert (finding.level, finding.subject) == ("lost", "gpt-4.1")
    assert not chat.render("anthropic", "claude-sonnet-4-5").report.findings_of("model")
    assert not chat.render("openai-responses").report.findings_of("model")


def test_findings_on_options_are_kept_when_others_follow() -> None:
    """The options of a same-API body are compared first; the id of a call is reported later."""
    call = {"type": "tool_use", "id": "not valid!", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "not valid!", "content": "x"}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "temperature": 0.3,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }
    report = segue.convert(body, source="anthropic", target="anthropic", model="claude-opus-4-7").report
    assert [finding.kind for finding in report.findings] == ["adjusted", "id"]
