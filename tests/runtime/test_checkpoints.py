"""Checkpoints: files that tools changed are brought back, and nothing else is touched."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.runtime import checkpoint_journal, folder_snapshot
from segue.runtime.checkpoint_journal import delete_journals, prune
from segue.runtime.checkpoints import Checkpoints
from segue.runtime.tool_types import Context
from segue.runtime.tools.shell import shell
from segue.runtime.tools.write import edit_file, write_file


class Work:
    """A folder, and the tools of a conversation in it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.base = root / "checkpoints"
        self.folder.mkdir()
        self.points = self.open()

    def open(self) -> Checkpoints:
        made = Checkpoints(self.base, self.folder, "talk")
        made.begin_exchange()
        return made

    def context(self, call: str, tool: str) -> Context:
        return Context(self.folder, call_id=call, changes=self.points.recorder(call, tool))

    def write(self, path: str, content: str, call: str = "call") -> None:
        write_file().run({"path": path, "content": content}, self.context(call, "write_file"))

    def edit(self, path: str, old: str, new: str, call: str = "call") -> None:
        edit_file().run({"path": path, "old_string": old, "new_string": new}, self.context(call, "edit_file"))

    def shell(self, command: str, call: str = "call") -> None:
        async def run() -> None:
            result: Any = shell().run({"command": command}, self.context(call, "shell"))
            await result

        asyncio.run(run())

    def undo(self, *, overwrite: bool = False):
        return self.points.apply(self.points.plan_undo(), overwrite=overwrite)

    def redo(self, *, overwrite: bool = False):
        return self.points.apply(self.points.plan_redo(), overwrite=overwrite)

    def files(self) -> Mapping[str, bytes]:
        paths = [path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths}

    def folders(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_dir()}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_edits_are_undone_and_redone(work: Work) -> None:
    (work.folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (work.folder / "run.sh").write_text("#!/bin/sh\n")
    (work.folder / "run.sh").chmod(0o755)
    before = work.files()
    work.edit("a.txt", "two", "three")
    work.edit("a.txt", "one", "four")
    work.write("run.sh", "exit 1\n")
    work.write("new/deep/b.txt", "new")
    after = work.files()
    result = work.undo()
    assert sorted(result.restored) == ["a.txt", "new/deep/b.txt", "run.sh"]
    assert (work.files(), work.folders()) == (before, set())
    assert stat.S_IMODE((work.folder / "run.sh").stat().st_mode) == 0o755
    assert work.undo().restored == ()
    assert sorted(work.redo().restored) == ["a.txt", "new/deep/b.txt", "run.sh"]
    assert work.files() == after
    work.undo()
    assert work.files() == before


def test_exchanges_are_undone_one_after_the_other(work: Work) -> None:
    for number in range(3):
        work.points.begin_exchange()
        work.write("a.txt", f"{number}")
        work.write(f"{number}.txt", "x")
    states = [{"a.txt": b"1", "0.txt": b"x", "1.txt": b"x"}, {"a.txt": b"0", "0.txt": b"x"}, {}]
    for state in states:
        work.undo()
        assert work.files() == state
    work.write("a.txt", "later")
    with pytest.raises(InputError, match="nothing to redo: tools have changed"):
        work.redo()


def test_calls_select_what_is_undone(work: Work) -> None:
    work.write("a.txt", "a", call="first")
    work.write("b.txt", "b", call="second")
    plan = work.points.plan_undo({"second"})
    assert [file.display for file in plan.files] == ["b.txt"]
    work.points.apply(plan)
    assert work.files() == {"a.txt": b"a"}


def test_shell_commands_are_undone(work: Work) -> None:
    for name in ("changed", "removed", "moved", "kept"):
        (work.folder / name).write_text(name)
    (work.folder / "sub").mkdir()
    (work.folder / "sub" / "deep").write_text("deep")
    (work.folder / ".gitignore").write_text("ignored\n")
    before, folders = work.files(), work.folders()
    work.shell(
        "echo x >> changed; rm removed; mv moved elsewhere; rm -r sub; mkdir -p new/x; echo y > new/x/y; chmod 700 kept"
    )
    work.shell("echo built > ignored; sed -i s/c/C/ changed")
    assert work.files() != before
    result = work.undo()
    assert set(result.restored) >= {"changed", "removed", "moved", "elsewhere", "sub/deep", "new/x/y"}
    assert work.files() == {**before, "ignored": b"built\n"}
    assert work.folders() == folders
    assert "new/x/y" in work.redo().restored
    assert (work.folder / "new/x/y").read_text() == "y\n"


def test_change_of_equal_size_right_after_the_snapshot_is_found(work: Work) -> None:
    for number in range(5):
        (work.folder / "same").write_text(f"{number}")
        work.shell("printf x > same")
        work.undo()
        assert (work.folder / "same").read_text() == f"{number}"


def test_file_changed_since_is_kept_unless_overwritten(work: Work) -> None:
    (work.folder / "mine.txt").write_text("first")
    work.write("mine.txt", "tool")
    work.write("other.txt", "tool")
    (work.folder / "mine.txt").write_text("mine")
    result = work.undo()
    assert (result.restored, result.kept) == (("other.txt",), ("mine.txt",))
    assert work.files() == {"mine.txt": b"mine"}
    assert work.undo(overwrite=True).restored == ("mine.txt",)
    assert work.files() == {"mine.txt": b"first"}
    # What the user wrote is not lost either.
    assert work.redo().restored == ("mine.txt",)
    assert work.files() == {"mine.txt": b"mine"}


def test_redo_keeps_what_changed_since(work: Work) -> None:
    work.write("a.txt", "tool")
    work.undo()
    (work.folder / "a.txt").write_text("mine")
    assert work.redo().kept == ("a.txt",)
    assert work.files() == {"a.txt": b"mine"}


def test_a_new_process_undoes_what_another_did(work: Work) -> None:
    (work.folder / "a.txt").write_text("first")
    work.write("a.txt", "second")
    work.points = Checkpoints(work.base, work.folder, "talk")
    assert work.undo().restored == ("a.txt",)
    other = Checkpoints(work.base, work.folder, "another talk")
    assert other.plan_undo().files == ()


def test_command_whose_process_was_killed_is_a_conflict(work: Work) -> None:
    (work.folder / "a.txt").write_text("first")
    work.points.start_command("call", "sleep 100")
    (work.folder / "a.txt").write_text("by the command, or by the user")
    work.points = work.open()
    plan = work.points.plan_undo()
    assert [(file.display, file.outcome) for file in plan.files] == [("a.txt", "conflict")]
    assert work.undo().kept == ("a.txt",)
    assert work.undo(overwrite=True).restored == ("a.txt",)
    assert (work.folder / "a.txt").read_text() == "first"
    assert work.open().plan_undo().files == ()


def test_journal_that_was_cut_off_goes_on(work: Work) -> None:
    work.write("a.txt", "a")
    [file] = work.base.glob("*/talk.jsonl")
    with file.open("ab") as journal:
        journal.write(b'{"type":"change","id":"x","exch')
    work.write("b.txt", "b")
    assert sorted(work.undo().restored) == ["a.txt", "b.txt"]


def test_folder_that_is_too_large_is_reported(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_snapshot, "_MAX_FILES", 3)
    for number in range(5):
        (work.folder / f"{number}").write_text("x")
    work.write("edited", "x")
    work.shell("echo y > 0")
    result = work.undo()
    assert result.restored == ("edited",)
    assert result.commands == ("echo y > 0 (the folder has more than 3 files)",)
    assert (work.folder / "0").read_text() == "y\n"


def test_large_file_is_reported(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_snapshot, "_MAX_FILE", 10)
    (work.folder / "large").write_text("x" * 11)
    work.shell("echo more >> large; echo y > small")
    result = work.undo()
    assert (result.restored, result.lost) == (("small",), ("large",))


def test_git_state_of_the_user_stays(work: Work) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        return subprocess.run(command, cwd=work.folder, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (work.folder / "a.txt").write_text("committed\n")
    git("add", "a.txt")
    git("commit", "-qm", "first")
    (work.folder / "a.txt").write_text("staged\n")
    git("add", "a.txt")
    (work.folder / "a.txt").write_text("stashed\n")
    git("stash", "-q")
    git("stash", "apply", "-q", "--index")

    def state() -> dict[str, bytes]:
        paths = [path for path in (work.folder / ".git").rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in paths}

    before, files = state(), work.files()
    work.write("a.txt", "tool\n")
    work.shell("echo x > b.txt; echo y >> a.txt")
    work.undo()
    work.redo()
    work.undo()
    assert state() == before
    assert work.files() == files


def test_restoring_follows_no_link(work: Work, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (work.folder / "sub").mkdir()
    (work.folder / "sub" / "a.txt").write_text("first")
    work.write("sub/a.txt", "second")
    (work.folder / "sub").rename(work.folder / "moved")
    (work.folder / "sub").symlink_to(outside)
    (outside / "a.txt").write_text("second")
    result = work.undo(overwrite=True)
    assert result.restored == ()
    assert (outside / "a.txt").read_text() == "second"


def test_links_and_odd_names(work: Work) -> None:
    (work.folder / "target").write_text("first")
    (work.folder / "link").symlink_to("target")
    os.mkfifo(work.folder / "pipe")
    work.write("link", "second")
    work.shell("echo x > $'a\\nb \\xff'; echo third > target")
    result = work.undo()
    assert result.restored == ("target",)
    assert (work.folder / "link").is_symlink()
    assert (work.folder / "target").read_text() == "first"
    assert stat.S_ISFIFO((work.folder / "pipe").stat().st_mode)


def test_model_is_informed_once(work: Work) -> None:
    assert work.points.begin_exchange() == ""
    work.write("a.txt", "x")
    work.points.apply(work.points.plan_undo(), is_silent=True)
    assert work.points.begin_exchange() == ""
    work.write("b.txt", "x")
    work.undo()
    assert (
        work.points.begin_exchange()
        == "[since the last message, the user has restored other versions of these files: b.txt]"
    )
    assert work.points.begin_exchange() == ""


def test_only_the_owner_reads_it(work: Work) -> None:
    (work.folder / "a.txt").write_text("secret")
    work.write("a.txt", "other")
    assert all(path.stat().st_mode & 0o077 == 0 for path in work.base.rglob("*"))


def test_old_journals_and_unneeded_contents_are_deleted(work: Work) -> None:
    (work.folder / "a.txt").write_text("first")
    work.shell("echo x > b.txt")
    work.write("a.txt", "second")
    contents = list(work.base.glob("*/contents/*/*"))
    now = contents[0].stat().st_mtime
    prune(work.base, now=now + 7_200)
    kept = list(work.base.glob("*/contents/*/*"))
    assert work.points.plan_undo().of("restore")
    assert len(kept) <= len(contents)
    delete_journals(work.base, "talk")
    os.utime(work.base / "pruned", (0, 0))
    Checkpoints(work.base, work.folder, "another").record_write(
        "call", "write_file", work.folder / "c.txt", work.folder, b"c", 0o644
    )
    prune(work.base, now=now + 7_200)
    assert len(list(work.base.glob("*/contents/*/*"))) == 1
    os.utime(work.base / "pruned", (0, 0))
    prune(work.base, now=now + checkpoint_journal._MAX_AGE + 7_200)
    assert [path.name for path in work.base.iterdir()] == ["pruned"]


def test_place_of_the_journal_inside_of_the_folder_is_no_part_of_it(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.base = work.folder / "state"
    work.points = work.open()
    work.shell("echo x > a.txt")
    work.shell("echo y > a.txt")
    assert work.undo().restored == ("a.txt",)
