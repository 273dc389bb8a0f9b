"""Reply conversion: a provider's reply in the client's API, with the client's names and its own ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

import segue
from tests.bodies.anthropic import assistant as anthropic_assistant
from tests.bodies.anthropic import text
from tests.bodies.anthropic import user as anthropic_user
from tests.bodies.chat import user
from tests.conversations.build import anthropic, anthropic_tool, call, calls, chat, function, result, tool, use
from tests.conversations.replies import anthropic_reply, chat_reply

PATCH = "*** Begin Patch\n*** End Patch"


def _names(body: dict[str, Any]) -> list[str]:
    return [tool["name"] if "name" in tool else tool["function"]["name"] for tool in body["tools"]]


def test_text_from_anthropic_to_a_chat_client() -> None:
    converted = segue.convert(chat(user("Hi.")), source="openai-chat", target="anthropic")
    reply = converted.reply(anthropic_reply(text("Hello."), text(" You.")))
    (choice,) = reply["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == "Hello. You."
    assert choice["finish_reason"] == "stop"
    assert (reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]) == (11, 7)
    assert reply["object"] == "chat.completion"


def test_a_reply_given_as_bytes() -> None:
    converted = segue.convert(chat(user("Hi.")), source="openai-chat", target="anthropic")
    given = anthropic_reply(text("Hello."))
    assert converted.reply(json.dumps(given).encode()) == converted.reply(given)


def test_names_come_back_to_a_chat_client() -> None:
    names = ["ns.tool", "ns tool", "ns_tool", "n" * 80]
    converted = segue.convert(
        chat(user("Go."), tools=[function(n) for n in names]), source="openai-chat", target="anthropic"
    )
    there = _names(converted.body)
    assert len(set(there)) == 4
    reply = converted.reply(anthropic_reply(*(use(f"toolu_{at}", name, {"n": at}) for at, name in enumerate(there))))
    message = reply["choices"][0]["message"]
    assert [one["function"]["name"] for one in message["tool_calls"]] == names
    assert [json.loads(one["function"]["arguments"]) for one in message["tool_calls"]] == [{"n": at} for at in range(4)]
    assert reply["choices"][0]["finish_reason"] == "tool_calls"


def test_names_come_back_to_an_anthropic_client() -> None:
    long = "mcp__" + "a" * 100
    converted = segue.convert(
        anthropic(user("Go."), tools=[anthropic_tool(long)]), source="anthropic", target="openai-chat"
    )
    (there,) = _names(converted.body)
    assert len(there) <= 64
    reply = converted.reply(chat_reply(call("call_1", there, {"path": "a"}), content="Reading."))
    assert [block["type"] for block in reply["content"]] == ["text", "tool_use"]
    assert reply["content"][1]["name"] == long
    assert reply["content"][1]["input"] == {"path": "a"}
    assert reply["stop_reason"] == "tool_use"
    assert (reply["usage"]["input_tokens"], reply["usage"]["output_tokens"]) == (11, 7)


def test_a_free_text_call_comes_back_as_free_text() -> None:
    tools = [{"type": "custom", "custom": {"name": "apply_patch"}}]
    converted = segue.convert(chat(user("Go."), tools=tools), source="openai-chat", target="anthropic")
    reply = converted.reply(anthropic_reply(use("toolu_1", "apply_patch", {"input": PATCH})))
    (one,) = reply["choices"][0]["message"]["tool_calls"]
    assert one["type"] == "custom"
    assert one["custom"] == {"name": "apply_patch", "input": PATCH}


@pytest.mark.parametrize("given", ["call_0", "functions.read_file:0", ""])
def test_ids_for_a_client_are_unique_over_the_conversation(given: str) -> None:
    """Claude Code loops without end where an id occurs twice, whatever the provider behind it emits."""
    body = anthropic(user("Go."))
    seen: set[str] = set()
    for turn in range(3):
        converted = segue.convert(body, source="anthropic", target="openai-chat")
        reply = chat_reply(call(given, "read_file", {"path": "a"}), call(given, "read_file", {"path": "b"}))
        blocks = converted.reply(reply)["content"]
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(ids)) == 2, ids
        assert not seen & set(ids), f"turn {turn}: {ids} came before"
        seen |= set(ids)
        results = [result(one, f"content {turn}") for one in ids]
        body = anthropic(*body["messages"], anthropic_assistant(*blocks), anthropic_user(*results))
        assert segue.check(body, "anthropic")
        assert segue.check(segue.convert(body, source="anthropic", target="openai-chat").body, "openai-chat")


@pytest.mark.parametrize(
    ("finish", "expected"), [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")]
)
def test_finish_reasons_to_an_anthropic_client(finish: str, expected: str) -> None:
    converted = segue.convert(anthropic(user("Go.")), source="anthropic", target="openai-chat")
    assert converted.reply(chat_reply(content="Well", finish=finish))["stop_reason"] == expected


@pytest.mark.parametrize(
    ("stop", "expected"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("refusal", "content_filter")],
)
def test_finish_reasons_to_a_chat_client(stop: str, expected: str) -> None:
    converted = segue.convert(chat(user("Go.")), source="openai-chat", target="anthropic")
    reply = converted.reply(anthropic_reply(text("Well"), stop=stop))
    assert reply["choices"][0]["finish_reason"] == expected


def test_reply_is_unchanged_for_same_api() -> None:
    given = chat_reply(call("call_1", "read_file", {"path": "a"}))
    converted = segue.convert(chat(user("Go.")), source="openai-chat", target="openai-chat")
    assert converted.reply(given) == given


def test_thinking_never_comes_back_as_text() -> None:
    converted = segue.convert(chat(user("Go.")), source="openai-chat", target="anthropic")
    thought = {"type": "thinking", "thinking": "secret thought", "signature": "RXFRQg=="}
    reply = converted.reply(anthropic_reply(thought, text("Answer.")))
    assert reply["choices"][0]["message"]["content"] == "Answer."


@pytest.mark.parametrize("garbage", [{}, {"choices": []}, {"choices": [{}]}, b"{", b"[]", b"\xff"])
def test_invalid_reply_is_a_remote_protocol_error(garbage: Any) -> None:
    converted = segue.convert(anthropic(user("Go.")), source="anthropic", target="openai-chat")
    with pytest.raises(segue.RemoteProtocolError):
        converted.reply(garbage)


def test_the_next_request_after_a_mapped_reply_is_the_same_conversation() -> None:
    """The client sends the reply back: the provider gets its own call, name and result."""
    first = chat(user("Go."), tools=[function("files.read")])
    converted = segue.convert(first, source="openai-chat", target="anthropic")
    (there,) = _names(converted.body)
    message = converted.reply(anthropic_reply(use("toolu_01A", there, {"path": "a"})))["choices"][0]["message"]
    (one,) = message["tool_calls"]
    second = chat(user("Go."), calls(one), tool(one["id"], "A"), tools=[function("files.read")])
    body = segue.convert(second, source="openai-chat", target="anthropic").body
    (block,) = body["messages"][1]["content"]
    assert (block["name"], block["input"]) == (there, {"path": "a"})
    assert body["messages"][2]["content"][0]["content"] == "A"
