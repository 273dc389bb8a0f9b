"""`segue chat` in a real terminal with emulated providers."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from segue.cli.chat_ui.commands import COMMANDS
from segue.cli.request_options import NAMES
from segue.emulator import Emulator
from segue.store.sqlite import SqliteStore
from segue.wire.tool_formats import load_tool_formats
from tests.cli.process import SEGUE, environment
from tests.cli.terminal_session import ALT_ENTER, CTRL_C, CTRL_D, CTRL_T, ENTER, PROMPT, TerminalSession
from tests.interrupts import default_interrupt, ignored_interrupt

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
PATIENCE = 100
CLAUDE, KIMI = "anthropic/claude-sonnet-4-5", "kimi/kimi-k2-0905-preview"


class Room:
    """A folder, a store and providers."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.work = folder / "work"
        self.home = folder / "home"
        self.work.mkdir()
        self.home.mkdir()
        self._stack = stack
        self.variables: dict[str, str] = {
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "SEGUE_STORE": str(folder / "chats.db"),
        }

    def provider(self, api: str, script: str) -> Emulator:
        made = self._stack.enter_context(segue.emulator.start(api, script=script))
        name = {"anthropic": "ANTHROPIC", "kimi": "MOONSHOT"}[api]
        self.variables |= {f"{name}_API_KEY": "any", f"{name}_BASE_URL": made.base_url}
        return made

    def chat(self, *arguments: str, columns: int = 100, bare: bool = False, **variables: str) -> TerminalSession:
        seat = TerminalSession(
            *([] if bare else ["chat", *arguments]),
            environment=environment(**{**self.variables, **variables}),
            folder=self.work,
            columns=columns,
        )
        return self._stack.enter_context(seat)

    def store(self) -> SqliteStore:
        return SqliteStore(Path(self.variables["SEGUE_STORE"]))


@pytest.fixture
def room(tmp_path: Path) -> Generator[Room]:
    with ExitStack() as stack:
        yield Room(tmp_path, stack)


def accepted(*providers: Emulator) -> bool:
    return all(request.accepted for provider in providers for request in provider.requests)


