"""`segue chat` in a real terminal, over strict providers on loopback: what somebody sees, types and gets."""

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
from segue.cli.chatting.commands import COMMANDS
from segue.emulator import Emulator
from segue.store.sqlite import SqliteStore
from segue.wire.formats import TOOL_FORMATS
from tests.cli.process import SEGUE, environment
from tests.cli.seat import ALT_ENTER, CTRL_C, CTRL_D, CTRL_T, ENTER, PROMPT, Seat
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

    def chat(self, *arguments: str, columns: int = 100, bare: bool = False, **variables: str) -> Seat:
        seat = Seat(
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


def messages(provider: Emulator) -> list[Any]:
    """Those of the newest request."""
    return (provider.requests[-1].body or {})["messages"]


def spoken(requests: Emulator, number: int = -1) -> str:
    return json.dumps(requests.requests[number].body)


# --------------------------------------------------------------------------------------------------- words and thoughts


def test_words_stream_and_ctrl_c_ends_the_turn(room: Room):
    claude = room.provider("anthropic", "say  Some words.\nwait 3600\nsay more\n---\nsay Again here.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT, CLAUDE)
    seat.enter("hello there")
    seat.see("Some words.")
    seat.type(CTRL_C)
    seat.see("cancelled", "press Ctrl-C again to exit")
    seat.enter("go on")
    seat.see("Again here.")
    assert "more" not in seat.text
    assert accepted(claude)
    assert "Some words" not in spoken(claude)


def test_thoughts_are_folded_until_ctrl_t(room: Room):
    room.provider("kimi", "think I weigh the odds.\nsay Done.")
    seat = room.chat("-m", "kimi/kimi-k2-thinking")
    seat.see(PROMPT)
    seat.enter("think")
    seat.see("Done.", "thought", "Ctrl-T shows it")
    seat.miss("I weigh the odds.")
    seat.type(CTRL_T)
    seat.see("I weigh the odds.", "Ctrl-T hides it")
    seat.type(CTRL_T)
    seat.miss("I weigh the odds.")


def test_several_lines_are_one_message(room: Room):
    claude = room.provider("anthropic", "say Both read.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.type("first")
    seat.type(ALT_ENTER)
    seat.type("second")
    seat.see("second")
    seat.type("\x1b[200~\nthird\ny\n\x1b[201~")
    seat.see("third")
    seat.type(ENTER)
    seat.see("Both read.")
    assert "first\\nsecond\\nthird\\ny" in spoken(claude)


def test_what_is_typed_meanwhile_is_sent_afterwards(room: Room):
    claude = room.provider(
        "anthropic",
        f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\nsay One.\n---\nsay Two.",
    )
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("first thing")
    seat.see("⟳ shell")
    seat.enter("second thing")
    seat.see("+ second thing")
    (room.work / "go").touch()
    seat.see("One.", "Two.")
    assert [request.status for request in claude.requests] == [200, 200, 200]


# ------------------------------------------------------------------------------------------------------------ approvals


WRITE = 'call write_file {"path": "out.txt", "content": "one\\ntwo\\n"}\n---\nsay So be it.'


def test_a_yes_lets_a_call_run_and_shows_what_it_does(room: Room):
    room.provider("anthropic", WRITE)
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("write it")
    seat.see("+one", "+two", "y yes")
    assert not (room.work / "out.txt").exists()
    seat.enter("y")
    seat.see("So be it.", "✓ write_file")
    assert (room.work / "out.txt").read_text() == "one\ntwo\n"


def test_a_no_with_words_reaches_the_model(room: Room):
    claude = room.provider("anthropic", WRITE)
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("write it")
    seat.see("y yes")
    seat.enter("no, into notes.txt")
    seat.see("So be it.", "✗ write_file", "denied")
    assert [request.status for request in claude.requests] == [200, 200]
    assert "into notes.txt" in str((claude.requests[-1].body or {})["messages"][-1])
    assert not (room.work / "out.txt").exists()
    assert accepted(claude)


def test_what_was_typed_before_the_question_is_no_answer(room: Room):
    script = f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\n{WRITE}"
    room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("write it")
    seat.see("⟳ shell")
    seat.type("yes")
    seat.wait_for(lambda: any(line.startswith("❯ yes") for line in seat.lines))
    (room.work / "go").touch()
    seat.see("y yes")
    seat.type(ENTER)
    seat.type(" \x7f")
    seat.enter("never")
    seat.see("✗ write_file", "So be it.")
    assert not (room.work / "out.txt").exists()


def test_a_line_sent_before_the_question_waits_as_the_next_message(room: Room):
    script = (
        f"call shell {json.dumps({'command': 'while [ ! -e go ]; do sleep 0.05; done'})}\n---\n{WRITE}\n---\nsay Why?"
    )
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("write it")
    seat.see("⟳ shell")
    seat.enter("y")
    seat.see("+ y")
    (room.work / "go").touch()
    seat.see("y yes")
    assert not (room.work / "out.txt").exists()
    seat.enter("no")
    seat.see("So be it.", "Why?")
    assert not (room.work / "out.txt").exists()
    assert (claude.requests[-1].body or {})["messages"][-1]["content"] == "y"


TRUSTED = """
[tools]
allow = ["shell(make *)", "write_file(docs/*)"]

[mcp.notes]
command = ["no-such-program", "--all"]

[providers.anthropic]
base_url = "http://127.0.0.1:9/\\u202eelsewhere"
"""


def test_the_question_of_trust_shows_all_that_is_trusted(room: Room):
    (room.work / ".segue.toml").write_text(TRUSTED)
    room.provider("kimi", "say Hi.")
    seat = room.chat("-m", KIMI, columns=60)
    seat.see("Trust this file until it changes?")
    for word in ("shell(make *)", "write_file(docs/*)", "no-such-program", "--all", "http://127.0.0.1:9/"):
        assert word in seat.text.replace("\n", "")
    assert "\u202e".encode() not in seat.raw
    seat.type("\n")
    seat.see(PROMPT)


def test_ctrl_c_at_a_question_ends_the_turn(room: Room):
    claude = room.provider("anthropic", f"{WRITE}\n---\nsay Fine.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("write it")
    seat.see("y yes")
    seat.type(CTRL_C)
    seat.see("cancelled")
    seat.miss("y yes")
    seat.enter("go on")
    seat.see("So be it.")
    assert not (room.work / "out.txt").exists()
    assert accepted(claude)


def test_ctrl_c_ends_running_tools(room: Room):
    script = 'call shell {"command": "sleep 3600"}\ncall shell {"command": "sleep 3601"}\n---\nsay Still here.'
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("sleep")
    seat.see("⟳ shell", count=2)
    seat.type(CTRL_C)
    seat.see("– shell", count=2)
    seat.see("cancelled")
    seat.enter("awake?")
    seat.see("Still here.")
    assert accepted(claude)


def test_ctrl_c_gives_back_what_was_not_sent(room: Room):
    claude = room.provider("anthropic", "say  Some words.\nwait 3600\nsay more\n---\nsay Again.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("hello")
    seat.see("Some words.")
    for line in ("next one", "then this"):
        seat.enter(line)
        seat.see(f"+ {line}")
    seat.type("half")
    seat.see("half")
    seat.type(CTRL_C)
    seat.see("cancelled", "❯ next one\n  then this\n  half")
    assert len(claude.requests) == 1
    seat.type(ENTER)
    seat.see("Again.")
    assert "next one\\nthen this\\nhalf" in spoken(claude)


def test_ctrl_c_twice_leaves_nothing_running(room: Room):
    script = "call shell " + json.dumps({"command": "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.1; done"})
    claude = room.provider("anthropic", f"{script}\n---\nsay On we go.")
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("run it")
    seat.see("⟳ shell")
    seat.wait_for(lambda: (room.work / "pid").exists() and (room.work / "pid").read_text().strip())
    seat.type(CTRL_C + CTRL_C)
    assert seat.left() == 0
    assert "– shell" in seat.text
    with pytest.raises(ProcessLookupError):
        os.kill(int((room.work / "pid").read_text()), 0)
    again = room.chat("-c", "-m", CLAUDE)
    again.see(PROMPT, "– shell")
    again.enter("go on")
    again.see("On we go.")
    assert accepted(claude)


def test_a_subagents_calls_stand_below_its_own(room: Room):
    script = (
        'call task {"description": "count files", "prompt": "Count them."}\n---\n'
        'call list_dir {"path": "."}\n---\nsay None.\n---\nsay There are no files.'
    )
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("count")
    seat.see("There are no files.")
    assert re.search(r"^  ✓ task  count files .*\n    ✓ list_dir ", seat.text, re.MULTILINE)
    assert accepted(claude)


# ---------------------------------------------------------------------------------------------------------- the models


def test_another_model_in_the_middle_of_a_task(room: Room):
    wait = json.dumps({"command": "while [ ! -e go ]; do sleep 0.05; done; echo 8080"})
    claude = room.provider("anthropic", f"say I look.\ncall shell {wait}")
    kimi = room.provider("kimi", "say It is {shell}, says Kimi.")
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("which port?")
    seat.see("⟳ shell")
    seat.type(f"/model {KIMI}")
    seat.see(KIMI)
    seat.type(ENTER)
    seat.see("from the next request", "the current reply and its tools stay")
    assert not kimi.requests
    (room.work / "go").touch()
    seat.see("says Kimi.")
    assert (len(claude.requests), len(kimi.requests)) == (1, 1)
    assert accepted(claude, kimi)
    assert "8080" in spoken(kimi)


def test_toolformat_lists_all_and_says_auto_or_manual(room: Room):
    claude = room.provider("anthropic", "say In words.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("/toolformat")
    seat.see("(auto)", *TOOL_FORMATS)
    seat.enter("/toolformat hermes")
    seat.see("from the next request")
    seat.enter("/toolformat")
    seat.see("hermes (manual)", "tools hermes")
    seat.enter("hello")
    seat.see("In words.")
    assert "tools" not in (claude.requests[-1].body or {})
    seat.enter("/toolformat openai")
    seat.see("anthropic does not support tool format 'openai'")
    seat.enter("/toolformat auto")
    seat.see("auto (anthropic)")


# -------------------------------------------------------------------------------------------------- the conversation


def test_undo_takes_back_a_compression_then_an_exchange(room: Room):
    notes = "".join(f"line {number} of the notes\n" for number in range(400))
    (room.work / "notes.txt").write_text(notes)
    script = 'call read_file {"path": "notes.txt"}\n---\nsay First answer.\n---\nsay Second answer.\n---\nsay Third.'
    claude = room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("read it")
    seat.see("First answer.")
    seat.enter("and now?")
    seat.see("Second answer.")
    seat.enter("/compress truncate-results 500")
    seat.see("compressed (truncate-results)")
    seat.enter("/undo")
    seat.see("compression undone")
    seat.enter("/undo")
    seat.see("last exchange undone", "«and now?»")
    seat.enter("once more")
    seat.see("Third.")
    assert "and now?" not in spoken(claude)
    assert "line 200 of the notes" in spoken(claude)
    assert accepted(claude)


def test_a_conversation_goes_on_where_it_was_left(room: Room):
    claude = room.provider("anthropic", 'call list_dir {"path": "."}\n---\nsay Eighteen.\n---\nsay As I said: 18.')
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("how many?")
    seat.see("Eighteen.")
    seat.type(CTRL_D)
    assert seat.left() == 0
    seat.see("to continue")
    again = room.chat("-c", "-m", CLAUDE)
    again.see("how many?", "✓ list_dir", "Eighteen.", PROMPT)
    again.enter("sure?")
    again.see("As I said: 18.")
    assert "Eighteen." in spoken(claude)
    assert accepted(claude)
    with room.store() as store:
        assert len(store.list()) == 1


def test_two_chats_on_one_conversation(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay Two.\n---\nsay Three.")
    first = room.chat("-m", CLAUDE)
    first.see(PROMPT)
    first.enter("first words")
    first.see("One.")
    second = room.chat("-c", "-m", CLAUDE)
    second.see(PROMPT, "open in another process; /fork continues in a copy")
    second.enter("from the second")
    second.see("open in another process", count=2)
    second.wait_for(lambda: second.lines.count("❯ from the second") == 2)  # what was asked, and the input line
    first.enter("more words")
    first.see("Two.")
    first.type(CTRL_D)
    assert first.left() == 0
    second.type(ENTER)
    second.see("2 new messages from another process", "❯ more words", "Two.", "Three.")
    asked = [message["content"] for message in messages(claude) if message["role"] == "user"]
    assert asked == ["first words", "more words", "from the second"]
    assert accepted(claude)


def test_words_after_a_command_wait_until_it_is_done(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("first words")
    seat.see("One.")
    seat.type(f"/new{ENTER}elsewhere{ENTER}")
    seat.see("Two.")
    assert "first words" not in spoken(claude)
    with room.store() as store:
        assert {row.opening for row in store.list()} == {"elsewhere", "first words"}


def test_a_copy_and_the_way_back(room: Room):
    claude = room.provider("anthropic", "say One.\n---\nsay In the copy.\n---\nsay Back.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("/fork")
    seat.see("nothing to copy: there are no messages yet")
    with room.store() as store:
        (row,) = store.list()
    seat.enter(f"/sessions {row.id}")
    seat.see(f"{row.id} is already open")
    seat.enter("hello")
    seat.see("One.")
    seat.enter("/fork")
    seat.see(f"forked from {row.id}, which is unchanged", "One.", count=1)
    seat.enter("in there")
    seat.see("In the copy.")
    seat.enter(f"/sessions {row.id}")
    seat.see(f"conversation {row.id}, 2 messages")
    seat.enter("and here")
    seat.see("Back.")
    assert "in there" not in spoken(claude)
    seat.enter("/sessions 1")
    seat.see("✗ several conversation ids begin with '1'")


def test_a_conversation_without_a_word_is_not_kept(room: Room):
    seat = room.chat(bare=True)
    seat.see(PROMPT, "emulated")
    seat.type(CTRL_D)
    assert seat.left() == 0
    with room.store() as store:
        assert not store.list()


# --------------------------------------------------------------------------------------------------- leaving and help


def test_ctrl_c_twice_leaves(room: Room):
    seat = room.chat()
    seat.see(PROMPT)
    seat.type("half a sentence")
    seat.see("half a sentence")
    seat.type(CTRL_C)
    seat.miss("half a sentence")
    seat.see("press Ctrl-C again to exit")
    seat.type("x")
    seat.miss("press Ctrl-C again to exit")
    seat.type(CTRL_C)
    seat.see("press Ctrl-C again to exit")
    seat.type(CTRL_C)
    assert seat.left() == 0


def test_help_is_the_table_and_slips_are_told(room: Room):
    seat = room.chat()
    seat.see(PROMPT)
    seat.enter("/help")
    seat.see(*(f"/{name}" for name in COMMANDS), "Ctrl-T", "Alt-Enter")
    seat.enter("/modle")
    seat.see("did you mean /model")
    seat.enter("/quit")
    assert seat.left() == 0


def test_tab_completes_commands_models_and_paths(room: Room):
    (room.work / "readme.md").touch()
    room.provider("kimi", "say Hi.")
    seat = room.chat("-m", KIMI)
    seat.see(PROMPT)
    seat.type("/toolf")
    seat.see("show or set the tool format")
    seat.type("\t")
    seat.wait_for(lambda: any(line.startswith("❯ /toolformat") for line in seat.lines))
    seat.type(" mistr")
    seat.see("mistral-text")
    seat.type(CTRL_C)
    seat.type("look at @read")
    seat.see("readme.md")
    seat.type("\t")
    seat.wait_for(lambda: any("look at @readme.md" in line for line in seat.lines))


# ---------------------------------------------------------------------------------------------- widths, colours, pipes


@pytest.mark.parametrize("columns", [40, 200])
def test_any_width(room: Room, columns: int):
    script = f"say {'Some words that are wrapped. ' * 12}\ncall read_file {{}}\n{WRITE}"
    room.provider("anthropic", script)
    seat = room.chat("-m", CLAUDE, columns=columns)
    seat.see(PROMPT[:10])
    seat.enter("go")
    seat.see("write_file", "yes")
    assert all(len(line) <= columns for line in seat.lines)
    assert not re.search(r"word$|wra$|tha$", seat.text, re.MULTILINE)
    seat.enter("n")
    seat.see("So be it.")


def test_a_window_made_smaller_leaves_no_trail(room: Room):
    room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE, columns=120)
    seat.see(PROMPT)
    seat.enter("go")
    seat.see("One.", PROMPT)
    for columns in (70, 30, 100):
        seat.resize(columns)
        seat.type("x")
        seat.wait_for(lambda: any(line.startswith("❯ x") for line in seat.lines))
        seat.type("\x7f")
        seat.see(PROMPT)
        assert sum("───" in line for line in seat.lines) == 1
        assert sum(line.startswith("❯ ") for line in seat.lines) == 2


def test_no_color_means_none(room: Room):
    room.provider("anthropic", "say **Bold** and `code`.")
    seat = room.chat("-m", CLAUDE, NO_COLOR="1")
    seat.see(PROMPT)
    seat.enter("go")
    seat.see("Bold and code.")
    colours = re.findall(rb"\x1b\[([0-9;]*)m", bytes(seat.raw))
    numbers = {number for colour in colours for number in colour.split(b";")}
    assert not {number for number in numbers if number and 30 <= int(number) <= 107}


def test_a_dumb_terminal_gets_lines(room: Room):
    room.provider("anthropic", f"say **As it is**.\n---\n{WRITE}")
    seat = room.chat("-m", CLAUDE, TERM="dumb")
    seat.see("\n>")
    seat.type("go\n")
    seat.see("**As it is**.")
    seat.type("write\n")
    seat.see("+one", "y(es)")
    seat.type("y\n")
    seat.see("So be it.")
    seat.type("/quit\n")
    assert seat.left() == 0
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


def test_nothing_that_is_said_drives_the_terminal(room: Room):
    (room.work / "evil.txt").write_text(EVIL)
    command = json.dumps({"command": "cat evil.txt >&2; cat evil.txt; exit 3"})
    path = json.dumps({"path": EVIL.replace("/", ""), "content": EVIL})
    room.provider("anthropic", f"say Look: {EVIL}\ncall shell {command}\ncall write_file {path}\n---\nsay {{shell}}")
    seat = room.chat("-m", CLAUDE, "--allow", "shell")
    seat.see(PROMPT)
    seat.enter("/debug")
    seat.see("are shown")
    seat.enter("go")
    seat.see("y yes")
    seat.enter("n")
    seat.see("✗ shell")
    seat.wait_for(lambda: any(line.startswith("❯ ask anything") for line in seat.lines))
    raw = bytes(seat.raw)
    assert b"\x1b]" not in raw
    assert b"\x1b[2J" not in raw
    assert "\u202e".encode() not in raw
    assert "\x9b".encode() not in raw
    assert "\u241b]52;c;ZXZpbA==" in seat.text


def test_what_was_typed_is_remembered_for_its_owner_only_and_without_secrets(room: Room):
    room.provider("anthropic", "say One.\n---\nsay Two.")
    seat = room.chat("-m", CLAUDE)
    seat.see(PROMPT)
    seat.enter("a good question")
    seat.see("One.")
    seat.enter("my key is sk-ant-REDACTED")
    seat.see("Two.")
    seat.type(CTRL_D)
    assert seat.left() == 0
    (file,) = room.home.rglob("input.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == '"a good question"\n'
    again = room.chat("-m", CLAUDE)
    again.see(PROMPT)
    again.type("\x1b[A")
    again.wait_for(lambda: any(line.startswith("❯ a good question") for line in again.lines))
