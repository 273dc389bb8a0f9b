"""Parts of a reply that the caller's API cannot represent are listed in the report of that reply."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from tests.bodies.anthropic import text
from tests.bodies.chat import user
from tests.conversations.build import anthropic, call, chat, use
from tests.conversations.replies import anthropic_reply, chat_reply, gemini_reply, responses_reply

FROM_CHAT = chat(user("Go."))
FROM_ANTHROPIC = anthropic(user("Go."))
FROM_RESPONSES = {"model": "gpt-5.1", "input": [user("Go.")]}
FROM_GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Go."}]}]}
SOURCES = {
    "mistral": {**FROM_CHAT, "model": "mistral-large-latest"},
    "openai-chat": FROM_CHAT,
    "anthropic": FROM_ANTHROPIC,
    "openai-responses": FROM_RESPONSES,
    "gemini": FROM_GEMINI,
}


def _converted(source: str, target: str) -> segue.Converted:
    return segue.convert(SOURCES[source], source=source, target=target)


def _finding_kinds(converted: segue.Converted) -> list[tuple[str, str | None]]:
    assert converted.reply_report is not None
    return [(finding.kind, finding.subject) for finding in converted.reply_report.findings]


# ------------------------------------------------------------------------------------------------------------- finishes

FINISHES = {
    "openai-chat": lambda reply: reply["choices"][0]["finish_reason"],
    "anthropic": lambda reply: reply["stop_reason"],
    "openai-responses": lambda reply: (reply["status"], (reply["incomplete_details"] or {}).get("reason")),
    "gemini": lambda reply: reply["candidates"][0]["finishReason"],
}


@pytest.mark.parametrize("source", ["openai-chat", "anthropic", "openai-responses", "mistral"])
@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "OTHER"])
def test_failed_reply_is_an_error_and_no_normal_finish(source: str, finish: str) -> None:
    converted = _converted(source, "gemini")
    given = {"candidates": [{"index": 0, "finishReason": finish}], "modelVersion": "gemini-2.5-pro"}
    with pytest.raises(segue.RemoteProtocolError, match=finish):
        converted.reply(given)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("openai-chat", "length"),
        ("openai-responses", ("incomplete", "max_output_tokens")),
        ("gemini", "MAX_TOKENS"),
        ("anthropic", "pause_turn"),
    ],
)
def test_pause_is_no_normal_finish(source: str, expected: Any) -> None:
    converted = _converted(source, "anthropic")
    reply = converted.reply(anthropic_reply(text("Still searching."), stop="pause_turn"))
    assert FINISHES[source](reply) == expected
    assert (("adjusted", "finish") in _finding_kinds(converted)) == (source != "anthropic")


# -------------------------------------------------------------------------------------------------------------- content


def test_text_before_and_after_a_call_is_separated() -> None:
    converted = _converted("openai-chat", "anthropic")
    blocks = text("I look."), use("toolu_1", "read_file", {"path": "a"}), text("Then"), text(" I tell.")
    message = converted.reply(anthropic_reply(*blocks))["choices"][0]["message"]
    assert message["content"] == "I look.\n\nThen I tell."
    assert len(message["tool_calls"]) == 1


def test_image_in_a_reply_to_an_anthropic_client_is_reported() -> None:
    converted = _converted("anthropic", "gemini")
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    reply = converted.reply(gemini_reply({"text": "Here."}, picture))
    assert [block["type"] for block in reply["content"]] == ["text", "text"]
    assert reply["content"][1]["text"] == "[image not supported here]"
    assert ("text", "image") in _finding_kinds(converted)


def test_call_without_a_name_is_a_remote_protocol_error() -> None:
    entry = {"id": "call_1", "type": "function", "function": {"name": None, "arguments": "{}"}}
    with pytest.raises(segue.RemoteProtocolError, match="a tool call without a name"):
        _converted("anthropic", "openai-chat").reply(chat_reply(entry))


@pytest.mark.parametrize(("given", "expected"), [({"input": "x"}, "x"), ({"wrong": 1}, '{"wrong":1}'), ({}, "{}")])
def test_a_free_text_tool_is_always_called_with_text(given: Any, expected: str) -> None:
    body = {**FROM_RESPONSES, "tools": [{"type": "custom", "name": "apply_patch"}]}
    converted = segue.convert(body, source="openai-responses", target="anthropic")
    (item,) = converted.reply(anthropic_reply(use("toolu_1", "apply_patch", given)))["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", expected)


def test_created_is_the_providers_timestamp() -> None:
    assert _converted("openai-chat", "openai-responses").reply({**responses_reply(), "created_at": 7})["created"] == 7
    assert (
        _converted("openai-responses", "openai-chat").reply({**chat_reply(content="a"), "created": 7})["created_at"]
        == 7
    )
    moment = {**gemini_reply({"text": "a"}), "createTime": "1970-01-02T00:00:01.5Z"}
    assert _converted("openai-chat", "gemini").reply(moment)["created"] == 86_401
    assert _converted("openai-chat", "anthropic").reply(anthropic_reply(text("a")))["created"] == 0


# --------------------------------------------------------------------------------------------------------------- report


def test_additional_choices_are_reported() -> None:
    given = chat_reply(content="One.")
    given["choices"].append({**given["choices"][0], "index": 1})
    converted = _converted("anthropic", "openai-chat")
    assert converted.reply(given)["content"][0]["text"] == "One."
    assert _finding_kinds(converted) == [("dropped", "choices")]
    same_api = _converted("openai-chat", "openai-chat")
    assert same_api.reply(given) == given
    assert _finding_kinds(same_api) == []


def test_source_only_reply_fields_are_reported() -> None:
    found = {"type": "web_search_result_location", "url": "https://a.example", "cited_text": "a"}
    converted = _converted("openai-chat", "anthropic")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "RXFRQg=="}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}}
    converted.reply(anthropic_reply(thought, search, {**text("A."), "citations": [found]}))
    assert _finding_kinds(converted) == [("dropped", "citations"), ("reasoning", None), ("dropped", "web_search")]

    grounded = gemini_reply({"text": "A."})
    grounded["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["a"]}
    converted = _converted("anthropic", "gemini")
    converted.reply(grounded)
    assert _finding_kinds(converted) == [("dropped", "groundingMetadata")]

    note = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}
    part = {"type": "output_text", "text": "A.", "annotations": [note]}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    converted = _converted("anthropic", "openai-responses")
    converted.reply(responses_reply(message))
    assert _finding_kinds(converted) == [("dropped", "annotations")]

    converted = _converted("anthropic", "openai-chat")
    given = chat_reply(content="A.")
    given["choices"][0]["message"]["annotations"] = [note]
    converted.reply(given)
    assert _finding_kinds(converted) == [("dropped", "annotations")]


def test_a_report_of_each_reply_and_one_of_all() -> None:
    converted = _converted("anthropic", "openai-chat")
    before = len(converted.report.findings)
    assert converted.reply_report is None
    given = chat_reply(content="A.")
    given["choices"][0]["logprobs"] = {"content": [{"token": "A"}]}
    for _ in range(2):
        converted.reply(given)
        assert _finding_kinds(converted) == [("dropped", "logprobs")]
        assert len(converted.report.findings) == before + 1
    converted.reply(chat_reply(content="B."))
    assert _finding_kinds(converted) == []


def test_a_plain_answer_has_nothing_to_report() -> None:
    converted = _converted("openai-chat", "anthropic")
    converted.reply(anthropic_reply(text("A."), use("toolu_1", "read_file", {"path": "a"})))
    assert _finding_kinds(converted) == []
    converted = _converted("anthropic", "openai-chat")
    converted.reply(chat_reply(call("call_1", "read_file", {"path": "a"}), content="A."))
    assert _finding_kinds(converted) == []


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("target", "body", "expected"),
    [
        (
            "openai-responses",
            {**responses_reply(status="failed"), "error": {"code": "server_error", "message": "boom"}},
            (500, "server_error", "server_error", "boom"),
        ),
        (
            "openai-responses",
            {**responses_reply(status="failed"), "error": {"code": "rate_limit_exceeded", "message": "slow"}},
            (429, "rate_limit_exceeded", "rate_limit_error", "slow"),
        ),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            (529, None, "overloaded_error", "Overloaded"),
        ),
        (
            "gemini",
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}},
            (429, "RESOURCE_EXHAUSTED", "rate_limit_error", "quota"),
        ),
        (
            "openai-chat",
            {"error": {"message": "bad", "type": "invalid_request_error", "code": "x", "param": None}},
            (None, "x", "invalid_request_error", "bad"),
        ),
    ],
)
def test_error_has_the_providers_message(target: str, body: Any, expected: Any) -> None:
    with pytest.raises(segue.RemoteProtocolError) as raised:
        segue.convert(FROM_CHAT, source="openai-chat", target=target).reply(body)
    error = raised.value
    assert (error.status, error.code, error.kind, error.message) == expected


def test_invalid_reply_has_no_status() -> None:
    with pytest.raises(segue.RemoteProtocolError) as raised:
        _converted("openai-chat", "anthropic").reply({})
    assert (raised.value.status, raised.value.code, raised.value.kind) == (None, None, None)
    assert raised.value.message == str(raised.value)