def content_text(message: dict[str, Any]) -> str:
    """The text of a message; one that is marked for the prompt cache has its text in a block."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def messages(provider: Emulator) -> list[Any]:
    """Those of the newest request."""
    return (provider.requests[-1].body or {})["messages"]


def request_texts(requests: Emulator, number: int = -1) -> str:
    return json.dumps(requests.requests[number].body)


# --------------------------------------------------------------------------------------------------- words and thoughts


def test_text_streams_and_ctrl_c_ends_the_turn(room: Room):
    claude = room.provider("anthropic", "say  Some words.\nwait 3600\nsay more\n---\nsay Again here.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT, CLAUDE)
    seat.enter("hello there")
    seat.wait_for_text("Some words.")
    seat.type(CTRL_C)
    seat.wait_for_text("cancelled")
    seat.wait_for(lambda: b"press Ctrl-C again to exit" in seat.raw)
    seat.enter("go on")
    seat.wait_for_text("Again here.")
    assert "more" not in seat.text
    assert accepted(claude)
    assert "Some words" not in request_texts(claude)


def test_thoughts_are_folded_until_ctrl_t(room: Room):
    room.provider("kimi", "think I weigh the odds.\nsay Done.")
    seat = room.chat("-m", "kimi/kimi-k2-thinking")
    seat.wait_for_text(PROMPT)
    seat.enter("think")
    seat.wait_for_text("Done.", "thought", "Ctrl-T shows it")
    seat.wait_until_gone("I weigh the odds.")
    seat.type(CTRL_T)
    seat.wait_for_text("I weigh the odds.", "Ctrl-T hides it")
    seat.type(CTRL_T)
    seat.wait_until_gone("I weigh the odds.")


def test_several_lines_are_one_message(room: Room):
    claude = room.provider("anthropic", "say Both read.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.type("first")
    seat.type(ALT_ENTER)
    seat.type("second")
    seat.wait_for_text("second")
    seat.type("\x1b[200~\nthird\ny\n\x1b[201~")
    seat.wait_for_text("third")
    seat.type(ENTER)
    seat.wait_for_text("Both read.")
    assert "first\\nsecond\\nthird\\ny" in request_texts(claude)


def test_input_typed_during_a_turn_is_sent_afterwards(room: Room):
    claude = room.provider(
        "anthropic",
        f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\nsay One.\n---\nsay Two.",
    )
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("first thing")
    seat.wait_for_text("⟳ shell")
    seat.enter("second thing")
    seat.wait_for_text("+ second thing")
    (room.work / "go").touch()
    seat.wait_for_text("One.", "Two.")
    assert [request.status for request in claude.requests] == [200, 200, 200]


# ------------------------------------------------------------------------------------------------------------ approvals


WRITE = 'call write_file {"path": "out.txt", "content": "one\\ntwo\\n"}\n---\nsay So be it.'


def test_approved_call_runs_and_shows_its_effect(room: Room):
    room.provider("anthropic", WRITE)
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("+one", "+two", "y yes")
    assert not (room.work / "out.txt").exists()
    seat.enter("y")
    seat.wait_for_text("So be it.", "✓ write_file")
    assert (room.work / "out.txt").read_text() == "one\ntwo\n"


def test_denial_text_reaches_the_model(room: Room):
    claude = room.provider("anthropic", WRITE)
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("y yes")
    seat.enter("no, into notes.txt")
    seat.wait_for_text("So be it.", "✗ write_file", "denied")
    assert [request.status for request in claude.requests] == [200, 200]
    assert "into notes.txt" in str((claude.requests[-1].body or {})["messages"][-1])
    assert not (room.work / "out.txt").exists()
    assert accepted(claude)


def test_input_typed_before_the_question_is_not_an_answer(room: Room):
    script = f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\n{WRITE}"
    room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("⟳ shell")
    seat.type("yes")
    seat.wait_for(lambda: any(line.startswith("❯ yes") for line in seat.lines))
    (room.work / "go").touch()
    seat.wait_for_text("y yes")
    seat.type(ENTER)
    seat.type(" \x7f")
    seat.enter("never")
    seat.wait_for_text("✗ write_file", "So be it.")
    assert not (room.work / "out.txt").exists()


def test_a_line_sent_before_the_question_waits_as_the_next_message(room: Room):
    script = (
        f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\n{WRITE}\n---\nsay Why?"
    )
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("⟳ shell")
    seat.enter("y")
    seat.wait_for_text("+ y")
    (room.work / "go").touch()
    seat.wait_for_text("y yes")
    assert not (room.work / "out.txt").exists()
    seat.enter("no")
    seat.wait_for_text("So be it.", "Why?")
    assert not (room.work / "out.txt").exists()
    assert content_text((claude.requests[-1].body or {})["messages"][-1]) == "y"


TRUSTED = """
[tools]
allow = ["shell(make *)", "write_file(docs/*)"]

[mcp.notes]
command = ["no-such-program", "--all", "\\u202eelsewhere"]

