"""Conversations that are signed in the session itself: a move back without the record of moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from segue.bridge.envelopes import EnvelopeKeys
from segue.sessions.client import SIGNED_COPY_KEY, SessionFile
from segue.sessions.signed_copy import has_signed_copy, open_signed_copy, strip_signed_copies
from tests.sessions.test_moves import IN_FILES, RECORDED
from tests.sessions.test_moving_back import PAIRS, signatures
from tests.sessions.world import KEYS, World, client, texts


def forget(world: World, tmp_path: Path, *sessions: SessionFile) -> None:
    """Remove the record of moves, and sessions."""
    (tmp_path / "moves.db").unlink()
    for session in sessions:
        session.path.unlink()


@pytest.mark.parametrize(("home", "abroad"), PAIRS)
def test_a_session_is_extended_without_the_record(world: World, tmp_path: Path, home: str, abroad: str):
    session = world.add_recorded(home)
    before, reasoning = world.load(session), signatures(world, session)
    away = world.move(session, abroad).session
    forget(world, tmp_path)
    world.resume(away)
    back = world.move(away, home)
    assert (back.report.action, back.session.id) == ("extended", session.id)
    assert world.is_continued(session, before)
    assert signatures(world, session) == reasoning
    assert len(texts(world.read(session), "human")) == 3
    assert world.violations(session) == []


@pytest.mark.parametrize(("home", "abroad"), PAIRS)
def test_a_session_is_restored_on_another_machine(world: World, tmp_path: Path, home: str, abroad: str):
    session = world.add_recorded(home)
    sent, reasoning = world.sent_body(session), signatures(world, session)
    away = world.move(session, abroad).session
    forget(world, tmp_path, session)
    world.resume(away)
    back = world.move(away, home)
    assert back.report.action == "copied"
    assert signatures(world, back.session) == reasoning
    key = next(key for key in ("messages", "input", "contents") if key in sent)
    # The last message is that of the next prompt.
    assert world.sent_body(back.session)[key][: len(sent[key]) - 1] == sent[key][:-1]
    assert len(texts(world.read(back.session), "human")) == 3
    assert world.violations(back.session) == []


def test_the_sessions_of_three_clients_are_restored(world: World, tmp_path: Path):
    first = world.add_recorded("claude")
    second = world.move(first, "codex").session
    world.resume(second)
    reasoning = [signatures(world, each) for each in (first, second)]
    third = world.move(second, "gemini").session
    forget(world, tmp_path, first, second)
    for name, expected in zip(("claude", "codex"), reasoning, strict=True):
        restored = world.move(third, name).session
        assert signatures(world, restored) == expected
        assert world.violations(restored) == []


def test_a_session_of_a_folder_that_is_missing_is_restored_in_this_one(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    forget(world, tmp_path, session)
    mover = world._mover()
    back = mover.write(mover.plan(client("codex"), away, client("claude"), str(tmp_path)))
    assert (back.report.action, back.session.cwd) == ("copied", str(tmp_path))


@pytest.mark.parametrize("abroad", RECORDED)
def test_a_signed_copy_does_not_contain_others(world: World, abroad: str):
    session = world.add_recorded("codex" if abroad == "claude" else "claude")
    away = world.move(session, abroad).session
    sizes: list[int] = []
    for _ in range(3):
        for each in (away, session):
            world.resume(each)
            other = session if each is away else away
            world.move(each, other.client)
        opened = open_signed_copy(world.load(away), KEYS)
        assert opened is not None
        assert not any(map(has_signed_copy, opened.conversation.contents.values()))
        sizes.append(len(world.load(away)) - len(strip_signed_copies(world.load(away))))
    # The total grows by one copy with each move.
    assert sizes[2] < 6 * sizes[0]


def test_a_changed_signed_copy_is_ignored(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    data = world.load(away)
    at = data.index(SIGNED_COPY_KEY.encode()) + 200
    away.path.write_bytes(data[:at] + (b"A" if data[at : at + 1] != b"A" else b"B") + data[at + 1 :])
    forget(world, tmp_path)
    assert open_signed_copy(world.load(away), KEYS) is None
    assert world.move(away, "claude").report.action == "created"


def test_a_signed_copy_of_another_key_is_ignored(world: World):
    away = world.move(world.add_recorded("claude"), "codex").session
    assert open_signed_copy(world.load(away), EnvelopeKeys(b"o" * 32)) is None
    assert open_signed_copy(world.load(away), EnvelopeKeys(b"o" * 32, KEYS.current)) is not None


def test_a_signed_copy_in_a_text_is_not_one_of_the_session(world: World):
    away = world.move(world.add_recorded("claude"), "codex").session
    line = json.dumps({"type": "event_msg", "payload": {"type": "x", "text": world.load(away).decode()}})
    assert has_signed_copy(world.load(away))
    assert not has_signed_copy(line.encode())


def test_a_signed_copy_of_another_session_is_not_used(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    signed_copy = next(line for line in world.load(away).splitlines() if has_signed_copy(line))
    forget(world, tmp_path, away)
    other = world.add("codex", (world.load(world.add_recorded("codex"))) + signed_copy + b"\n")
    back = world.move(other, "claude")
    assert back.report.action == "created"
    assert texts(world.read(back.session), "human") == texts(world.read(other), "human")


def test_a_large_session_has_no_signed_copy_and_is_moved(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(type(client("codex")), "max_signed_copy", 1000)
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    assert not has_signed_copy(world.load(away))
    world.resume(away)
    assert world.move(away, "claude").session.id == session.id


@pytest.mark.parametrize("abroad", IN_FILES)
def test_a_session_with_a_long_signed_copy_is_listed_as_before(
    world: World, abroad: str, monkeypatch: pytest.MonkeyPatch
):
    session = world.add_recorded("codex" if abroad == "claude" else "claude")
    monkeypatch.setattr("segue.sessions.mover.make_signed_copy", lambda *_: "A" * 400_000)
    away = world.move(session, abroad).session
    found = client(abroad).describe(away.path)
    assert (found.id, found.cwd, found.title) == (away.id, away.cwd, away.title)
