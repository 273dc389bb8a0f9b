"""Approvals in a real terminal: wider scopes, modes, commands at a question, and how denials are shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.terminal_session import CTRL_D, PROMPT
from tests.cli.test_chat import CLAUDE, Room, accepted, request_texts
from tests.runtime.test_shell_sandbox import STAND_IN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
SHIFT_TAB = "\x1b[Z"


@pytest.fixture
def room(tmp_path: Path) -> Generator[Room]:
    with ExitStack() as stack:
        yield Room(tmp_path, stack)


def call(tool: str, **arguments: object) -> str:
    return f"call {tool} {json.dumps(arguments)}\n"


def write(path: str, content: str = "x\n") -> str:
    return call("write_file", path=path, content=content)


def test_wider_scope_of_edits(room: Room):
    room.provider("anthropic", write("src/a.py") + write("src/b.py") + write("top.py") + "---\nsay Written.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write them")
    seat.wait_for_text("create src/a.py", "a always this file", "1 edits below src/", "2 all edits in this chat")
    seat.enter("1")
    seat.wait_for_text(
        "allowed in this chat: write_file(src/*), edit_file(src/*)", "create top.py", "1 all edits in this chat"
    )
    assert "create src/b.py" not in seat.text
    seat.enter("1")
    seat.wait_for_text("Written.")
    assert all((room.work / name).exists() for name in ("src/a.py", "src/b.py", "top.py"))


def test_wider_scope_of_commands_stays_safe(room: Room):
    commands = ["echo one", "echo two", "echo three; touch gone", "echo four > gone"]
    room.provider("anthropic", "---\n".join(call("shell", command=text) for text in commands) + "---\nsay Done.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("run them")
    seat.wait_for_text("run echo one", "a always this command", "1 echo *")
    seat.enter("1")
    seat.wait_for_text("run echo three; touch gone")
    assert "run echo two" not in seat.text
    seat.enter("no")
    seat.wait_for_text("run echo four > gone")
    seat.enter("no")
    seat.wait_for_text("Done.")
    assert not (room.work / "gone").exists()


def test_mode_is_shown_and_cycles(room: Room):
    script = [write("a.txt"), "say One.\n", write("b.txt"), "say Two.\n", write("c.txt"), "say Three.\n"]
    claude = room.provider("anthropic", "---\n".join(script))
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT, "·  ask")
    seat.type(SHIFT_TAB)
    seat.wait_for_text("·  accept edits")
    seat.enter("first")
    seat.wait_for_text("One.")
    assert (room.work / "a.txt").exists()
    seat.type(SHIFT_TAB)
    seat.wait_for_text("·  plan (read-only)")
    seat.enter("second")
    seat.wait_for_text("Two.", "✗ write_file  b.txt  denied", "plan mode is on")
    assert not (room.work / "b.txt").exists()
    assert "plan mode is on" in request_texts(claude)
    seat.type(SHIFT_TAB)
    seat.wait_for_text("·  ask")
    seat.enter("third")
    seat.wait_for_text("create c.txt")
    assert accepted(claude)


def test_mode_that_allows_the_open_question_answers_it(room: Room):
    room.provider("anthropic", write("a.txt") + "---\nsay Written.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("y yes")
    seat.type(SHIFT_TAB)
    seat.wait_for_text("Written.", "·  accept edits")
    assert (room.work / "a.txt").exists()


def test_commands_at_a_question_are_no_answers(room: Room):
    claude = room.provider("anthropic", write("a.txt") + write("docs/b.txt") + "---\nsay So be it.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write them")
    seat.wait_for_text("y yes")
    seat.enter("/tools")
    seat.wait_for_text("write_file", "grep", "y yes")
    seat.enter("/nonsense")
    seat.wait_for_text("unknown command /nonsense", "y yes")
    seat.enter("/undo")
    seat.wait_for_text("/undo is not available during a turn", "y yes")
    seat.enter("!echo $((6 * 7))")
    seat.wait_for_text("  42", "y yes")
    seat.enter("/allow write_file(nope")
    seat.wait_for_text("is not a valid rule", "y yes")
    assert not (room.work / "a.txt").exists()
    seat.enter("/allow write_file(*.txt)")
    seat.wait_for_text("allowed in this chat: write_file(*.txt)", "So be it.", "✓ write_file  a.txt")
    assert (room.work / "docs/b.txt").exists()
    assert seat.text.count("create a.txt") == 2  # The question and the line after it.
    seat.enter("/permissions")
    seat.wait_for_text("mode: ask", "allow (this chat)", "write_file(*.txt)")
    assert "denied" not in seat.text
    assert accepted(claude)


def test_permissions_set_the_mode(room: Room):
    room.provider("anthropic", write("a.txt") + "---\nsay Denied.")
    seat = room.chat("-m", CLAUDE, "--allow", "write_file(*)")
    seat.wait_for_text(PROMPT)
    seat.enter("/permissions plan")
    seat.wait_for_text("mode: plan (read-only)")
    seat.enter("/permissions never")
    seat.wait_for_text("unknown mode 'never'; modes: ask, edits, plan")
    seat.enter("write it")
    seat.wait_for_text("Denied.", "✗ write_file  a.txt  denied")
    assert not (room.work / "a.txt").exists()


def test_quit_at_a_question_leaves_and_denied_is_shown_when_resumed(room: Room):
    room.provider("anthropic", write("a.txt") + "---\nsay Fine.\n---\n" + write("b.txt"))
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("y yes")
    seat.enter("not now")
    seat.wait_for_text("Fine.", "✗ write_file  a.txt  denied", "the user rejected this call: not now")
    seat.type(CTRL_D)
    assert seat.wait_exit() == 0
    again = room.chat("-c", "-m", CLAUDE)
    again.wait_for_text(PROMPT, "✗ write_file", "denied", "Fine.")
    again.enter("go on")
    again.wait_for_text("y yes")
    again.enter("/quit")
    assert again.wait_exit() == 0
    assert not (room.work / "b.txt").exists()


def test_plain_terminal_offers_the_same(room: Room):
    room.provider("anthropic", write("src/a.py") + write("src/b.py") + "---\nsay Written.")
    seat = room.chat("-m", CLAUDE, TERM="dumb")
    seat.wait_for(lambda: ">" in seat.lines)
    seat.type("write them\n")
    seat.wait_for_text("? y yes, a always this file, 1 edits below src/")
    seat.type("/permissions\n")
    seat.wait_for_text("mode: ask")
    seat.wait_for_text("? y yes, a always this file, 1 edits below src/", count=2)
    seat.type("1\n")
    seat.wait_for_text("Written.")
    assert (room.work / "src/b.py").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_command_that_fails_in_the_sandbox_is_offered_outside(room: Room, tmp_path: Path):
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    claude = room.provider("anthropic", call("shell", command="echo prevented") + "---\nsay It worked.")
    seat = room.chat("-m", CLAUDE, PATH=f"{program.parent}:{os.environ['PATH']}")
    seat.wait_for_text(PROMPT)
    seat.enter("/permissions")
    seat.wait_for_text("shell commands run in a sandbox: without network")
    seat.enter("run it")
    seat.wait_for_text("run echo prevented", "1 echo *")
    seat.enter("y")
    seat.wait_for_text("outside of the sandbox; it failed inside", "a always this command outside")
    seat.enter("y")
    seat.wait_for_text("✓ shell", "It worked.")
    assert "run again outside" in request_texts(claude)
    assert accepted(claude)
