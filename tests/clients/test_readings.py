"""The comparison of what segue reads with what a client sends must find every difference."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from segue._conversation import Conversation
from tests.clients.reading_judge import compare_histories

PROMPT = "TASK-LAST"
_THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
_CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "RESULT"}


def _messages() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": [_THINKING, {"type": "text", "text": "On it."}, _CALL]},
        {"role": "user", "content": [_RESULT]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def _compare(read: list[dict[str, Any]], sent: list[dict[str, Any]]) -> list[str]:
    history = Conversation.from_body({"messages": read}, source="anthropic").messages
    body = {"messages": [*sent, {"role": "user", "content": PROMPT}]}
    return compare_histories("anthropic", history, body, PROMPT)[0]


def test_equal_histories_have_no_differences():
    assert _compare(_messages(), _messages()) == []


def test_context_of_the_client_is_not_compared():
    sent = _messages()
    text = "As you answer the user's questions, you can use the following context:\nX"
    reminder = f"<system-reminder>\n{text}\n</system-reminder>"
    sent[0]["content"] = [{"type": "text", "text": reminder}, {"type": "text", "text": "Hello.\n"}]
    sent.insert(1, {"role": "system", "content": "# Environment"})
    assert _compare(_messages(), sent) == []


def test_prompts_in_instructions_are_compared():
    sent = _messages()
    text = "The user sent a new message while you were working:\nQUEUED\n\nThis is how Claude Code surfaces messages."
    sent.insert(3, {"role": "system", "content": text})
    assert _compare(_messages(), sent) == ['not read: human text "QUEUED"']


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda messages: messages.pop(), "ai text"),
        (lambda messages: messages[1]["content"].pop(0), "ai thinking"),
        (lambda messages: messages[1]["content"].reverse(), "ai"),
        (lambda messages: messages[0].update(content="Hello!"), "human text"),
        (lambda messages: messages[2]["content"][0].update(content="OTHER"), "tool result"),
        (lambda messages: messages[1]["content"][2].update(input={"command": "rm"}), "ai call"),
        (lambda messages: messages[1]["content"][0].update(signature="b3RoZXI="), "ai thinking"),
    ],
)
def test_differences_are_found(change: Any, kind: str):
    read = copy.deepcopy(_messages())
    change(read)
    found = _compare(read, _messages())
    assert found
    assert all(kind in line for line in found)
