"""A hand-over has what the history shows, nothing else, and each statement names its turn."""

from __future__ import annotations

import re
from typing import Any

import pytest

import segue
from segue.view.brief import Brief, make_brief
from tests.budget import sample
from tests.conversations.build import Case
from tests.conversations.table import CASES


def call(chat: segue.Conversation, name: str, arguments: Any, result: object = "ok", *, error: bool = False) -> None:
    reply = chat.add_reply(segue.Reply((segue.ToolCall(name, arguments),)))
    if result is not None:
        chat.add_result(reply.calls[0], result, error=error)


@pytest.fixture
def chat() -> segue.Conversation:
    made = segue.Conversation()
    made.add_user("Fix the   failing test.\nKeep the API.")
    call(made, "shell", {"command": "pytest -q"}, "1 failed", error=True)
    call(made, "Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"})
    call(made, "write_file", {"path": "notes.txt", "content": "one\ntwo"})
    call(made, "write_file", {"path": "denied.txt", "content": "no"}, "denied", error=True)
    call(made, "apply_patch", {"input": "*** Begin Patch\n*** Update File: b.py\n@@\n-old\n+new\n*** End Patch"})
    call(made, "todo", {"items": [{"text": "fix", "state": "done"}, {"text": "document", "state": "doing"}]})
    call(made, "shell", {"command": "pytest -q"}, "2 passed")
    made.add_user("Go on.")
    call(made, "shell", {"command": "make docs"}, None)
    return made


def test_statements_are_taken_from_the_history(chat: segue.Conversation) -> None:
    brief = make_brief(chat.messages)
    assert [(each.turn, each.text) for each in brief.goal] == [
        (0, "Fix the failing test. Keep the API."),
        (7, "Go on."),
    ]
    assert [(each.turn, each.text.splitlines()[0]) for each in brief.files] == [
        (2, "a.py"),
        (3, "notes.txt"),
        (5, "b.py"),
    ]
    assert [line.strip() for line in brief.files[0].text.splitlines()[2:-1]] == ["-x = 1", "+x = 2"]
    assert [line.strip() for line in brief.files[2].text.splitlines()[2:-1]] == ["-old", "+new"]
    assert [(each.turn, each.text) for each in brief.open_points] == [
        (6, "to do: document (doing)"),
        (8, "the call of shell has no result"),
    ]
    assert [(each.turn, each.text.split()[0]) for each in brief.results] == [(7, "`pytest")]
    assert "2 passed" in brief.results[0].text
    assert "denied.txt" not in str(brief)
    assert "1 failed" not in str(brief)


def test_question_at_the_end_is_an_open_point(chat: segue.Conversation) -> None:
    chat.add_result(chat.pending[0], "done")
    chat.add_assistant("Shall I\nrelease it?")
    assert make_brief(chat.messages).open_points[-1].text == "the model asked: Shall I release it?"


def test_empty_and_unfinished_conversations() -> None:
    assert make_brief(()).is_empty
    assert str(make_brief(())) == ""
    chat = segue.Conversation()
    chat.add_user("Hello")
    assert make_brief(chat.messages) == Brief(goal=(make_brief(chat.messages).goal[0],))


@pytest.mark.parametrize("case", [*sample(CASES, 3)], ids=lambda case: case.name)
def test_any_history_gives_a_brief_of_its_own_words(case: Case) -> None:
    chat = segue.Conversation.from_body(case.body, source=case.source)
    brief = make_brief(chat.messages)
    turns = len({message.turn_key for message in chat.messages if message.turn_key})
    numbers = [int(number) for number in re.findall(r"^- \[turn (\d+)\]", str(brief), re.MULTILINE)]
    statements = [*brief.goal, *brief.files, *brief.open_points, *brief.results]
    assert len(numbers) >= len(statements)
    assert all(0 <= each.turn <= turns for each in statements)
    said = " ".join(
        " ".join(block.text for block in message.blocks if isinstance(block, segue.Text)) for message in chat.messages
    )
    assert all(each.text in " ".join(said.split()) for each in brief.goal)
    assert make_brief(chat.messages) == brief


def test_fences_in_contents_do_not_end_the_fence() -> None:
    chat = segue.Conversation()
    chat.add_user("x")
    call(chat, "write_file", {"path": "a.md", "content": "```\ncode\n```"})
    assert make_brief(chat.messages).files[0].text.splitlines()[1].strip() == "````"
