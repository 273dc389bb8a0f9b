"""Arguments of a wrong type: an `InputError` that names the argument, whichever function was called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import segue

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a"}]}
WRONG: tuple[Any, ...] = (5, [], ["anthropic"], b"anthropic", {})


def _convert(argument: str) -> Callable[[Any], Any]:
    return lambda value: segue.convert(BODY, **{"target": "openai-chat", argument: value})


def _render(value: Any, **given: Any) -> Any:
    chat = segue.Conversation()
    chat.add_user("a")
    return chat.render(value, **given)


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    *((name, _convert(name)) for name in ("target", "source", "model", "profile", "tool_format", "fetch")),
    *((name, _convert(name)) for name in ("ids", "reasoning", "hosted", "pending", "orphans")),
    ("api", lambda value: segue.check(BODY, value)),
    ("model", lambda value: segue.check(BODY, "openai-chat", model=value)),
    ("profile", lambda value: segue.check(BODY, "openai-chat", profile=value)),
    ("api", lambda value: segue.repair(BODY, value)),
    ("model", lambda value: segue.repair(BODY, "openai-chat", model=value)),
    ("profile", lambda value: segue.repair(BODY, "openai-chat", profile=value)),
    ("model", segue.detect),
    ("target", lambda value: segue.convert_tools([], target=value)),
    ("source", lambda value: segue.convert_tools([], target="kimi", source=value)),
    ("model", lambda value: segue.convert_tools([], target="kimi", model=value)),
    ("target", _render),
    ("model", lambda value: _render("kimi", model=value)),
    ("tool_format", lambda value: _render("kimi", tool_format=value)),
    ("source", lambda value: segue.Conversation.from_body(BODY, source=value)),
]


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize(("argument", "call"), CALLS)
def test_a_wrong_argument_is_named(argument: str, call: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(segue.InputError) as raised:
        call(value)
    assert raised.value.path == argument


def test_none_is_not_a_model_name() -> None:
    with pytest.raises(segue.InputError):
        segue.detect(None)


def test_unknown_profile_has_one_error_message() -> None:
    messages: list[str] = []
    for call in (
        segue.repair,
        segue.check,
        lambda body, api, profile: segue.convert(body, target=api, profile=profile),
    ):
        for api in ("openai-chat", "kimi"):
            with pytest.raises(segue.InputError) as raised:
                call(BODY, api, profile="lighthouse")
            messages.append(str(raised.value))
    assert len(set(messages)) == 2
    assert "vllm" in messages[0]


@pytest.mark.parametrize(
    "fail",
    [
        lambda name: segue.convert({"messages": []}, target=name),
        lambda name: segue.convert({"messages": []}, source=name, target="anthropic"),
        lambda name: segue.convert({"messages": []}, target="anthropic", tool_format=name),
        lambda name: segue.convert({"messages": []}, target="anthropic", ids=name),
        lambda name: segue.convert({"messages": [{"role": name, "content": ""}]}, source="kimi", target="anthropic"),
        lambda name: segue.check({}, name),
        lambda name: segue.check({}, "openai-chat", profile=name),
        lambda name: segue.extract("", name),
        lambda name: segue.assemble(b"", name),
        lambda name: segue.parse_item({}, name),
        lambda name: segue.convert_tools([], source=name, target="gemini"),
    ],
)
@pytest.mark.parametrize("name", ["q" * 10_000, "it's " * 2_000, "\"'\\" * 3_000, "\n" * 10_000])
def test_long_name_is_not_echoed_whole(fail: Callable[[str], object], name: str) -> None:
    with pytest.raises(segue.InputError) as caught:
        fail(name)
    assert len(str(caught.value)) < 400
    assert repr(name)[:20] in str(caught.value)


@pytest.mark.parametrize(
    ("source", "body", "place"),
    [
        ("gemini", {"contents": [{"role": "user", "content": "a"}]}, "contents[0].parts"),
        ("gemini", {"contents": [{"content": "a"}]}, "contents[0].parts"),
        ("openai-chat", {"messages": [{"role": "user", "text": "a"}]}, "messages[0].content"),
        ("openai-chat", {"messages": [{"role": "system", "parts": [{"text": "a"}]}]}, "messages[0].content"),
        ("openai-responses", {"input": [{"role": "user", "text": "a"}]}, "input[0].content"),
        ("anthropic", {"messages": [{"role": "user", "text": "a"}]}, "messages[0].content"),
    ],
)
def test_a_message_with_its_text_under_the_wrong_key_is_rejected(source: Any, body: Any, place: str) -> None:
    with pytest.raises(segue.InputError) as error:
        segue.convert(body, source=source, target="openai-chat")
    assert error.value.path == place