[providers.anthropic]
base_url = "http://127.0.0.1:9/"
"""


def test_trust_question_shows_everything_trusted(room: Room):
    (room.work / ".segue.toml").write_text(TRUSTED)
    room.provider("kimi", "say Hi.")
    seat = room.chat("-m", KIMI, columns=60)
    seat.wait_for_text("Trust this file until it changes?")
    for word in ("shell(make *)", "write_file(docs/*)", "no-such-program", "--all", "http://127.0.0.1:9/"):
        assert word in seat.text.replace("\n", "")
    assert "\u202e".encode() not in seat.raw
    seat.type("\n")
    seat.wait_for_text(PROMPT)


def test_ctrl_c_at_a_question_ends_the_turn(room: Room):
    claude = room.provider("anthropic", f"{WRITE}\n---\nsay Fine.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("y yes")
    seat.type(CTRL_C)
    seat.wait_for_text("cancelled")
    seat.wait_until_gone("y yes")
    seat.enter("go on")
    seat.wait_for_text("So be it.")
    assert not (room.work / "out.txt").exists()
    assert accepted(claude)


def test_ctrl_c_ends_running_tools(room: Room):
    script = 'call shell {"command": "sleep 3600"}\ncall shell {"command": "sleep 3601"}\n---\nsay Still here.'
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("sleep")
    seat.wait_for_text("⟳ shell", count=2)
    seat.type(CTRL_C)
    seat.wait_for_text("– shell", count=2)
    seat.wait_for_text("cancelled")
    seat.enter("awake?")
    seat.wait_for_text("Still here.")
    assert accepted(claude)


def test_ctrl_c_restores_unsent_input(room: Room):
    claude = room.provider("anthropic", "say  Some words.\nwait 3600\nsay more\n---\nsay Again.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("hello")
    seat.wait_for_text("Some words.")
    for line in ("next one", "then this"):
        seat.enter(line)
        seat.wait_for_text(f"+ {line}")
    seat.type("half")
    seat.wait_for_text("half")
    seat.type(CTRL_C)
    seat.wait_for_text("cancelled", "❯ next one\n  then this\n  half")
    assert len(claude.requests) == 1
    seat.type(ENTER)
    seat.wait_for_text("Again.")
    assert "next one\\nthen this\\nhalf" in request_texts(claude)


def test_ctrl_c_twice_leaves_nothing_running(room: Room):
    script = "call shell " + json.dumps({"command": "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.1; done"})
    claude = room.provider("anthropic", f"{script}\n---\nsay On we go.")
    # Outside of a sandbox, where the number of a process is the one that the command sees.
    seat = room.chat("-m", CLAUDE, "--dangerously-allow-all")
    seat.wait_for_text(PROMPT)
    seat.enter("run it")
    seat.wait_for_text("⟳ shell")
    seat.wait_for(lambda: (room.work / "pid").exists() and (room.work / "pid").read_text().strip())
    seat.type(CTRL_C + CTRL_C)
    assert seat.wait_exit() == 0
    assert "– shell" in seat.text
    with pytest.raises(ProcessLookupError):
        os.kill(int((room.work / "pid").read_text()), 0)
    again = room.chat("-c", "-m", CLAUDE)
    again.wait_for_text(PROMPT, "– shell")
    again.enter("go on")
    again.wait_for_text("On we go.")
    assert accepted(claude)


def test_subagent_calls_are_nested(room: Room):
    script = (
        'call task {"description": "count files", "prompt": "Count them."}\n---\n'
        'call list_dir {"path": "."}\n---\nsay None.\n---\nsay There are no files.'
    )
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("count")
    seat.wait_for_text("There are no files.")
    assert re.search(r"^  ✓ task  count files .*\n    ✓ list_dir ", seat.text, re.MULTILINE)
    assert accepted(claude)


# ---------------------------------------------------------------------------------------------------------- the models


def test_another_model_in_the_middle_of_a_task(room: Room):
    wait = json.dumps({"command": "while [ ! -e go ]; do sleep 0.05; done; echo 8080"})
    claude = room.provider("anthropic", f"say I look.\ncall shell {wait}")
    kimi = room.provider("kimi", "say It is {shell}, says Kimi.")
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("which port?")
    seat.wait_for_text("⟳ shell")
    seat.type(f"/model {KIMI}")
    seat.wait_for_text(KIMI)
    seat.type(ENTER)
    seat.wait_for_text("from the next request", "the current reply and its tools stay")
    assert not kimi.requests
    (room.work / "go").touch()
    seat.wait_for_text("says Kimi.")
    assert (len(claude.requests), len(kimi.requests)) == (1, 1)
    assert accepted(claude, kimi)
    assert "8080" in request_texts(kimi)


def test_toolformat_lists_all_with_auto_or_manual(room: Room):
    claude = room.provider("anthropic", "say In words.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("/toolformat")
    seat.wait_for_text("(auto)", *load_tool_formats())
    seat.enter("/toolformat hermes")
    seat.wait_for_text("from the next request")
    seat.enter("/toolformat")
    seat.wait_for_text("hermes (manual)", "tools hermes")
    seat.enter("hello")
    seat.wait_for_text("In words.")
    assert "tools" not in (claude.requests[-1].body or {})
    seat.enter("/toolformat openai")
    seat.wait_for_text("anthropic does not support tool format 'openai'")
    seat.enter("/toolformat auto")
    seat.wait_for_text("auto (anthropic)")


# -------------------------------------------------------------------------------------------------- the conversation


def test_undo_reverts_a_compression_then_an_exchange(room: Room):
    notes = "".join(f"line {number} of the notes\n" for number in range(400))
    (room.work / "notes.txt").write_text(notes)
    script = 'call read_file {"path": "notes.txt"}\n---\nsay First answer.\n---\nsay Second answer.\n---\nsay Third.'
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("read it")
    seat.wait_for_text("First answer.")
    seat.enter("and now?")
    seat.wait_for_text("Second answer.")
    seat.enter("/compress truncate-results 500")
    seat.wait_for_text("compressed (truncate-results)")
    seat.enter("/undo")
    seat.wait_for_text("compression undone")
    seat.enter("/undo")
    seat.wait_for_text("last exchange undone", "«and now?»")
    seat.enter("once more")
    seat.wait_for_text("Third.")
    assert "and now?" not in request_texts(claude)
    assert "line 200 of the notes" in request_texts(claude)
    assert accepted(claude)


def test_conversation_resumes_where_it_stopped(room: Room):
    claude = room.provider("anthropic", 'call list_dir {"path": "."}\n---\nsay Eighteen.\n---\nsay As I said: 18.')
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("how many?")
    seat.wait_for_text("Eighteen.")
    seat.type(CTRL_D)
    assert seat.wait_exit() == 0
    seat.wait_for_text("to continue")
    again = room.chat("-c", "-m", CLAUDE)
    again.wait_for_text("how many?", "✓ list_dir", "Eighteen.", PROMPT)
    again.enter("sure?")
    again.wait_for_text("As I said: 18.")
    assert "Eighteen." in request_texts(claude)
    assert accepted(claude)
    with room.store() as store:
        assert len(store.list()) == 1


def test_conversation_of_another_folder_is_named_by_its_number(room: Room):
    room.provider("anthropic", "say One.\n---\nsay Two.\n---\nsay Three.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("in the first folder")
    seat.wait_for_text("One.")
    seat.type(CTRL_D)
    assert seat.wait_exit() == 0
    room.work = room.home / "second"
    room.work.mkdir()
    again = room.chat("-m", CLAUDE)
    again.wait_for_text(PROMPT)
    again.enter("in the second folder")
    again.wait_for_text("Two.")
    again.enter("/conversations")
    again.wait_for_text("▸ 1", "~/second", "also by its number")
    again.enter("/conversations 2")
    again.wait_for_text("it belongs to", "One.")
    again.enter("/conversations 1")
    again.wait_for_text("Two.", count=2)


def test_two_chats_on_one_conversation(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay Two.\n---\nsay Three.")
    first = room.chat("-m", CLAUDE)
    first.wait_for_text(PROMPT)
    first.enter("first words")
    first.wait_for_text("One.")
    second = room.chat("-c", "-m", CLAUDE)
    second.wait_for_text(PROMPT, "open in another process; /fork continues in a copy")
    second.enter("from the second")
    second.wait_for_text("open in another process", count=2)
    second.wait_for(lambda: second.lines.count("❯ from the second") == 2)  # what was asked, and the input line
    first.enter("more words")
    first.wait_for_text("Two.")
    first.type(CTRL_D)
    assert first.wait_exit() == 0
    second.type(ENTER)
    second.wait_for_text("2 new messages from another process", "❯ more words", "Two.", "Three.")
    asked = [content_text(message) for message in messages(claude) if message["role"] == "user"]
    assert asked == ["first words", "more words", "from the second"]
    assert accepted(claude)


def test_text_after_a_command_waits_for_it(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("first words")
    seat.wait_for_text("One.")
    seat.type(f"/new{ENTER}elsewhere{ENTER}")
    seat.wait_for_text("Two.")
    assert "first words" not in request_texts(claude)
    with room.store() as store:
        assert {row.opening for row in store.list()} == {"elsewhere", "first words"}


def test_copy_and_return_to_the_original(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay In the copy.\n---\nsay Back.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("/fork")
    seat.wait_for_text("nothing to copy: there are no messages yet")
    with room.store() as store:
        (row,) = store.list()
    seat.enter(f"/conversations {row.id}")
    seat.wait_for_text(f"{row.id} is already open")
    seat.enter("hello")
    seat.wait_for_text("One.")
    seat.enter("/fork")
    seat.wait_for_text(f"forked from {row.id}, which is unchanged", "One.", count=1)
    seat.enter("in there")
    seat.wait_for_text("In the copy.")
    seat.enter(f"/conversations {row.id}")
    seat.wait_for_text(f"conversation {row.id}, 2 messages")
    seat.enter("and here")
    seat.wait_for_text("Back.")
    assert "in there" not in request_texts(claude)
    seat.enter("/conversations 1n")
    seat.wait_for_text("✗ several conversation ids begin with '1n'")


def test_empty_conversation_is_not_stored(room: Room):
    seat = room.chat(bare=True)
    seat.wait_for_text(PROMPT, "emulated")
    seat.type(CTRL_D)
    assert seat.wait_exit() == 0
    with room.store() as store:
        assert not store.list()


# --------------------------------------------------------------------------------------------------- leaving and help


def test_ctrl_c_twice_leaves(room: Room):
    seat = room.chat()
    seat.wait_for_text(PROMPT)
    seat.type("half a sentence")
    seat.wait_for_text("half a sentence")
    seat.type(CTRL_C)
    seat.wait_until_gone("half a sentence")
    seat.type("x" + CTRL_C + "whole again")
    seat.wait_for_text("whole again")
    seat.type(CTRL_C + CTRL_C)
    assert seat.wait_exit() == 0


def test_second_ctrl_c_after_a_while_does_not_leave(room: Room):
    seat = room.chat()
    seat.wait_for_text(PROMPT)
    for _ in range(2):
        before = seat.raw.count(b"press Ctrl-C again to exit")
        seat.type(CTRL_C)
        seat.wait_for(lambda before=before: seat.raw.count(b"press Ctrl-C again to exit") > before)
        seat.wait_until_gone("press Ctrl-C again to exit")
    seat.enter("/modle")
    seat.wait_for_text("did you mean /model")


def test_help_lists_commands_and_typos_are_reported(room: Room):
    seat = room.chat()
    seat.wait_for_text(PROMPT)
    seat.enter("/help")
    seat.wait_for_text(*(f"/{name}" for name in COMMANDS), "Ctrl-T", "Alt-Enter")
    seat.enter("/modle")
    seat.wait_for_text("did you mean /model")
    seat.enter("/quit")
    assert seat.wait_exit() == 0


def test_tab_completes_commands_models_and_paths(room: Room):
    (room.work / "readme.md").touch()
    room.provider("kimi", "say Hi.")
    seat = room.chat("-m", KIMI)
    seat.wait_for_text(PROMPT)
    seat.type("/toolf")
    seat.wait_for_text("show or set the tool format")
    seat.type("\t")
    seat.wait_for(lambda: any(line.startswith("❯ /toolformat") for line in seat.lines))
    seat.type(" mistr")
    seat.wait_for_text("mistral-text")
    seat.type(CTRL_C)
    seat.type("look at @read")
    seat.wait_for_text("readme.md")
    seat.type("\t")
    seat.wait_for(lambda: any("look at @readme.md" in line for line in seat.lines))


# ---------------------------------------------------------------------------------------------- widths, colours, pipes


@pytest.mark.parametrize("columns", [40, 200])
def test_any_width(room: Room, columns: int):
    script = f"say {'Some words that are wrapped. ' * 12}\ncall read_file {{}}\n{WRITE}"
    room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, columns=columns)
    seat.wait_for_text(PROMPT[:10])
    seat.enter("go")
    seat.wait_for_text("write_file", "yes")
    assert all(len(line) <= columns for line in seat.lines)
    assert not re.search(r"word$|wra$|tha$", seat.text, re.MULTILINE)
    seat.enter("n")
    seat.wait_for_text("So be it.")


def test_commands_that_show_something_wrap_it_at_words_and_cut_nothing(room: Room):
    room.provider("anthropic", "say One.")
    seat = room.chat("-m", CLAUDE, columns=50)
    seat.wait_for_text(PROMPT)
    seat.enter("go")
    seat.wait_for_text("One.")
    for command, end in {
        "/diag": "would accept this request",
        "/cost": "1 request",
        "/set": "prompt_cache_retention",
        "/permissions": "commands run",
        "/tools": "write_file",
        "/context": "platform",
    }.items():
        seat.enter(command)
        seat.wait_for(lambda text=end: text in " ".join(seat.text.split()))
    assert "…" not in seat.text
    assert all(name in seat.text.replace(",", " ").split() for name in NAMES)
    # Each is below the command that was typed.
    assert seat.text.index("❯ /diag") < seat.text.index("store:") < seat.text.index("❯ /cost")


def test_a_window_made_smaller_leaves_no_trail(room: Room):
    room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE, columns=120)
    seat.wait_for_text(PROMPT)
    seat.enter("go")
    seat.wait_for_text("One.", PROMPT)
    for columns in (70, 30, 100):
        seat.resize(columns)
        seat.type("x")
        seat.wait_for(lambda: any(line.startswith("❯ x") for line in seat.lines))
        seat.type("\x7f")
        seat.wait_for_text(PROMPT)
        assert sum("───" in line for line in seat.lines) == 1
        assert sum(line.startswith("❯ ") for line in seat.lines) == 2


def test_no_color_disables_color(room: Room):
    room.provider("anthropic", "say **Bold** and `code`.")
    seat = room.chat("-m", CLAUDE, NO_COLOR="1")
    seat.wait_for_text(PROMPT)
    seat.enter("go")
    seat.wait_for_text("Bold and code.")
    colours = re.findall(rb"\x1b\[([0-9;]*)m", bytes(seat.raw))
    numbers = {number for colour in colours for number in colour.split(b";")}
    assert not {number for number in numbers if number and 30 <= int(number) <= 107}


def test_a_dumb_terminal_gets_lines(room: Room):
    room.provider("anthropic", f"say **As it is**.\n---\n{WRITE}")
    seat = room.chat("-m", CLAUDE, TERM="dumb")
    seat.wait_for_text("\n>")
    seat.type("go\n")
    seat.wait_for_text("**As it is**.")
    seat.type("write\n")
    seat.wait_for_text("+one", "? y yes")
    seat.type("y\n")
    seat.wait_for_text("So be it.")
    seat.type("/quit\n")
    assert seat.wait_exit() == 0
    assert b"\x1b" not in seat.raw
    assert (room.work / "out.txt").exists()


@pytest.mark.parametrize("ignored", [False, True])
def test_an_interrupt_without_a_terminal_ends_the_turn_unless_it_was_ignored_at_the_start(room: Room, ignored: bool):
    wait = json.dumps({"command": "touch began; until [ -e go ]; do sleep 0.01; done"})
    room.provider("anthropic", f"call shell {wait}\n---\nsay All done.")
    with ignored_interrupt() if ignored else default_interrupt():
        process = subprocess.Popen(
            [*SEGUE, "chat", "-m", CLAUDE, "--allow", "shell"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(**room.variables),
            cwd=room.work,
        )
    try:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        deadline = time.monotonic() + PATIENCE
        while not (room.work / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        if ignored:
            (room.work / "go").touch()
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    assert (b"All done." in out) == ignored
    assert (b"cancelled" in out) != ignored


# ------------------------------------------------------------------------------------------------------------- safety


EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[1;1Hfake\x9b2J\u202eoverride\x1b]8;;http://evil\x07link"


def test_no_output_controls_the_terminal(room: Room):
    (room.work / "evil.txt").write_text(EVIL)
    command = json.dumps({"command": "cat evil.txt >&2; cat evil.txt; exit 3"})
    path = json.dumps({"path": EVIL.replace("/", ""), "content": EVIL})
    room.provider("anthropic", f"say Look: {EVIL}\ncall shell {command}\ncall write_file {path}\n---\nsay {{shell}}")
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.wait_for_text(PROMPT)
    seat.enter("/debug")
    seat.wait_for_text("are shown")
    seat.enter("go")
    seat.wait_for_text("y yes")
    seat.enter("n")
    seat.wait_for_text("✗ shell")
    seat.wait_for(lambda: any(line.startswith("❯ ask anything") for line in seat.lines))
    raw = bytes(seat.raw)
    assert b"\x1b]" not in raw
    assert b"\x1b[2J" not in raw
    assert "\u202e".encode() not in raw
    assert "\x9b".encode() not in raw
    assert "\u241b]52;c;ZXZpbA==" in seat.text


def test_input_history_is_private_and_without_secrets(room: Room):
    room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE)
    seat.wait_for_text(PROMPT)
    seat.enter("a good question")
    seat.wait_for_text("One.")
    seat.enter("my key is sk-ant-REDACTED")
    seat.wait_for_text("Two.")
    seat.type(CTRL_D)
    assert seat.wait_exit() == 0
    (file,) = room.home.rglob("input.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == '"a good question"\n'
    again = room.chat("-m", CLAUDE)
    again.wait_for_text(PROMPT)
    again.type("\x1b[A")
    again.wait_for(lambda: any(line.startswith("❯ a good question") for line in again.lines))
