"""`@FILE` in a prompt: a missing file is an error, other words are left as they are. And a store in no folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from segue.cli.attachments import find_mentions
from segue.cli.streams import BadInputError
from tests.cli.project import Project


@pytest.mark.parametrize("name", ["missing.txt", "src/gone.py", "a/b/c.json", "gone.md,"])
def test_missing_file_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError, match=f"there is no file {name.rstrip(',')}"):
        find_mentions(f"Look at @{name} please", tmp_path)


@pytest.mark.parametrize("word", ["@someone", "a@b.py", "@app.route", "@types/node", "@", "@@x", "@property"])
def test_other_words_are_left_as_they_are(tmp_path: Path, word: str) -> None:
    assert find_mentions(f"Ask {word} please", tmp_path) == {}


def test_commands_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    monkeypatch.chdir(project.folder)
    (project.folder / "notes.txt").write_text("buy milk")
    ended = project.run("run", "--emulated", "Read @missing.txt")
    assert (ended.code, ended.err) == (2, "segue: there is no file missing.txt; write it without @ if it is no file\n")
    output = project.run("chat", "--emulated", stdin=b"Read @missing.txt\nRead @notes.txt\n").out.decode()
    assert "there is no file missing.txt" in output
    assert "▤ notes.txt  1 line" in output
    assert "notes.txt says:\n\nbuy milk" in output
    [chat] = project.run("log", "--json").json
    assert chat["opening"] == "Read @notes.txt"
    assert output.endswith(f"  to continue: segue chat --emulated -s {chat['id']}\n")


def test_store_in_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    project = Project(tmp_path)
    missing = tmp_path / "gone" / "store.db"
    for command in (["run", "--emulated", "Hello"], ["log"], ["chat", "--emulated"]):
        ended = project.run(*command, SEGUE_STORE=str(missing))
        assert (ended.code, ended.err.splitlines()[-1]) == (
            2,
            f"segue: SEGUE_STORE: there is no folder {missing.parent}",
        )
    assert not missing.parent.exists()


def test_chat_says_what_a_turn_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    monkeypatch.chdir(project.folder)
    (project.folder / "notes.txt").write_text("buy bread\nbuy milk\n")
    lines = b'Replace "bread" with "jam" in notes.txt\nWrite "one" to new.txt\nRead notes.txt\n'
    arguments = ["chat", "--emulated", "--dangerously-allow-all"]
    output = project.run(*arguments, stdin=lines).out.decode()
    assert [line.strip() for line in output.splitlines() if "changed" in line] == [
        "changed notes.txt (+1 −1)",
        "changed new.txt (+1 −0)",
    ]


def test_the_output_of_a_command_is_no_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    monkeypatch.chdir(project.folder)
    (project.folder / "notes.txt").write_text("buy milk")
    lines = b"!echo see @missing.txt and @notes.txt\nWhat is that?\n/undo\n!echo two\nAnd that?\n"
    output = project.run("chat", "--emulated", stdin=lines).out.decode()
    assert "there is no file" not in output
    assert "\u276f What is that?\n  \u25a4 $ echo see @missing.txt and @notes.txt  1 line\n" in output
    assert "undone (\u00abWhat is that?\u00bb)" in output
    [chat, *_] = project.run("log", "--json").json
    assert chat["opening"] == "And that?"
    [message, *_] = project.run("export", chat["id"], "--format", "anthropic").json["messages"]
    assert [part["text"] for part in message["content"]] == ["And that?", "$ echo two:\n```\ntwo\n```"]
    assert project.run("brief", chat["id"]).out.decode().count("[turn 0]") == 1
