"""Stored reasoning does not depend on routes, nor on the reminders that clients put into a user's texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from segue.bridge import Route
from segue.bridge.digests import ConversationDigest, digest_opening
from segue.bridge.entries import EntryMemory
from segue.canonical.blocks import Message, Text, ToolCall
from segue.wire.registry import WIRES
from tests.bridge.exchanges import Shell, endpoint
from tests.bridge.test_sealed_reasoning import EVERY_PAIR, UPSTREAMS, Body, Chat, strip_reasoning, thoughts_in
from tests.budget import examples

REMINDER = "<system-reminder>\nToday's date is {}.\n</system-reminder>"


def echo_less(caller: str) -> Callable[[Body], Body]:
    return strip_reasoning if caller == "openai-chat" else lambda body: body


@EVERY_PAIR
def test_all_thoughts_come_back_on_any_route(caller: str, api: str) -> None:
    """The name of the route and its other targets change with each request, and so does the worker."""
    other = next(other for other in ("gemini", "anthropic", "bedrock") if other not in (api, caller))
    memory, chat = EntryMemory(), Chat(caller, change=echo_less(caller))
    own, foreign = endpoint(api), endpoint(other, 1)
    shells = [Shell(own, memory=memory) for _ in range(2)]
    expected: list[str] = []
    for number, targets in enumerate([(own,), (own, foreign), (foreign, own), (own,), (foreign,), (own, foreign)]):
        shell = shells[number % 2]
        shell.route = Route(f"route {number}", targets)
        first = targets[0].api
        answer = chat.ask(shell, first, f"Thought {number} of {first}.")
        if first == api:
            # Thoughts of the other provider may come back too, where it is that of the caller.
            found = [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
            assert [text for text in found if f"of {api}." in text] == expected
            expected.append(f"Thought {number} of {api}.")
    assert len(expected) == 4


def add_reminder(body: Body, text: str, place: int) -> Body:
    """Return a body with a reminder in the user's first text, at its beginning or its end."""
    question = next(iter(_user_texts(body)))
    changed = f"{text}\n{question}" if place == 0 else f"{question}\n\n{text}"
    old, new = (json.dumps(value)[1:-1] for value in (question, changed))
    return json.loads(json.dumps(body).replace(old, new, 1))


def _user_texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _user_texts(item)]
    if not isinstance(value, dict):
        return []
    if value.get("role") != "user":
        return [text for inner in value.values() for text in _user_texts(inner)]
    content = value.get("content", value.get("parts")) or ()
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


@EVERY_PAIR
def test_reminders_change_nothing(caller: str, api: str) -> None:
    """A client adds its reminders anew to each request: another text, at another place, or none."""
    count = 0

    def change(body: Body) -> Body:
        nonlocal count
        count += 1
        body = echo_less(caller)(body)
        return body if count % 3 == 0 else add_reminder(body, REMINDER.format(count), count % 3 - 1)

    shell, chat = Shell(endpoint(api)), Chat(caller, change=change)
    for number in range(4):
        answer = chat.ask(shell, api, f"Thought {number}.")
        texts = [block.text for block in thoughts_in(api, answer.sent_bodies[-1])]
        assert texts == [f"Thought {earlier}." for earlier in range(number)]


@pytest.mark.parametrize("api", UPSTREAMS)
@pytest.mark.parametrize("text", ["Another question.", "<system-reminder>not closed", "<env>Linux</env>"])
def test_other_changes_of_a_users_text_are_another_conversation(api: str, text: str) -> None:
    shell = Shell(endpoint(api))
    chat = Chat("openai-chat", change=strip_reasoning)
    chat.ask(shell, api, "A thought.")
    chat.body = add_reminder(chat.body, text, 1)
    assert thoughts_in(api, chat.ask(shell, api).sent_bodies[-1]) == []


words = st.text(st.sampled_from("ab <>/"), max_size=6)
reminders = st.lists(st.tuples(words, words.filter(lambda text: "<" not in text)), max_size=4)


@examples(50)
@given(words, reminders)
def test_only_closed_reminders_are_left_out(last: str, parts: list[tuple[str, str]]) -> None:
    with_reminders = "".join(f"{text}<system-reminder>{inner}</system-reminder>" for text, inner in parts) + last
    without = "".join(text for text, _ in parts) + last

    def digest(text: str) -> str:
        messages = [Message("human", (Text(text),)), Message("ai", (ToolCall("look", {}, "x"),))]
        return ConversationDigest().add(messages)[0][-1]

    assert digest(with_reminders) == digest(without)
    assert digest(without) != digest(without + "c")
    assert digest(with_reminders + "<system-reminder>") != digest(without)


def test_many_reminders_that_are_not_closed_cost_no_more_than_their_text() -> None:
    ConversationDigest().add([Message("human", (Text("<system-reminder>" * 500_000),))])


def test_words_of_reminders_alone_open_no_conversation() -> None:
    wire = WIRES["openai-chat"]
    question = {"role": "user", "content": "Hello"}
    reminder = {"role": "user", "content": REMINDER.format("today")}
    first, second = (json.dumps(items).encode() for items in ([question], [reminder, question, reminder]))
    assert digest_opening(wire, Raw(first)) == digest_opening(wire, Raw(second))
