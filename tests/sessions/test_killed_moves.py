"""A move that is killed at any step is finished by the next one, and a failed one leaves what others wrote."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from io import FileIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.sessions import files
from segue.sessions.client import SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.move_record import MoveRecord
from tests.budget import sample
from tests.sessions.killed_moves import PREPARE, prepare_extended
from tests.sessions.test_moves import IN_FILES, RECORDED
from tests.sessions.world import World, client

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="moves are killed in forked processes")


@pytest.mark.parametrize(("kind", "target"), [*sample(product(PREPARE, [*RECORDED, "segue"]), 2)])
def test_the_next_move_finishes_a_killed_one(tmp_path: Path, kind: str, target: str):
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.sessions.killed_moves", str(tmp_path), kind, target]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environ)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.split()[-1]) >= 10


def kill_before_the_record(world: World, session: SessionFile, target: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a move without its record, and return what the target's session then is."""

    class Killed(BaseException):
        pass

    save = MoveRecord.save

    def save_first(store: MoveRecord, conversation: Any) -> None:
        if conversation.unfinished is None:
            raise Killed
        save(store, conversation)

    monkeypatch.setattr(MoveRecord, "save", save_first)
    with pytest.raises(Killed):
        world.move(session, target)
    monkeypatch.setattr(MoveRecord, "save", save)
    (found,) = client(target).find(world.home, None)
    return found


def test_a_session_that_opencode_imported_in_part_is_completed(world: World, monkeypatch: pytest.MonkeyPatch):
    session = world.add_recorded("claude")
    found = kill_before_the_record(world, session, "opencode", monkeypatch)
    expected = world.load(found)
    with closing(sqlite3.connect(found.path)) as database, database:
        database.execute("DELETE FROM part WHERE id = (SELECT max(id) FROM part)")
        last = "(SELECT id FROM message ORDER BY time_created DESC LIMIT 1)"
        database.execute(f"DELETE FROM part WHERE message_id = {last}")
        database.execute(f"DELETE FROM message WHERE id = {last}")
    assert world.load(found) != expected
    again = world.move(session, "opencode")
    assert (again.report.action, again.session.id) == ("unchanged", found.id)
    assert world.load(found) == expected


@pytest.mark.parametrize("target", RECORDED)
def test_a_session_that_was_continued_after_the_kill_is_kept(
    world: World, target: str, monkeypatch: pytest.MonkeyPatch
):
    session = world.add_recorded("codex" if target == "claude" else "claude")
    found = kill_before_the_record(world, session, target, monkeypatch)
    world.resume(found)
    before = world.load(session)
    assert world.move(found, session.client).report.action == "extended"
    assert world.is_continued(session, before)
    assert [each.id for each in client(target).find(world.home, None)] == [found.id]


@pytest.mark.parametrize("target", IN_FILES)
def test_a_dry_run_after_a_kill_writes_nothing(world: World, target: str, monkeypatch: pytest.MonkeyPatch):
    away, home = prepare_extended(world, target)
    assert home is not None
    found = kill_before_the_record(world, away, target, monkeypatch)
    content = world.load(found)
    found.path.write_bytes(content[:-20])
    mover = world._mover()
    assert mover.plan(client(away.client), away, client(target), "/home/me", is_dry=True).action == "unchanged"
    assert world.load(found) == content[:-20]
    assert world.move(away, target).report.action == "unchanged"
    assert world.load(found) == content


def test_a_command_of_opencode_holds_the_lock_of_a_killed_move(world: World, monkeypatch: pytest.MonkeyPatch):
    """The command of a killed move still writes: the next move waits for its end."""
    monkeypatch.setattr(tempfile, "tempdir", str(world.folder))
    gate = world.folder / "gate"
    os.mkfifo(gate)
    program = world.folder / "bin" / "opencode"
    program.write_text(f"#!/bin/sh\nread line < {gate}\nexit 1\n")
    session = world.add_recorded("claude")
    process = os.fork()
    if not process:
        with world.record.lock():
            world.move(session, "opencode")
        os._exit(0)
    # Opening the gate waits for the command.
    with gate.open("w") as opened:
        os.kill(process, 9)
        os.waitpid(process, 0)
        lock = world.folder / "moves.lock"
        assert files.is_locked(lock)
        opened.write("go\n")
    with world.record.lock():
        assert not list(client("opencode").find(world.home, None))


# ------------------------------------------------------------------------------------------------------ failed appends


@contextmanager
def failing_appends(monkeypatch: pytest.MonkeyPatch, others: bytes, *, size: int, error: int = 28) -> Generator[None]:
    """Let an append write `size` bytes, then another program append, and then fail."""
    open_path = Path.open

    class FailingFile(FileIO):
        def write(self, data: Any, /) -> int:
            written = super().write(data[:size])
            with open_path(Path(os.fsdecode(self.name)), "ab", buffering=0) as other:
                other.write(others)
            FailingFile.write = fail
            return written or 0

    def fail(*_: Any) -> int:
        raise OSError(error, os.strerror(error))

    def open_failing(path: Path, mode: str = "r", buffering: int = -1, **options: Any) -> Any:
        return (
            FailingFile(path, mode) if mode[0] == "a" and not buffering else open_path(path, mode, buffering, **options)
        )

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_failing)
        patch.setattr(files.os, "fsync", fail)
        yield


@pytest.mark.parametrize("target", IN_FILES)
@pytest.mark.parametrize("error", [28, 5])
@pytest.mark.parametrize("size", [1, 100, 10**9])
def test_a_failed_append_keeps_what_another_program_appended(
    world: World, target: str, size: int, error: int, monkeypatch: pytest.MonkeyPatch
):
    away, home = prepare_extended(world, target)
    assert home is not None
    before, others = world.load(home), b'{"type":"other"}\n'
    with failing_appends(monkeypatch, others, size=size, error=error), pytest.raises(InputError, match="can't be writ"):
        world.move(away, target)
    data = world.load(home)
    assert data.startswith(before)
    assert data.endswith(b"\n" + others)
    assert not data[len(before) : -len(others)].strip()


@pytest.mark.parametrize("target", IN_FILES)
@pytest.mark.parametrize("size", [1, 100, 10**9])
def test_a_failed_append_leaves_the_session_as_it_was(
    world: World, target: str, size: int, monkeypatch: pytest.MonkeyPatch
):
    away, home = prepare_extended(world, target)
    assert home is not None
    before = world.load(home)
    with failing_appends(monkeypatch, b"", size=size), pytest.raises(InputError, match="can't be written"):
        world.move(away, target)
    assert world.load(home) == before
    assert world.move(away, target).report.action == "extended"
    assert len(list(client(target).find(world.home, None))) == 1


def test_what_another_program_writes_before_an_append_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n")
    matches = Fingerprint.matches

    def match(fingerprint: Fingerprint, data: bytes) -> bool:
        with file.open("ab") as other:
            other.write(b"two\n")
        return matches(fingerprint, data)

    monkeypatch.setattr(Fingerprint, "matches", match)
    with failing_appends(monkeypatch, b"", size=3), pytest.raises(InputError):
        files.append(file, Fingerprint.of(b"one\n"), b"three\n")
    assert file.read_bytes() == b"one\ntwo\n"
