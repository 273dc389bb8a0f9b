"""What callers write beside the letter of an API: byte order marks, plain texts among parts, policies given whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

import segue
from segue.wire.registry import WIRES

TEXT_BODIES: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"messages": [{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}]}),
    ("anthropic", {"max_tokens": 9, "messages": [{"role": "user", "content": ["a", "b"]}]}),
    ("gemini", {"contents": [{"role": "user", "parts": ["a", "b"]}]}),
    ("openai-responses", {"input": [{"role": "user", "content": ["a", "b"]}]}),
    ("bedrock", {"messages": [{"role": "user", "content": ["a", "b"]}]}),
    ("mistral", {"messages": [{"role": "user", "content": ["a", "b"]}]}),
]
STRICT = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(("source", "body"), TEXT_BODIES)
@pytest.mark.parametrize("target", WIRES)
def test_plain_texts_among_parts_are_accepted_and_reported(source: str, body: dict[str, Any], target: str) -> None:
    api = cast("segue.Api", source)
    for given in (body, json.dumps(body), json.dumps(body).encode()):
        converted = segue.convert(
            given, source=api, target=cast("segue.Api", target), model=WIRES[target].default_model
        )
        assert segue.check(converted.body, cast("segue.Api", target))
        assert "plain text among content parts made a part" in [each.message for each in converted.report.findings]
        chat = segue.Conversation.from_body(given, source=api)
        assert [block.text for block in chat.messages[0].blocks if isinstance(block, segue.Text)] == ["a", "b"]
        rendered = chat.render("anthropic", "claude-sonnet-5")
        assert "plain text among content parts made a part" in str(rendered.report)


@pytest.mark.parametrize("body", [STRICT, STRICT["messages"]])
def test_byte_order_mark_is_accepted_and_reported(body: Any) -> None:
    text = "\ufeff" + json.dumps(body)
    for given in (text, text.encode(), bytearray(text.encode())):
        converted = segue.convert(given, target="anthropic", model="claude-sonnet-5")
        assert converted.body["messages"] == [{"role": "user", "content": "Hello"}]
        assert "changed: byte order mark removed" in str(converted.report).splitlines()
        assert segue.Conversation.from_body(given).messages
        assert segue.complete(given, "emulated").text


def test_strict_body_gets_no_finding_and_other_mistakes_stay_errors() -> None:
    assert not segue.convert(STRICT, target="openai-chat").report.findings
    for content in ([1], [None], [["a"]]):
        with pytest.raises(segue.InputError, match=r"messages\[0\].content\[0\]"):
            segue.convert({"messages": [{"role": "user", "content": content}]}, target="anthropic")


def test_policy_is_passed_whole() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]}
    keep = segue.Policy(pending="keep", ids="canonical")
    chat = segue.Conversation.from_body(body)
    by_fields = segue.convert(body, target="kimi", pending="keep", ids="canonical").body
    assert segue.convert(body, target="kimi", policy=keep).body == by_fields
    assert chat.render("kimi", policy=keep).body["messages"] == by_fields["messages"]
    with pytest.raises(segue.InputError, match="pending"):
        segue.convert(body, target="kimi", policy=keep, pending="keep")
    with pytest.raises(segue.InputError, match="policy"):
        segue.convert(body, target="kimi", policy=cast("segue.Policy", "keep"))


def test_provider_with_several_apis_gets_the_body_s_own() -> None:
    for source in ("openai-chat", "openai-responses"):
        body = {"input": "Hello"} if source == "openai-responses" else STRICT
        assert segue.convert(body, target=cast("segue.Api", "openai")).target == source
    with pytest.raises(segue.InputError, match="pass one of openai-responses, openai-chat"):
        segue.convert({"contents": []}, source="gemini", target=cast("segue.Api", "openai"))


@pytest.mark.parametrize(
    ("target", "model", "is_reported"),
    [
        ("anthropic", "gpt-4.1", True),
        ("gemini", "claude-sonnet-5", True),
        ("openai-responses", "kimi-k2.6", True),
        ("kimi", "gpt-4.1", True),
        ("anthropic", "claude-sonnet-5", False),
        ("openai-responses", "gpt-4.1", False),
        ("openai-chat", "claude-sonnet-5", False),  # many servers have this API
        ("bedrock", "us.anthropic.claude-sonnet-5", False),
        ("anthropic", "my-alias", False),
    ],
)
def test_model_of_another_vendor_has_a_finding(target: segue.Api, model: str, *, is_reported: bool) -> None:
    findings = segue.convert(STRICT, target=target, model=model).report.findings_of("model")
    assert bool(findings) == is_reported


def test_report_prints_its_findings_lost_first() -> None:
    body = {**STRICT, "user": "me", "presence_penalty": 1.5, "temperature": 1.5}
    report = segue.convert(body, target="anthropic", model="claude-sonnet-4-5").report
    lines = str(report).splitlines()
    levels = [line.partition(":")[0] for line in lines]
    assert levels == sorted(levels, key=("lost", "changed", "note").index)
    assert sorted(lines) == sorted(map(str, report.findings))
    assert lines[0].startswith("lost: ")
    assert str(segue.convert(STRICT, target="openai-chat").report) == "no findings"


def test_reprs_say_what_there_is() -> None:
    chat = segue.Conversation()
    chat.add_user("Hello")
    chat.add_assistant("Hi!")
    assert repr(chat) == f"<Conversation: 2 messages, about {chat.tokens} tokens>"
    assert repr(segue.Reply((segue.Text("Hi"),), usage=segue.Usage(5, 2))) == (
        "Reply(blocks=(Text(text='Hi'),), usage=Usage(input=5, output=2))"
    )
    assert [message.speaker for message in chat.messages] == ["human", "ai"]
    assert repr(segue.convert({**STRICT, "n": 2}, target="anthropic", model="claude-x")).endswith("findings>")


@pytest.mark.parametrize("text", ["Hello!", "  tell me", "null"])
@pytest.mark.parametrize(
    "use",
    [
        lambda text: segue.convert(text, target="kimi"),
        lambda text: segue.check(text, "kimi"),
        lambda text: segue.repair(text, "kimi"),
        segue.Conversation.from_body,
        lambda text: segue.complete(text, "emulated/claude-sonnet-5"),
    ],
    ids=["convert", "check", "repair", "from_body", "complete"],
)
def test_a_text_in_the_place_of_a_body_says_what_to_pass(use: Callable[[str], object], text: str) -> None:
    with pytest.raises(segue.InputError, match=r'a string is a body in JSON; pass a list such as \[\{"role"'):
        use(text)


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({"temperature": "hot"}, "options.temperature", "a number was expected, not a string"),
        ({"max_tokens": []}, "options.max_tokens", "a whole number was expected, not a list"),
        ({"parallel": 1}, "options.parallel", "true or false was expected, not a whole number"),
    ],
)
def test_an_option_of_another_type_is_named_in_words(options: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        segue.Conversation(**options)
    assert (caught.value.path, caught.value.message) == (path, message)


def test_results_print_what_they_are_and_count_in_words() -> None:
    chat = segue.Conversation()
    chat.add_user("Hello")
    body = chat.render("anthropic", model="claude-sonnet-5")
    assert repr(body) == "<Rendered for anthropic: 1 finding>"
    assert repr(chat).startswith("<Conversation: 1 message, about ")
    one = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert repr(segue.extract(one)) == "<Extracted from hermes: 1 call>"
    assert repr(segue.convert(body.body, target="kimi")) == "<Converted anthropic → kimi: 1 finding>"
