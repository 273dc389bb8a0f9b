"""An undo restores modes, links and folders as tools found them, and nothing beyond what was there."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from segue.cli.undo import format_undo
from segue.runtime import sandbox
from tests.runtime.test_checkpoints import Work

State = dict[str, tuple[str, int, bytes]]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    made = Work(tmp_path)
    made.folder.chmod(0o755)
    return made


def describe(folder: Path) -> State:
    """Return kind, mode and content of all below a folder."""

    def walk() -> Iterator[tuple[str, tuple[str, int, bytes]]]:
        for path in folder.rglob("*"):
            name, mode = path.relative_to(folder).as_posix(), stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                yield name, ("link", 0, os.fsencode(path.readlink()))
            elif path.is_dir():
                yield name, ("folder", mode, b"")
            else:
                yield name, ("file", mode, path.read_bytes())

    return dict(walk())


def fill(folder: Path) -> None:
    for name, mode in (("run.sh", 0o755), ("notes", 0o644), ("secret", 0o600), ("locked", 0o444), ("odd", 0o615)):
        (folder / name).write_text(f"content of {name}\n")
        (folder / name).chmod(mode)
    for name, mode in (("open", 0o755), ("closed", 0o700), ("empty", 0o750)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "closed" / "key").write_text("key")
    (folder / "closed" / "key").chmod(0o600)
    (folder / "open" / "deep").mkdir(0o711)
    (folder / "open" / "deep" / "file").write_text("deep")
    (folder / "link").symlink_to("notes")
    (folder / "broken").symlink_to("nowhere")
    (folder / "away").symlink_to("/etc")
    (folder / "inside").symlink_to("open")


COMMANDS = (
    "chmod -x run.sh",
    "chmod 777 secret notes",
    "chmod 444 notes; chmod 644 locked",
    "chmod 755 closed; chmod 700 open open/deep; chmod 711 empty",
    "rm run.sh; echo other > run.sh",
    "rm run.sh; umask 077; echo new > run.sh",
    "cp run.sh new; rm run.sh; mv new run.sh; chmod 600 run.sh",
    "echo more >> run.sh; chmod 700 run.sh",
    "rm secret locked; rm -r closed empty open",
    "rm -r closed; mkdir closed; echo other > closed/key",
    "rm run.sh; ln -s notes run.sh",
    "rm link; echo file > link",
    "rm link; ln -s secret link",
    "rm link broken away inside",
    "rm broken; mkdir broken; echo x > broken/x",
    "rm notes; mkdir notes; echo x > notes/x",
    "rm -r open; echo file > open",
    "rm -r open; ln -s closed open",
    "mv open moved; ln -s moved open",
    "rm away; cp -r closed away",
    "ln -s run.sh added; mkdir -m 700 made; echo x > made/x; chmod 600 made/x",
    "echo x > plain; chmod 777 plain",
    "chmod u+s notes; chmod g+s secret",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_what_a_command_changes_is_undone_and_redone(work: Work, command: str, umask: int):
    fill(work.folder)
    before = describe(work.folder)
    work.shell(command)
    after = describe(work.folder)
    assert after != before
    earlier = os.umask(umask)
    try:
        result = work.undo()
        assert (result.kept, result.lost, result.failed) == ((), (), ())
        assert describe(work.folder) == before
        result = work.redo()
        redone = describe(work.folder)
        work.undo()
    finally:
        os.umask(earlier)
    assert (result.kept, result.lost, result.failed) == ((), (), ())
    special = 0o6000
    assert {name for name, state in after.items() if state != redone.get(name)} <= {
        # The mode of a new folder is not recorded; an undo sets no setuid or setgid bit.
        name
        for name, (kind, mode, _) in after.items()
        if mode & special or (kind == "folder" and name not in before)
    }
    assert redone.keys() == after.keys()
    assert describe(work.folder) == before


def test_two_commands_are_undone_at_once(work: Work):
    fill(work.folder)
    before = describe(work.folder)
    work.shell("chmod 700 run.sh; rm link; echo x > link")
    work.shell("chmod 000 run.sh; rm link; mkdir link; chmod 777 closed")
    work.undo()
    assert describe(work.folder) == before


def test_a_mode_that_the_user_changed_is_kept(work: Work):
    fill(work.folder)
    work.write("notes", "by the tool")
    work.shell("echo more >> secret; chmod 700 run.sh")
    for name in ("notes", "secret", "run.sh"):
        (work.folder / name).chmod(0o640)
    result = work.undo()
    # The tools did not change the modes of the first two.
    assert (result.restored, result.kept) == (("notes", "secret"), ("run.sh",))
    modes = {name: mode for name, (_, mode, _) in describe(work.folder).items()}
    assert (modes["notes"], modes["secret"], modes["run.sh"]) == (0o640, 0o640, 0o640)
    assert (work.folder / "notes").read_text() == "content of notes\n"
    assert work.undo(overwrite=True).restored == ("run.sh",)
    assert stat.S_IMODE((work.folder / "run.sh").stat().st_mode) == 0o755


def test_a_mode_is_restored_in_place(work: Work):
    fill(work.folder)
    os.link(work.folder / "run.sh", work.folder / "same")
    inode = (work.folder / "run.sh").stat().st_ino
    work.shell("chmod 600 run.sh")
    assert work.undo().restored == ("run.sh", "same")
    assert [(work.folder / name).stat().st_ino for name in ("run.sh", "same")] == [inode, inode]
    assert stat.S_IMODE((work.folder / "same").stat().st_mode) == 0o755


def test_a_new_file_has_its_mode_again(work: Work):
    earlier = os.umask(0o077)
    try:
        work.write("made", "x")
    finally:
        os.umask(earlier)
    assert work.undo().restored == ("made",)
    work.redo()
    assert stat.S_IMODE((work.folder / "made").stat().st_mode) == 0o600
    assert work.undo().restored == ("made",)


def test_a_file_that_a_tool_made_read_only_is_restored(work: Work, monkeypatch: pytest.MonkeyPatch):
    fill(work.folder)
    before = describe(work.folder)
    work.shell("echo changed > notes; chmod 444 notes")
    access = os.access

    def deny_writing(path: str, mode: int, **options: object) -> bool:
        return mode != os.W_OK and access(path, mode)

    # Root may write everything.
    monkeypatch.setattr(sandbox.os, "access", deny_writing)
    assert work.undo().restored == ("notes",)
    assert describe(work.folder) == before


@pytest.mark.parametrize(
    ("bits", "command", "expected"),
    [
        # It still has them.
        (0o4755, "chmod 4700 prog", 0o4755),
        (0o2755, "chmod 2711 prog", 0o2755),
        # They are gone: the undo does not set them again, and says so.
        (0o4755, "chmod 755 prog", 0o755),
        (0o6755, "chmod 2711 prog", 0o2755),
        (0o4755, "rm prog; echo other > prog; chmod 4755 prog", 0o755),
        (0o2755, "rm prog", 0o755),
        # A tool set them.
        (0o755, "chmod 6755 prog", 0o755),
    ],
)
def test_setuid_and_setgid_bits_are_never_set_by_an_undo(work: Work, bits: int, command: str, expected: int):
    (work.folder / "prog").write_text("program")
    (work.folder / "prog").chmod(bits)
    work.shell(command)
    result = work.undo()
    assert stat.S_IMODE((work.folder / "prog").stat().st_mode) == expected
    assert (work.folder / "prog").read_text() == "program"
    assert result.reduced == (("prog",) if bits & 0o6000 & ~expected else ())
    lines = [line for line, is_problem in format_undo(result) if is_problem]
    assert bool(lines) == bool(result.reduced)
    assert all("prog: restored without its setuid or setgid bit" in line for line in lines)


def test_a_tool_that_writes_a_file_keeps_no_setuid_bit(work: Work):
    (work.folder / "prog").write_text("program")
    (work.folder / "prog").chmod(0o4755)
    work.write("prog", "other")
    assert stat.S_IMODE((work.folder / "prog").stat().st_mode) == 0o755


def test_a_link_in_place_of_a_folder_is_not_followed(work: Work, tmp_path: Path):
    fill(work.folder)
    outside = tmp_path / "outside"
    shutil.copytree(work.folder / "closed", outside)
    before = describe(outside)
    work.shell("chmod 644 closed/key; echo x > closed/key; chmod 755 closed")
    (work.folder / "closed").rename(work.folder / "kept")
    (work.folder / "closed").symlink_to(outside)
    result = work.undo(overwrite=True)
    assert describe(outside) == before
    # The link is the user's: it was replaced by the folder.
    assert result.restored == ("closed", "closed/key")
    assert (work.folder / "closed" / "key").read_text() == "key"
    assert stat.S_IMODE((work.folder / "closed").lstat().st_mode) == 0o700


def test_a_pipe_in_place_of_a_file_is_reported(work: Work):
    fill(work.folder)
    work.shell("rm notes; mkfifo notes")
    result = work.undo()
    assert (result.restored, result.lost) == ((), ("notes",))
    assert any("notes" in line for line, is_problem in format_undo(result) if is_problem)


def test_a_file_that_changes_after_the_plan_is_kept(work: Work):
    fill(work.folder)
    work.shell("echo x > notes; rm secret; echo new > made; chmod 600 run.sh")
    plan = work.points.plan_undo()
    for name in ("notes", "secret", "made"):
        (work.folder / name).write_text("mine")
    (work.folder / "run.sh").chmod(0o711)
    before = describe(work.folder)
    result = work.points.apply(plan, overwrite=True)
    assert (result.restored, len(result.failed)) == ((), 4)
    assert "notes was changed meanwhile" in result.failed
    assert describe(work.folder) == before


def test_two_calls_store_the_same_content_at_once(work: Work):
    both, done = threading.Barrier(2), []
    replace = Path.replace

    def replace_together(path: Path, target: Path) -> Path:
        both.wait()
        return replace(path, target)

    def store() -> None:
        done.append(work.points._journal.store(b"content"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replace_together)
        threads = [threading.Thread(target=store) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(done) == 2
    assert work.points._journal.load(done[0]) == b"content"
