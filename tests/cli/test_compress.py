"""`segue compress`: what is left out is told, can be looked at first, and comes back."""

from __future__ import annotations

import shlex
import sys

import pytest

import segue
from segue.canonical.compress import STRATEGIES, Note
from segue.cli import compress
from segue.conversation import Conversation
from segue.store.conversation import StoredConversation
from segue.view.words import note_lines
from tests.cli.kept import Kept
from tests.cli.process import run


def long_talk(kept: Kept) -> str:
    """Four exchanges with a long result each."""
    with kept.store() as store:
        tools = [{"name": "read", "input_schema": {"type": "object"}}]
        with StoredConversation.create(store, Conversation(tools=tools)) as chat:
            for number in range(4):
                chat.add_user(f"Read {number}")
                call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"{number}.txt"}}
                reply = chat.add_reply({"type": "message", "role": "assistant", "content": [call]}, source="anthropic")
                chat.add_result(reply.calls[0], f"{number} " + "words and words " * 500)
                words = [{"type": "text", "text": f"Read it: {number}."}]
                chat.add_reply({"type": "message", "role": "assistant", "content": words}, source="anthropic")
            return chat.id


def body(kept: Kept, id: str) -> str:
    return kept("export", id, "--format", "anthropic").out


def test_the_choices_are_the_strategies_there_are():
    assert tuple(STRATEGIES) == compress.STRATEGIES


def test_it_fits_afterwards_and_comes_back(kept: Kept):
    id = long_talk(kept)
    before = body(kept, id)
    ended = kept("compress", id, "--strategy", "truncate-results", "--budget", "2500")
    assert ended.code == 0
    assert ended.lines[0].startswith("message ")
    assert ended.lines[-1].endswith(" tokens")
    after = body(kept, id)
    assert len(after) < len(before) / 2
    assert segue.check(after, "anthropic")
    assert "compressed with truncate-results to 2500 tokens" in kept("log", "show", id).out
    assert kept("compress", id, "--undo").out == f"{id}: compression undone, 16 messages\n"
    assert body(kept, id) == before


def test_a_dry_run_says_the_same_and_does_nothing(kept: Kept):
    id = long_talk(kept)
    events = kept("log", "show", id, "--all", "--json").out
    asked = ("compress", id, "--strategy", "drop-oldest", "--budget", "3000", "--json")
    dry = kept(*asked, "--dry-run").json
    assert kept("log", "show", id, "--all", "--json").out == events
    done = kept(*asked).json
    assert {**dry, "dry_run": False} == done
    assert done["tokens"] <= 3000 < done["before"]
    assert done["reached"]


def test_what_was_done_is_a_screen_of_lines_however_long_it_was(kept: Kept):
    with kept.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for number in range(300):
            chat.add_user(f"question {number}")
            words = [{"type": "text", "text": f"answer {number}"}]
            chat.add_reply({"type": "message", "role": "assistant", "content": words}, source="anthropic")
    ended = kept("compress", chat.id, "--strategy", "drop-oldest", "--budget", "100")
    assert ended.lines[0].startswith("messages 1 to ")
    assert len(ended.lines) == 2
    left = kept("export", chat.id, "--format", "md").out
    assert ended.lines[1].endswith(f"; {left.count('## ')} of 600 messages remain")
    assert f"- messages: {left.count('## ')} of 600 stored\n" in left


def test_what_does_not_hang_together_ends_after_a_screen():
    notes = [Note("shortened", 2 * number, 10, 4) for number in range(50)]
    lines = list(note_lines(notes))
    assert lines[0] == "message 1 was shortened: 10 → 4 tokens"
    assert lines[19:] == ["… and 31 more messages: 310 → 124 tokens"]
    assert len(list(note_lines(notes[:20]))) == 20


def test_a_budget_that_cannot_be_reached_is_1_and_says_why(kept: Kept):
    id = long_talk(kept)
    ended = kept("compress", id, "--strategy", "truncate-results", "--budget", "1")
    assert ended.code == 1
    assert "can't be reached" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_what_fits_already_is_left_alone(kept: Kept):
    id = long_talk(kept)
    before = kept("log", "show", id, "--all", "--json").json["seq"]
    ended = kept("compress", id, "--strategy", "dense", "--budget", "1000000")
    assert ended.code == 0
    assert ended.out.endswith(" tokens: already within the budget\n")
    assert kept("log", "show", id, "--all", "--json").json["seq"] == before


def test_the_middle_is_told_by_a_program(kept: Kept):
    id = long_talk(kept)
    script = "import sys; said = sys.stdin.read(); print('In the middle', said.count('## User'), 'users spoke.')"
    program = shlex.join([sys.executable, "-c", script])
    ended = kept("compress", id, "--strategy", "middle-out", "--budget", "5000", "--summarise", program)
    assert ended.code == 0, ended.err
    assert "In the middle 2 users spoke." in body(kept, id)


@pytest.mark.parametrize("program", ["false", "true", "/no/such/program", "'"])
def test_a_program_that_tells_nothing_compresses_nothing(kept: Kept, program: str):
    id = long_talk(kept)
    before = body(kept, id)
    ended = kept("compress", id, "--strategy", "middle-out", "--budget", "5000", "--summarise", program)
    assert (ended.code, ended.refused) == (1, True)
    assert body(kept, id) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--strategy", "dense"],
        ["--budget", "5"],
        ["--strategy", "zip", "--budget", "5"],
        ["--strategy", "dense", "--budget", "-1"],
        ["--strategy", "middle-out", "--budget", "5"],
        ["--undo", "--budget", "5"],
        ["--undo", "--dry-run"],
        ["--undo"],
    ],
)
def test_what_cannot_be_meant_is_one_line_and_2(kept: Kept, arguments: list[str]):
    ended = kept("compress", kept.talk(), *arguments)
    assert (ended.code, ended.refused) == (2, True)


def test_as_a_process(kept: Kept):
    id = long_talk(kept)
    ended = run("compress", id, "--strategy", "dense", "--budget", "9999999", SEGUE_STORE=str(kept.path))
    assert (ended.code, ended.err) == (0, "")
