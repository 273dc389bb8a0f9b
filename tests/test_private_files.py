"""Private files: written whole or not at all, by their owner alone; refused if others can change or read them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from segue import private_files
from segue.errors import InputError
from segue.private_files import create, make_folder, read_private, replace

SOURCE = Path(private_files.__file__).parent
WRITERS: list[Callable[[Path, bytes], None]] = [create, replace]
posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")


def fail(message: str) -> None:
    raise AssertionError(message)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_file_is_private_from_its_first_byte(
    write: Callable[[Path, bytes], None], umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    fsync = os.fsync

    def look(descriptor: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    before = os.umask(umask)
    try:
        write(tmp_path / "file", b"secret")
    finally:
        os.umask(before)
    # The file, then its folder: both are on disk.
    assert modes == [0o600, mode_of(tmp_path)]
    assert (mode_of(tmp_path / "file"), (tmp_path / "file").read_bytes()) == (0o600, b"secret")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@posix
@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), (0o644, 0o644), (0o755, 0o755), (0o600, 0o600)])
def test_a_file_can_have_another_mode(mode: int | None, expected: int, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace(tmp_path / "file", [b"a", b"b"], mode=mode)
    finally:
        os.umask(before)
    assert (mode_of(tmp_path / "file"), (tmp_path / "file").read_bytes()) == (expected, b"ab")


@pytest.mark.parametrize("content", [None, b"before"])
@pytest.mark.parametrize("step", ["data", "fsync", "chmod", "rename"])
def test_a_failed_write_leaves_the_folder_as_it_was(
    content: bytes | None, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)

    def chunks() -> Iterator[bytes]:
        yield b"x" * 100_000
        if step == "data":
            raise OSError("the disk is full")

    def refuse(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        if step == "fsync":
            patch.setattr(os, "fsync", refuse)
        elif step != "data":
            patch.setattr(Path, {"chmod": "chmod", "rename": "replace"}[step], refuse)
        with pytest.raises(OSError, match="the disk is full"):
            replace(file, chunks(), mode=0o640)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"file": content} if content else {})


def test_a_file_that_exists_is_not_created(tmp_path: Path) -> None:
    file = tmp_path / "file"
    create(file, b"first")
    with pytest.raises(FileExistsError):
        create(file, b"second")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"first"]


@pytest.mark.parametrize("has_links", [True, False])
def test_of_those_that_create_a_file_one_succeeds(
    has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
        create(tmp_path / "alone", b"1")
        with pytest.raises(FileExistsError):
            create(tmp_path / "alone", b"2")
        assert (tmp_path / "alone").read_bytes() == b"1"
        return
    created: list[bytes] = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            create(tmp_path / "file", b"%d" % number)
        except FileExistsError:
            return
        created.append(b"%d" % number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == created
    assert len(created) == 1


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_the_place_of_a_file_is_not_followed(exists: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_bytes(b"foreign")
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        create(link, b"secret")
    assert link.is_symlink()
    replace(link, b"secret")
    assert not link.is_symlink()
    assert (link.read_bytes(), mode_of(link)) == (b"secret", 0o600)
    assert target.exists() == exists
    assert not exists or target.read_bytes() == b"foreign"


@pytest.mark.parametrize("name", ["x" * 250, "ä" * 120, "\udcff" * 40])
def test_a_long_name_leaves_room_for_the_temporary_one(name: str, tmp_path: Path) -> None:
    for write in WRITERS:
        write(tmp_path / name, b"1") if write is replace else create(tmp_path / f"{name[:-1]}y", b"1")
    assert len(list(tmp_path.iterdir())) == 2


@posix
def test_new_folders_are_private(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    assert [mode_of(folder) for folder in (tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c")] == [0o700] * 3
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    (tmp_path / "gone").symlink_to("nowhere")
    for name in ("file", "file/x", "gone", "gone/x"):
        with pytest.raises(NotADirectoryError):
            make_folder(tmp_path / name)


def make_secret(folder: Path, mode: int) -> Path:
    file = folder / "secret"
    file.write_bytes(b"secret")
    file.chmod(mode)
    return file


@posix
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_private_file_is_read(mode: int, tmp_path: Path) -> None:
    assert read_private(make_secret(tmp_path, mode), fail) == b"secret"


@posix
@pytest.mark.parametrize(
    ("mode", "verb"),
    [
        *((mode, "changed") for mode in (0o620, 0o602, 0o660, 0o666, 0o777, 0o622)),
        *((mode, "read") for mode in (0o640, 0o604, 0o644, 0o444, 0o440, 0o755)),
    ],
)
def test_a_file_that_others_can_change_or_read_is_refused(mode: int, verb: str, tmp_path: Path) -> None:
    file = make_secret(tmp_path, mode)
    link = tmp_path / "link"
    link.symlink_to(file)
    for path in (file, link):
        with pytest.raises(InputError, match=rf"can be {verb} by others \(mode {mode:04o}\); run chmod 600") as caught:
            read_private(path, fail)
        assert caught.value.path == str(path)


@posix
@pytest.mark.parametrize(("mode", "is_refused"), [(0o777, True), (0o702, True), (0o1777, False), (0o755, False)])
@pytest.mark.parametrize("through", ["file", "link in it", "link to it", "folder"])
def test_a_folder_in_which_others_can_replace_the_file_is_refused(
    mode: int, is_refused: bool, through: str, tmp_path: Path
) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    own.mkdir(0o700)
    path = make_secret(own if through == "link in it" else shared, 0o600)
    if through == "link in it":
        (shared / "link").symlink_to(path)
        path = shared / "link"
    elif through == "link to it":
        (own / "link").symlink_to(path)
        path = own / "link"
    elif through == "folder":
        (tmp_path / "also").symlink_to(shared)
        path = tmp_path / "also" / "secret"
    shared.chmod(mode)
    if is_refused:
        with pytest.raises(InputError, match=rf"can be replaced by others.*\(mode {mode:04o}\); run chmod go-w"):
            read_private(path, fail)
    else:
        assert read_private(path, fail) == b"secret"


READ = """
import pathlib, sys
from segue.errors import InputError
from segue.private_files import read_private
try:
    print(read_private(pathlib.Path(sys.argv[1]), lambda text: print("warning:", text)))
