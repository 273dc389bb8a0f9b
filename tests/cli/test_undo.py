"""`segue undo` and `/undo`: files that tools changed are restored, also after a kill, and the model is informed."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import segue.emulator
from segue.emulator import Emulator
from tests.cli.process import environment, is_one_line_error
from tests.cli.project import KEY, Project
from tests.cli.terminal_session import PROMPT, TerminalSession
from tests.cli.test_chat import CLAUDE, Room, accepted, request_texts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
RUN = ("run", "-m", "anthropic/claude-sonnet-5", "--allow", "*")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    (made.folder / "notes.txt").write_text("first\n")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def start_emulator(project: Project) -> Iterator[Callable[..., Emulator]]:
    with ExitStack() as stack:

        def play(script: str) -> Emulator:
            started = stack.enter_context(segue.emulator.start("anthropic", script=script, keys=[KEY]))
            project.configure_providers(anthropic=started)
            return started

        yield play


@pytest.fixture
def room(tmp_path: Path) -> Generator[Room]:
    with ExitStack() as stack:
        yield Room(tmp_path, stack)


def call(tool: str, **arguments: object) -> str:
    return f"call {tool} {json.dumps(arguments)}\n"


def write(path: str, content: str) -> str:
    return call("write_file", path=path, content=content)


def last_user_text(emulator: Emulator) -> str:
    body: Any = emulator.requests[-1].body
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def test_files_of_the_last_exchange_are_restored(project: Project, start_emulator: Callable[..., Emulator]):
    script = write("notes.txt", "second") + call("shell", command="echo x > made.txt; rm -f gone.txt")
    emulator = start_emulator(f"{script}---\nsay Done.\n---\nsay Seen.\n---\nsay Again.\n")
    (project.folder / "gone.txt").write_text("precious")
    assert project.run(*RUN, "Go").code == 0
    assert sorted(path.name for path in project.folder.iterdir()) == ["made.txt", "notes.txt"]
    planned = project.run("undo", "--dry-run")
    assert sorted(planned.lines) == ["restore: gone.txt", "restore: made.txt", "restore: notes.txt"]
    ended = project.run("undo")
    assert (ended.code, sorted(ended.lines)) == (0, ["gone.txt", "made.txt", "notes.txt"])
    assert ended.err == "segue: 3 files restored; segue undo --redo reverts it\n"
    assert (project.folder / "gone.txt").read_text() == "precious"
    assert (project.folder / "notes.txt").read_text() == "first\n"
    assert not (project.folder / "made.txt").exists()
    assert is_one_line_error(project.run("undo"))
    assert sorted(project.run("undo", "--redo", "--json").json["restored"]) == ["gone.txt", "made.txt", "notes.txt"]
    assert (project.folder / "notes.txt").read_text() == "second"
    project.run("undo")
    project.run(*RUN, "-c", "What now?")
    assert last_user_text(emulator).startswith("[since the last message, the user has restored")
    assert "notes.txt" in last_user_text(emulator)
    project.run(*RUN, "-c", "And now?")
    assert last_user_text(emulator) == "And now?"
    assert accepted(emulator)


def test_file_changed_since_is_kept(project: Project, start_emulator: Callable[..., Emulator]):
    start_emulator(write("notes.txt", "second") + "---\nsay Done.\n")
    project.run(*RUN, "Go")
    (project.folder / "notes.txt").write_text("mine")
    ended = project.run("undo")
    assert (ended.code, ended.err) == (1, "segue: notes.txt: kept, because it changed since\n")
    assert (project.folder / "notes.txt").read_text() == "mine"
    assert project.run("undo", "1", "--yes").lines == ["notes.txt"]
    assert (project.folder / "notes.txt").read_text() == "first\n"


def test_nothing_to_undo(project: Project, start_emulator: Callable[..., Emulator]):
    assert is_one_line_error(project.run("undo"))
    start_emulator("say Hi.\n")
    project.run(*RUN, "Hi")
    for arguments in (("undo",), ("undo", "1"), ("undo", "--redo"), ("undo", "zzz")):
        assert is_one_line_error(project.run(*arguments)), arguments


def test_deleted_conversation_has_no_earlier_versions(project: Project, start_emulator: Callable[..., Emulator]):
    start_emulator(write("notes.txt", "second") + "---\nsay Done.\n")
    made = project.run(*RUN, "--json", "Go").json["conversation"]
    assert len(list(project.home.rglob(f"{made}.jsonl"))) == 1
    project.run("log", "delete", made, "--yes")
    assert list(project.home.rglob(f"{made}.jsonl")) == []


def test_nothing_stays_without_a_store(project: Project, start_emulator: Callable[..., Emulator]):
    start_emulator(write("notes.txt", "second") + "---\nsay Done.\n")
    assert project.run(*RUN, "--no-store", "Go").code == 0
    assert list(project.home.rglob("*.jsonl")) == []


def test_files_of_a_subagent_are_restored(project: Project, start_emulator: Callable[..., Emulator]):
    script = [
        call("task", description="write it", prompt="Write."),
        write("notes.txt", "second"),
        "say Did.",
        "say Done.",
    ]
    start_emulator("\n---\n".join(script))
    assert project.run(*RUN, "Go").code == 0
    assert (project.folder / "notes.txt").read_text() == "second"
    assert project.run("undo").lines == ["notes.txt"]


# ---------------------------------------------------------------------------------------------------------------- chat


def test_undo_and_redo_in_a_chat(room: Room):
    script = [
        write("a.txt", "one"),
        "say Wrote one.",
        write("a.txt", "two") + write("new/b.txt", "b"),
        "say Wrote two.",
    ]
    claude = room.provider("anthropic", "\n---\n".join([*script, "say Third."]))
    seat = room.chat("-m", CLAUDE, "--allow", "write_file")
    seat.wait_for_text(PROMPT)
    seat.enter("first")
    seat.wait_for_text("Wrote one.")
    seat.enter("do more")
    seat.wait_for_text("Wrote two.")
    seat.enter("/undo")
    seat.wait_for_text("2 files restored: a.txt, new/b.txt", "last exchange undone («do more»)")
    assert (room.work / "a.txt").read_text() == "one"
    assert not (room.work / "new").exists()
    seat.enter("/redo")
    seat.wait_for_text("/undo files reverts it", "2 files restored", count=1)
    seat.wait_for((room.work / "new" / "b.txt").exists)
    assert (room.work / "a.txt").read_text() == "two"
    seat.enter("/undo files")
    seat.wait_for_text("/redo reverts it")
    seat.wait_for(lambda: not (room.work / "new").exists())
    seat.enter("third")
    seat.wait_for_text("Third.")
    assert "do more" not in request_texts(claude)
    assert "restored other versions of these files: a.txt, new/b.txt" in request_texts(claude)
    assert accepted(claude)


CHANGED = [("y", "first"), ("yes", "first"), ("k", "mine"), ("n", "mine"), ("no", "mine"), ("what?", "mine")]


@pytest.mark.parametrize(("answer", "content"), CHANGED)
def test_file_that_the_user_changed_is_asked_for(room: Room, answer: str, content: str):
    is_undone = answer in ("y", "yes", "k")
    files = write("a.txt", "tool") + write("b.txt", "tool")
    claude = room.provider("anthropic", f"{files}---\nsay Written.\n---\nsay Fine.")
    (room.work / "a.txt").write_text("first")
    seat = room.chat("-m", CLAUDE, "--allow", "write_file")
    seat.wait_for_text(PROMPT)
    seat.enter("hello")
    seat.wait_for_text("Written.")
    (room.work / "a.txt").write_text("mine")
    seat.enter("/undo")
    seat.wait_for_text("overwrite 1 file that changed since", "a.txt", "y yes, overwrite", "n no, change nothing")
    seat.enter(answer)
    seat.wait_for_text("first exchange undone" if is_undone else "nothing was changed")
    assert (room.work / "a.txt").read_text() == content
    assert (room.work / "b.txt").exists() != is_undone
    assert ("kept, because it changed since" in seat.text) == (answer == "k")
    seat.enter("more")
    seat.wait_for_text("Fine.")
    assert ("hello" in request_texts(claude)) != is_undone


@pytest.mark.parametrize("command", ["/undo files", "/redo"])
def test_answering_no_changes_no_file(room: Room, command: str):
    room.provider("anthropic", write("a.txt", "tool") + write("b.txt", "tool") + "---\nsay Written.")
    (room.work / "a.txt").write_text("first")
    seat = room.chat("-m", CLAUDE, "--allow", "write_file")
    seat.wait_for_text(PROMPT)
    seat.enter("hello")
    seat.wait_for_text("Written.")
    if command == "/redo":
        seat.enter("/undo files")
        seat.wait_for_text("2 files restored")
    (room.work / "a.txt").write_text("mine")
    had = (room.work / "b.txt").exists()
    seat.enter(command)
    seat.wait_for_text("overwrite 1 file that changed since")
    seat.enter("n")
    seat.wait_for_text("nothing was changed")
    assert ((room.work / "a.txt").read_text(), (room.work / "b.txt").exists()) == ("mine", had)


@pytest.mark.parametrize(("answer", "content"), [("y", "first\n"), ("n", "mine")])
def test_answering_no_outside_of_a_chat_changes_no_file(
    project: Project, start_emulator: Callable[..., Emulator], answer: str, content: str
):
    start_emulator(write("notes.txt", "second") + write("made.txt", "x") + "---\nsay Done.\n")
    project.run(*RUN, "Go")
    (project.folder / "notes.txt").write_text("mine")
    seat = TerminalSession("undo", environment=environment(**project.variables), folder=project.folder)
    with seat:
        seat.wait_for_text("changed since: notes.txt", "Overwrite?")
        seat.enter(answer)
        assert seat.wait_exit() == (0 if answer == "y" else 1)
    assert (project.folder / "notes.txt").read_text() == content
    assert (project.folder / "made.txt").exists() == (answer == "n")
    assert ("nothing was changed" in seat.text) == (answer == "n")


def test_undo_after_kill_and_resume(room: Room):
    loop = "echo changed > c.txt; while :; do sleep 0.1; done"
    script = [write("a.txt", "tool"), "say Written.", call("shell", command=loop)]
    room.provider("anthropic", "\n---\n".join(script))
    seat = room.chat("-m", CLAUDE, "--allow", "*")
    seat.wait_for_text(PROMPT)
    seat.enter("write it")
    seat.wait_for_text("Written.")
    seat.enter("loop")
    seat.wait_for((room.work / "c.txt").exists)
    seat._process.send_signal(signal.SIGKILL)
    seat.wait_exit()
    again = room.chat("-c", "-m", CLAUDE)
    again.wait_for_text(PROMPT)
    again.enter("/undo files")
    # What a killed command changed can't be told from what the user changed.
    again.wait_for_text("overwrite 1 file that changed since", "c.txt", "y yes, overwrite")
    again.enter("y")
    again.wait_for_text("1 file restored: c.txt")
    assert not (room.work / "c.txt").exists()
    again.enter("/undo files")
    again.wait_for_text("1 file restored: a.txt")
    assert not (room.work / "a.txt").exists()


def test_change_that_can_not_be_recorded_is_reported(project: Project, start_emulator):
    start_emulator(write("notes.txt", "second") + "---\nsay Done.")
    state = project.folder / "state"
    state.write_text("a file where a folder is needed")
    ended = project.run(*RUN, "Write it", XDG_STATE_HOME=str(state))
    assert ended.code == 0
    assert "changes can't be undone" in ended.err
