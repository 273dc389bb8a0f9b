"""Input of `segue chat`: files, pictures, shell commands, and commands from Markdown files."""

from __future__ import annotations

import base64
import json
import sys

import pytest

from tests.cli.terminal_session import CTRL_C, CTRL_V, PROMPT
from tests.cli.test_chat import CLAUDE, Room, accepted, request_texts, room

__all__ = ["room"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PICTURE = base64.b64encode(PNG).decode()


def test_attached_mentioned_and_pasted_files_are_sent(room: Room):
    for name in ("a.png", "b c.png"):
        (room.work / name).write_bytes(PNG + name.encode())
    (room.work / "notes.txt").write_text("Buy bread.")
    claude = room.provider("anthropic", "say Seen.\n---\nsay Again.")
    seat = room.chat("-m", CLAUDE, "-a", "a.png")
    seat.wait_for_text(PROMPT, "attached to the next message: a.png")
    path = str(room.work / "b c.png").replace(" ", "\\ ")
    seat.type(f"\x1b[200~{path}\x1b[201~")
    seat.wait_for_text("attached to the next message", count=2)
    seat.enter("look at @notes.txt")
    seat.wait_for_text("Seen.")
    sent = request_texts(claude)
    assert "Buy bread." in sent
    assert sent.count(base64.b64encode(PNG).decode()[:40]) == 2
    seat.enter("and now")
    seat.wait_for_text("Again.")
    assert accepted(claude)
    assert len(json.loads(sent)["messages"][0]["content"]) == 4


def test_picture_on_the_clipboard_is_attached(room: Room):
    tool = room.home / "wl-paste"
    (room.home / "picture.png").write_bytes(PNG)
    tool.write_text(f"#!/bin/sh\nexec cat '{room.home}/picture.png'\n")
    tool.chmod(0o755)
    claude = room.provider("anthropic", "say Seen.")
    seat = room.chat("-m", CLAUDE, PATH=f"{room.home}:/usr/bin:/bin")
    seat.wait_for_text(PROMPT)
    seat.type(CTRL_V)
    seat.wait_for_text("attached to the next message")
    seat.enter("look")
    seat.wait_for_text("Seen.")
    assert PICTURE in request_texts(claude)
    assert accepted(claude)


def test_pasted_text_stays_text(room: Room):
    seat = room.chat()
    seat.wait_for_text(PROMPT)
    seat.type("\x1b[200~two\nlines\x1b[201~")
    seat.wait_for_text("two", "lines")
    assert "attached" not in seat.text


def test_output_of_a_command_is_sent_with_the_next_message(room: Room):
    claude = room.provider("anthropic", "say Seen.\n---\nsay Again.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("!echo one-$((1+1))")
    seat.wait_for_text("one-2")
    assert not claude.requests
    seat.enter("what was it?")
    seat.wait_for_text("Seen.")
    sent = request_texts(claude)
    assert "$ echo one-$((1+1))" in sent
    assert "one-2" in sent
    seat.enter("and now")
    seat.wait_for_text("Again.")
    assert request_texts(claude).count("one-2") == 1


def test_markdown_file_is_a_command(room: Room):
    folder = room.work / ".segue" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: Greets somebody\n---\nGreet $1 warmly.")
    claude = room.provider("anthropic", "say Hi Bob.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("/help")
    seat.wait_for_text("/greet", "Greets somebody")
    seat.enter("/greet Bob")
    seat.wait_for_text("Hi Bob.")
    assert "Greet Bob warmly." in request_texts(claude)


def test_familiar_names_of_commands(room: Room):
    claude = room.provider("anthropic", "say Hi.\n---\nsay Written.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("hello")
    seat.wait_for_text("Hi.")
    seat.enter("/compact")
    seat.wait_for_text("nothing to compress")
    seat.enter("/clear")
    seat.wait_for_text("conversation ", count=2)
    seat.enter("/init")
    seat.wait_for_text("Written.")
    assert "AGENTS.md" in request_texts(claude)
    assert "hello" not in request_texts(claude)
    seat.enter("/attach gone.png")
    seat.wait_for_text("can't read gone.png")
    seat.enter("/exit")
    assert seat.wait_exit() == 0


def test_ctrl_c_cancels_a_command_and_exit_does_not_wait_for_it(room: Room):
    seat = room.chat()
    seat.wait_for_text(PROMPT)
    seat.enter("!echo started; sleep 3600")
    seat.wait_for_text("$ echo started; sleep 3600")
    seat.type(CTRL_C)
    seat.wait_for_text("cancelled")
    seat.enter("!sleep 3600")
    seat.wait_for_text("$ sleep 3600")
    seat.enter("/exit")
    assert seat.wait_exit() == 0
