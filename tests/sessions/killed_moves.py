"""Moves that are killed: the process is ended before each step of its writes, and the same move runs again.

A step is a statement of SQLite, a part of an appended text, an `fsync`, and the opening, linking or removing of a file.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from segue.sessions.client import SessionFile
from tests.budget import sample
from tests.sessions.world import World, client, texts

_EVENTS = ("open", "os.link", "os.rename", "os.remove", "os.mkdir", "subprocess.Popen")


class Steps:
    """Ends this process before its step with this number, counted from 1."""

    def __init__(self, last: int) -> None:
        self._left = last

    def count(self, *_: Any) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        connect, fsync, open_path = sqlite3.connect, os.fsync, Path.open
        steps = self

        class SlowFile(io.FileIO):
            """Writes at most half of what it gets."""

            def write(self, data: Any, /) -> int:
                steps.count()
                written = super().write(data[: max(1, len(data) // 2)])
                steps.count()
                return written or 0

        def connect_counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(self.count)
            return connection

        def sync_counted(descriptor: int) -> None:
            self.count()
            fsync(descriptor)
            self.count()

        def open_slow(path: Path, mode: str = "r", buffering: int = -1, **options: Any) -> Any:
            return (
                SlowFile(path, mode)
                if mode[0] == "a" and not buffering
                else open_path(path, mode, buffering, **options)
            )

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            # Files that are only read are not steps.
            if event in _EVENTS and (event != "open" or (isinstance(arguments[2], int) and arguments[2] & 3)):
                self.count()

        sqlite3.connect = connect_counted
        os.fsync = sync_counted
        Path.open = open_slow  # type: ignore[method-assign]
        sys.addaudithook(audit)


def run_killed(world: World, session: SessionFile, target: str, last: int) -> bool:
    """Move in a process that is killed before step `last`; return False if the move ended before."""
    process = os.fork()
    if not process:
        try:
            Steps(last).install()
            with world.record.lock():
                world.move(session, target)
        finally:
            if (error := sys.exception()) is not None:
                os.write(2, repr(error).encode())
            os._exit(0 if error is None else 1)
    _, status = os.waitpid(process, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, "the move failed"
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def check(world: World, session: SessionFile, target: str, expected: Any, home: bytes | None) -> None:
    """Move again; the target has one session, which is complete, and the record agrees with it."""
    sessions = list(client(session.client).find(world.home, None))
    with world.record.lock():
        moved = world.move(session, target)
    (found,) = client(target).find(world.home, None)
    assert found.id == moved.session.id
    assert describe(world, found) == expected
    assert home is None or world.is_continued(found, home)
    conversation = world.record.find(target, found.id)
    assert conversation is not None
    assert conversation.unfinished is None
    state = conversation.find_state(target, found.id)
    assert state is not None
    assert state.fingerprint.matches(world.load(found))
    assert world.move(session, target).report.action == "unchanged"
    if target != "segue":
        world.resume(found)
        before = world.load(session)
        assert world.move(found, session.client).report.action == "extended"
        assert world.is_continued(session, before)
        assert len(list(client(session.client).find(world.home, None))) == len(sessions)


def describe(world: World, session: SessionFile) -> Any:
    return texts(world.read(session), "human", "ai"), [(name, result) for name, _, result in world.calls(session)]


def prepare_created(world: World, target: str) -> tuple[SessionFile, SessionFile | None]:
    """Return a session to be moved to a client that has none of its messages."""
    return world.add_recorded("codex" if target == "claude" else "claude"), None


def prepare_extended(world: World, target: str) -> tuple[SessionFile, SessionFile | None]:
    """Return a session with new work, to be moved to the client that it came from, and the session there."""
    if target == "segue":
        home = world.move(world.add_recorded("claude"), "segue").session
    else:
        home = world.add_recorded(target)
    away = world.move(home, "claude" if target == "codex" else "codex").session
    world.resume(away)
    return away, home


PREPARE: dict[str, Callable[[World, str], tuple[SessionFile, SessionFile | None]]] = {
    "created": prepare_created,
    "extended": prepare_extended,
}


def main(folder: Path, kind: str, target: str) -> int:
    """Kill a move before each step, without `make soak` before a fourth of them; return how many were tried."""
    live, saved = folder / "live", folder / "saved"
    live.mkdir()
    world = World(live)
    session, home = PREPARE[kind](world, target)
    before = world.load(home) if home is not None else None
    shutil.copytree(live, saved, symlinks=True)
    expected = describe(world, world.move(session, target).session)
    for tried, step in enumerate(sample(count(1), 4, start=len(kind + target))):
        shutil.rmtree(live)
        shutil.copytree(saved, live, symlinks=True)
        if not run_killed(world, session, target, step):
            return tried
        try:
            check(world, session, target, expected, before)
        except BaseException as error:
            error.add_note(f"killed before step {step}")
            raise
    return 0


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
