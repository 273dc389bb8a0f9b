"""`segue compress`: changes are reported, can be previewed and undone."""

from __future__ import annotations

import shlex
import sys

import pytest

import segue
from segue._conversation import Conversation
from segue.canonical.compress import STRATEGIES, MessageChange
from segue.cli import compress
from segue.store.conversation import StoredConversation
from segue.view.format import format_changes
from tests.cli.process import run
from tests.cli.store_cli import StoreCli


def long_talk(store_cli: StoreCli) -> str:
    """Four exchanges with a long result each."""
    with store_cli.store() as store:
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


def body(store_cli: StoreCli, id: str) -> str:
    return store_cli("export", id, "--format", "anthropic").out


def test_the_choices_are_the_strategies_there_are():
    assert tuple(STRATEGIES) == compress.STRATEGIES


def test_compressed_conversation_fits_and_can_be_undone(store_cli: StoreCli):
    id = long_talk(store_cli)
    before = body(store_cli, id)
    ended = store_cli("compress", id, "--strategy", "truncate-results", "--budget", "2500")
    assert ended.code == 0
    assert ended.lines[0].startswith("message ")
    assert ended.lines[-1].endswith(" tokens")
    after = body(store_cli, id)
    assert len(after) < len(before) / 2
    assert segue.check(after, "anthropic")
    assert "compressed with truncate-results to 2500 tokens" in store_cli("log", "show", id).out
    assert store_cli("compress", id, "--undo").out == f"{id}: compression undone, 16 messages\n"
    assert body(store_cli, id) == before


def test_dry_run_prints_the_same_and_changes_nothing(store_cli: StoreCli):
    id = long_talk(store_cli)
    events = store_cli("log", "show", id, "--all", "--json").out
    asked = ("compress", id, "--strategy", "drop-oldest", "--budget", "3000", "--json")
    dry = store_cli(*asked, "--dry-run").json
    assert store_cli("log", "show", id, "--all", "--json").out == events
    done = store_cli(*asked).json
    assert {**dry, "dry_run": False} == done
    assert done["tokens"] <= 3000 < done["before"]
    assert done["reached"]


def test_summary_fits_one_screen(store_cli: StoreCli):
    with store_cli.store() as store, StoredConversation.create(store, Conversation()) as chat:
        for number in range(300):
            chat.add_user(f"question {number}")
            words = [{"type": "text", "text": f"answer {number}"}]
            chat.add_reply({"type": "message", "role": "assistant", "content": words}, source="anthropic")
    ended = store_cli("compress", chat.id, "--strategy", "drop-oldest", "--budget", "100")
    assert ended.lines[0].startswith("messages 1 to ")
    assert len(ended.lines) == 2
    left = store_cli("export", chat.id, "--format", "md").out
    assert ended.lines[1].endswith(f"; {left.count('## ')} of 600 messages remain")
    assert f"- messages: {left.count('## ')} of 600 stored\n" in left


def test_scattered_changes_fit_one_screen():
    notes = [MessageChange("shortened", 2 * number, 10, 4) for number in range(50)]
    lines = list(format_changes(notes))
    assert lines[0] == "message 1 was shortened: 10 → 4 tokens"
    assert lines[19:] == ["… and 31 more messages: 310 → 124 tokens"]
    assert len(list(format_changes(notes[:20]))) == 20


def test_unreachable_budget_exits_1_with_reason(store_cli: StoreCli):
    id = long_talk(store_cli)
    ended = store_cli("compress", id, "--strategy", "truncate-results", "--budget", "1")
    assert ended.code == 1
    assert "can't be reached" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_fitting_conversation_is_unchanged(store_cli: StoreCli):
    id = long_talk(store_cli)
    before = store_cli("log", "show", id, "--all", "--json").json["seq"]
    ended = store_cli("compress", id, "--strategy", "dense", "--budget", "1000000")
    assert ended.code == 0
    assert ended.out.endswith(" tokens: already within the budget\n")
    assert store_cli("log", "show", id, "--all", "--json").json["seq"] == before


def test_middle_is_summarized_by_a_program(store_cli: StoreCli):
    id = long_talk(store_cli)
    script = "import sys; said = sys.stdin.read(); print('In the middle', said.count('## User'), 'users spoke.')"
    program = shlex.join([sys.executable, "-c", script])
    ended = store_cli("compress", id, "--strategy", "middle-out", "--budget", "5000", "--summarise", program)
    assert ended.code == 0, ended.err
    assert "In the middle 2 users spoke." in body(store_cli, id)


@pytest.mark.parametrize("program", ["false", "true", "/no/such/program", "'"])
def test_empty_summary_compresses_nothing(store_cli: StoreCli, program: str):
    id = long_talk(store_cli)
    before = body(store_cli, id)
    ended = store_cli("compress", id, "--strategy", "middle-out", "--budget", "5000", "--summarise", program)
    assert (ended.code, ended.is_one_line_error) == (1, True)
    assert body(store_cli, id) == before


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
def test_contradictory_options_are_usage_errors(store_cli: StoreCli, arguments: list[str]):
    ended = store_cli("compress", store_cli.add_conversation(), *arguments)
    assert (ended.code, ended.is_one_line_error) == (2, True)


def test_as_a_process(store_cli: StoreCli):
    id = long_talk(store_cli)
    ended = run("compress", id, "--strategy", "dense", "--budget", "9999999", SEGUE_STORE=str(store_cli.path))
    assert (ended.code, ended.err) == (0, "")
