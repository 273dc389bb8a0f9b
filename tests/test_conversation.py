"""`Conversation`: messages added over time, and a sent history that stays unchanged."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.blocks import Media, Text
from tests.bodies.anthropic import tool
from tests.bodies.chat import call

TOOLS = [tool("look")]


def reply(*calls: tuple[str, str], text: str | None = None) -> dict[str, Any]:
    made = [call(call_id, "look", f'{{"q":"{query}"}}') for call_id, query in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    return {"object": "chat.completion", "model": "gpt-4.1", "choices": [{"index": 0, "message": message}]}


def results(chat: segue.Conversation) -> list[str]:
    return [m["content"] for m in chat.render("openai-chat").body["messages"] if m["role"] == "tool"]


def start_conversation() -> segue.Conversation:
    chat = segue.Conversation(tools=TOOLS)
    chat.add_user("go")
    chat.render("openai-chat")
    chat.add_reply(reply(("a", "1"), ("b", "2")), source="openai-chat")
    return chat


def test_a_result_by_call_by_canonical_id_and_by_raw_id():
    chat = start_conversation()
    first, second = chat.pending
    chat.add_result(first, "one")
    chat.add_result("b", "two")
    assert results(chat) == ["one", "two"]
    chat.add_result(second.id, "two")
    assert results(chat) == ["one", "two"]
    with pytest.raises(segue.InputError, match="nobody"):
        chat.add_result("nobody", "x")


def test_sent_history_stays_unchanged():
    chat = start_conversation()
    chat.add_result("a", "one")
    chat.add_user("never mind")
    sent = chat.render("openai-chat").body["messages"]
    chat.add_reply(reply(text="fine"), source="openai-chat")
    late = chat.messages[1].blocks[1]
    chat.add_result(late.id, "LATE")  # pyright: ignore[reportAttributeAccessIssue]
    after = chat.render("openai-chat")
    assert after.body["messages"][: len(sent)] == sent
    assert [finding.kind for finding in after.report.findings] == ["dedupe"]
    assert segue.Conversation.load(chat.dump()).render("openai-chat").data == after.data


def test_real_result_replaces_unsent_interruption():
    chat = start_conversation()
    chat.add_user("never mind")
    chat.render("openai-chat")
    chat.add_result("a", "one")
    chat.add_result("b", "two")
    assert results(chat) == ["one", "two"]


def test_a_second_result_is_evidence_and_reported():
    chat = start_conversation()
    chat.add_result("a", "one")
    chat.add_result("a", "another")
    chat.add_result("b", {"n": [1, 2.0]})
    rendered = chat.render("openai-chat")
    assert results(chat) == ["one", '{"n":[1,2.0]}']
    assert [finding.kind for finding in rendered.report.findings] == ["dedupe"]


def test_content_parts_of_any_api():
    chat = segue.Conversation()
    chat.add_user([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}])
    chat.add_user([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}])
    chat.add_user((Text("and"), Media("image", "image/png", data="aGk=")))
    for target in ("openai-chat", "anthropic", "kimi"):
        assert segue.check(chat.render(target).body, target)
    assert chat.render("anthropic").data.count(b'"type":"image"') == 3


@pytest.mark.parametrize("content", [None, 5, [1], {"type": "text"}, [{"type": "hologram"}], b"x"])
def test_invalid_content_is_rejected_at_once(content: Any):
    chat = segue.Conversation()
    with pytest.raises(segue.InputError, match="content"):
        chat.add_user(content)
    assert chat.messages == ()


def test_bad_settings_are_refused_by_their_name():
    for settings, path in (({"tools": [1]}, "tools[0]"), ({"system": ["s"]}, "system"), ({"warmth": 1}, "options")):
        with pytest.raises(segue.InputError) as caught:
            segue.Conversation(**settings)
        assert caught.value.path == path
    with pytest.raises(segue.InputError, match="auto, canonical, native"):
        segue.Conversation().render("kimi", ids="zzz")


def test_cancelled_calls_are_marked():
    chat = start_conversation()
    chat.cancel("a")
    chat.add_result("b", "two", error=True)
    assert results(chat) == ["[cancelled before it finished]", "[error] two"]
    assert chat.pending == []


def test_provider_error_is_raised():
    converted = segue.convert({"messages": [{"role": "user", "content": "hi"}]}, target="anthropic")
    with pytest.raises(segue.RemoteProtocolError, match="overloaded_error: Overloaded"):
        converted.reply({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def test_only_allowed_tools_are_declared_cross_api():
    tools = [{"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in "fg"]
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": tools,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed},
    }
    made = segue.convert(body, target="anthropic", model="claude-sonnet-4-5").body
    assert [tool["name"] for tool in made["tools"]] == ["f"]
    assert made["tool_choice"] == {"type": "any"}
    assert segue.convert(body, target="openai-chat").body == body


def test_server_profile_renders_like_convert_and_continues() -> None:
    chat = segue.Conversation(tools=[{"name": "look", "input_schema": {"type": "object"}}])
    chat.add_user("Look.")
    for number in range(3):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {}}
        added = chat.add_reply({"type": "message", "content": [call]}, source="anthropic")
        chat.add_result(added.calls[0], "Nothing.")
        body = chat.render("openai-chat", "llama-3", profile="groq").body
        assert segue.check(body, "openai-chat", model="llama-3", profile="groq")
        assert body == segue.Conversation.load(chat.dump()).render("openai-chat", "llama-3", profile="groq").body
    assert chat.render("openai-chat", "llama-3", profile="groq").fragments[1:]
    with pytest.raises(segue.InputError, match="profile"):
        chat.render("anthropic", profile="groq")