except InputError as error:
    print("refused:", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it needs a mount of its own")
@pytest.mark.parametrize(
    ("mode", "result"), [(0o400, "read"), (0o440, "warning"), (0o444, "warning"), (0o666, "refused")]
)
def test_a_secret_of_a_container_may_be_read_by_others(mode: int, result: str, tmp_path: Path) -> None:
    """As Kubernetes mounts it: read-only, through two links, in a folder with the sticky bit."""
    volume, mount = tmp_path / "volume", tmp_path / "mount"
    (volume / "..2026").mkdir(parents=True)
    mount.mkdir()
    make_secret(volume / "..2026", mode)
    (volume / "..data").symlink_to("..2026")
    (volume / "secret").symlink_to("..data/secret")
    volume.chmod(0o1777)
    script = f'mount --bind {volume} {mount} && mount -o remount,ro,bind {mount} && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", READ, str(mount / "secret")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip(f"no mount of its own: {ended.stderr.strip()}")
    lines = ended.stdout.splitlines()
    if result == "refused":
        assert "can be changed by others (mode 0666)" in lines[0]
    else:
        assert lines[-1] == "b'secret'"
        assert len(lines) == 1 + (result == "warning")
        assert result == "read" or f"can be read by others (mode {mode:04o})" in lines[0]


def test_files_are_created_for_their_owner_in_few_places() -> None:
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if "O_EXCL" in path.read_text()}
    # The store is made by SQLite, and the tools of the agent write below a folder that is open.
    assert found == {"private_files.py", "runtime/sandbox.py", "store/sqlite_file.py"}


def test_folder_may_appear_between_any_two_steps(tmp_path: Path) -> None:
    """Another thread creates it before one of the lines that `make_folder` runs."""
    for step in count(1):
        folder, run = tmp_path / str(step) / "a" / "b", 0

        def create(frame: FrameType, event: str, _: object, folder: Path = folder, step: int = step) -> Any:
            nonlocal run
            if event == "line" and frame.f_code is make_folder.__code__:
                run += 1
                if run == step:
                    folder.mkdir(parents=True)
            return create

        before = sys.gettrace()
        sys.settrace(create)
        try:
            make_folder(folder)
        finally:
            sys.settrace(before)
        assert folder.is_dir()
        if run < step:
            assert step > 5
            break
