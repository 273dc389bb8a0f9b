"""Sessions of opencode: read from its database, written by its own command, which a script stands in for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from segue.errors import InputError
from segue.sessions.client import Place, SessionFile
from segue.sessions.mover import Moved, Mover
from tests.sessions import opencode_import
from tests.sessions.record import FOLDER
from tests.sessions.test_damages import DAMAGES
from tests.sessions.test_moves import RECORDED
from tests.sessions.world import KEYS, START, World, client, texts

_WORDS = ("alpha.txt", "red.png", "EDITED-GAMMA", "RESULT-one", "endless")


class OpencodeWorld(World):
    """A home with opencode. Sessions are moved for a folder that exists."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder, self.data, self.now = folder, folder / "data", START
        program = folder / "bin" / "opencode"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {opencode_import.__file__} "$@"\n')
        program.chmod(0o700)
        environ = {"PATH": f"{program.parent}:/usr/bin:/bin", "XDG_DATA_HOME": str(self.data)}
        self.place = Place(folder / "home", environ, "linux", str(folder / "history.db"))

    def add_opencode(self) -> SessionFile:
        opencode_import.main(FOLDER / "opencode.json", self.data)
        (session,) = client("opencode").find(self.place, None)
        return SessionFile("opencode", session.id, session.path, str(self.folder))

    def move(self, session: SessionFile, target: str) -> Moved:
        self.now += 1_000_000
        mover = Mover(self.place, self.journeys, self.now, lambda: KEYS)
        return mover.write(mover.plan(client(session.client), session, client(target), str(self.folder)))


@pytest.fixture
def world(tmp_path: Path) -> OpencodeWorld:
    return OpencodeWorld(tmp_path)


@pytest.mark.parametrize("target", RECORDED)
def test_a_recorded_session_is_moved(world: OpencodeWorld, target: str):
    moved = world.move(world.add_opencode(), target).session
    calls = world.calls(moved)
    assert all(word in arguments for word, (_, arguments, _) in zip(_WORDS, calls, strict=True))
    assert "CONTENT-ALPHA" in calls[0][2]
    assert "RESULT-ONE" in calls[3][2]
    assert world.violations(moved) == []


@pytest.mark.parametrize("source", RECORDED)
def test_a_session_is_imported_and_read_back(world: OpencodeWorld, source: str):
    session = world.add_recorded(source)
    moved = world.move(session, "opencode")
    assert moved.command == ("opencode", "--session", moved.session.id)
    calls = world.calls(moved.session)
    # Gemini CLI does not record the call that was running when it was killed.
    words = _WORDS[:-1] if source == "gemini" else _WORDS
    assert all(word in arguments for word, (_, arguments, _) in zip(words, calls, strict=True))
    assert world.violations(moved.session) == []
    assert world.move(session, "opencode").report.action == "unchanged"


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_sessions_are_imported(world: OpencodeWorld, name: str):
    source, build, words = DAMAGES[name]
    moved = world.move(world.add_lines(source, build()), "opencode").session
    assert world.violations(moved) == []
    for word in words:
        (found,) = [result for _, arguments, result in world.calls(moved) if word in arguments]
        assert f"RESULT-{word}" in found


def test_it_comes_home_with_new_messages_only(world: OpencodeWorld):
    session = world.add_opencode()
    before = world.read(session).log.body["messages"]
    away = world.move(session, "claude").session
    world.resume(away)
    back = world.move(away, "opencode")
    assert (back.report.action, back.session.id) == ("extended", session.id)
    after = world.read(session)
    assert after.log.body["messages"][: len(before)] == before
    assert texts(after, "ai")[-1] == "leg1 answer."
    assert world.calls(session)[-1][2].strip() == "RESULT-LEG1"


def test_without_the_program_the_error_has_the_command_that_installs_it(world: OpencodeWorld):
    world.place = Place(world.place.home, {**world.place.environ, "PATH": "/nothing"}, "linux", world.place.store)
    with pytest.raises(InputError, match="npm install -g opencode-ai"):
        world.move(world.add_recorded("claude"), "opencode")
