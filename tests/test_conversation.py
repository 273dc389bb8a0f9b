"""`Conversation`: messages added over time, and a sent history that stays unchanged."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.canonical.blocks import Media, Text
from segue.canonical.request import Options
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
    for number in range(6):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {}}
        added = chat.add_reply({"type": "message", "content": [call]}, source="anthropic")
        chat.add_result(added.calls[0], "Nothing.")
        body = chat.render("openai-chat", "llama-3", profile="groq").body
        assert segue.check(body, "openai-chat", model="llama-3", profile="groq")
        assert body == segue.Conversation.load(chat.dump()).render("openai-chat", "llama-3", profile="groq").body
    assert chat.render("openai-chat", "llama-3", profile="groq").fragments[1:]
    with pytest.raises(segue.InputError, match="profile"):
        chat.render("anthropic", profile="groq")


# -------------------------------------------------------------------------------------------------------- bad arguments

CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize("tools", [5, True, None, "x", b"x", {"name": "f"}, object()])
def test_tools_are_a_list(tools):
    with pytest.raises(segue.InputError, match=r"^tools: a list of tool declarations was expected, not "):
        segue.Conversation(tools=tools)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x", "content: bytes are not text"),
        (bytearray(b"x"), "content: bytes are not text"),
        (memoryview(b"x"), "content: bytes are not text"),
        (object(), "content: a value of type 'object' can't be written as JSON"),
        ({"a": [object()]}, r"content\.a\[0\]: a value of type 'object'"),
        (float("nan"), "content: nan is not a JSON number"),
        ({5: 1}, "content: an object's key must be a string"),
        (CYCLE, r"content\[0\]: a value that contains itself"),
        ([{"type": "text"}], r"content\[0\]\.text: a string was expected, not null"),
        ([{"type": "text", "text": 5}], r"content\[0\]\.text: a string was expected, not a number"),
    ],
)
def test_a_result_that_is_not_json_is_refused_with_its_place(content, message):
    chat = start_conversation()
    with pytest.raises(segue.InputError, match=f"^{message}"):
        chat.add_result("a", content)
    assert len(chat.pending) == 2


@pytest.mark.parametrize(
    ("content", "sent"), [(5, "5"), (True, "true"), ([1], "[1]"), ("\ud83d", "\ufffd"), (None, "")]
)
def test_a_result_that_is_json_is_kept(content, sent):
    chat = start_conversation()
    chat.add_result("a", content)
    assert results(chat)[0] == sent


@pytest.mark.parametrize(
    ("call_id", "more", "message"),
    [
        (5, {}, "call: a call or its id was expected, not int"),
        (["a"], {}, "call: a call or its id was expected, not list"),
        ("none", {}, "call: unknown tool call 'none'"),
        ("a", {"error": "yes"}, "error: a boolean was expected, not str"),
    ],
)
def test_a_result_of_no_call_is_refused(call_id, more, message):
    with pytest.raises(segue.InputError, match=f"^{message}"):
        start_conversation().add_result(call_id, "x", **more)


def raise_error(url):
    raise OSError("no network")


IMAGE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}


@pytest.mark.parametrize(
    ("fetch", "message"),
    [
        (5, "a function that takes a URL was expected"),
        (raise_error, "'https://x.example/a.png' was not fetched: OSError: no network"),
        (lambda: None, "'https://x.example/a.png' was not fetched: TypeError: "),
        (lambda url: None, "bytes and a media type were expected for 'https://x.example/a.png', not NoneType"),
        (lambda url: b"x", "bytes and a media type were expected"),
        (lambda url: ("x", "image/png"), "bytes and a media type were expected"),
        (lambda url: (b"x", 5), "bytes and a media type were expected"),
        (lambda url: (b"x", "image/png", 5), "bytes and a media type were expected"),
    ],
)
def test_a_fetch_that_fails_is_an_input_error(fetch, message):
    chat = segue.Conversation()
    chat.add_user([IMAGE])
    body = {"messages": [{"role": "user", "content": [IMAGE]}]}
    for render in (
        lambda: chat.render("bedrock", fetch=fetch),
        lambda: segue.convert(body, source="openai-chat", target="bedrock", fetch=fetch),
    ):
        with pytest.raises(segue.InputError) as raised:
            render()
        assert raised.value.path == "fetch"
        assert message in raised.value.message
        assert isinstance(raised.value.__cause__, OSError | TypeError) == ("not fetched" in message)


def test_options_of_one_render_replace_those_of_the_conversation():
    chat = segue.Conversation(temperature=0.5, max_tokens=100)
    chat.add_user("Hi")
    options = Options(max_tokens=7)
    for _ in range(3):
        body = chat.render("anthropic", "claude-sonnet-4-5", options=options).body
        assert (body["max_tokens"], body.get("temperature")) == (7, None)
    assert chat.options == Options(temperature=0.5, max_tokens=100)
    assert chat.render("anthropic", "claude-sonnet-4-5").body["max_tokens"] == 100


def test_merged_options_keep_what_the_other_does_not_set():
    one = Options(temperature=0.5, seed=1, vendor_options={"store": True, "verbosity": "low"})
    merged = one.merge(Options(seed=2, vendor_options={"store": False}))
    assert merged == Options(temperature=0.5, seed=2, vendor_options={"store": False, "verbosity": "low"})
    assert one.merge(None) is one
