"""Servers whose chat templates put text parts together without white space get the texts of a message as one."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from tests.each import for_each

REMINDER, ASKED, IMAGE = "<system-reminder>Be brief.</system-reminder>", "Fix it", "https://a.example/a.png"


def _text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def _body(**fields: Any) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {
        "model": "local",
        "messages": [
            {"role": "system", "content": _text("One.", "Two.")},
            {"role": "user", "content": _text(REMINDER, ASKED)},
            {"role": "assistant", "content": _text("I", "look."), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": _text("a", "b")},
            {"role": "user", "content": "Plain."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
        ],
        **fields,
    }


JOINED = ["One.\n\nTwo.", f"{REMINDER}\n\n{ASKED}", "I\n\nlook.", "a\n\nb", "Plain."]


@pytest.mark.parametrize("profile", ["vllm", "llama.cpp"])
# `n` has no canonical field, and an unknown key of a message is not read by the fast path.
@for_each("fields", [{}, {"n": 1}], ids=repr)
def test_texts_are_joined_with_an_empty_line(profile: str, fields: dict[str, Any]) -> None:
    for unusual in ({}, {"unusual": 1}):
        body = _body(**fields)
        body["messages"][-1] |= unusual
        for source in ("openai-chat", "anthropic", "openai-responses"):
            given = body if source == "openai-chat" else segue.convert(body, source="openai-chat", target=source).body
            out = segue.convert(given, source=source, target="openai-chat", profile=profile)
            contents = [message["content"] for message in out.body["messages"]]
            assert contents[1:] == JOINED[1:], source
            assert contents[0].split() == JOINED[0].split()
            assert segue.check(out.body, "openai-chat", profile=profile)
        again = segue.convert(out.body, source="openai-chat", target="openai-chat", profile=profile)
        assert again.body == out.body


@for_each("profile", ["vllm", "llama.cpp"])
def test_texts_around_a_picture_stay_parts(profile: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": IMAGE}}
    body = {"model": "local", "messages": [{"role": "user", "content": [*_text("a", "b"), picture, *_text("c")]}]}
    (message,) = segue.convert(body, source="openai-chat", target="openai-chat", profile=profile).body["messages"]
    assert message["content"] == [*_text("a\n\nb"), picture, *_text("c")]


@for_each("profile", [None, "groq", "openrouter"])
def test_other_servers_get_the_parts(profile: str | None) -> None:
    body = _body()
    out = segue.convert(body, source="openai-chat", target="openai-chat", profile=profile)
    assert out.body["messages"][1]["content"] == _text(REMINDER, ASKED)
