"""A session that is moved back: as it was, byte for byte, with the other client's work appended."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from segue.canonical.codec import encode_value
from segue.canonical.json import encode_json, encode_json_sorted
from segue.errors import InputError
from segue.sessions.client import SessionFile
from tests.budget import sample
from tests.sessions.record import WORK
from tests.sessions.test_moves import RECORDED
from tests.sessions.world import World, client, texts

PAIRS = [(home, abroad) for home in RECORDED for abroad in RECORDED if home != abroad]


def signatures(world: World, session: SessionFile) -> list[str]:
    """Return the signatures and encrypted reasoning in the client's next request."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            found.extend(value[key] for key in ("signature", "encrypted_content") if key in value)
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(world.sent_body(session))
    return found


@pytest.mark.parametrize(("home", "abroad"), PAIRS)
def test_the_first_session_is_as_it_was_with_new_turns(world: World, home: str, abroad: str):
    session = world.add_recorded(home)
    before, reasoning = world.load(session), signatures(world, session)
    # Gemini CLI and Qwen Code record no signatures, nor does opencode behind the gateway.
    assert len(reasoning) == (0 if home in ("gemini", "qwen", "opencode") else 2)
    away = world.move(session, abroad).session
    world.resume(away)
    back = world.move(away, home)
    assert (back.report.action, back.session.path) == ("extended", session.path)
    assert world.is_continued(session, before)
    assert signatures(world, session) == reasoning
    assert world.violations(session) == []
    read = world.read(session)
    prompts = [text.strip('"').partition(":")[0] for text in texts(read, "human")]
    assert prompts == ["TASK-ONE", "TASK-TWO", "TASK-leg1"]
    assert texts(read, "ai")[-1] == "leg1 answer."
    assert [result for *_, result in world.calls(session)][-1].strip().endswith("RESULT-LEG1")
    # The report is about the new turns.
    assert {line.text: line.count for line in back.report.carried} == {"messages": 4, "tool calls": 1, "results": 1}
    # Both have the same name for the shell. The first two record thoughts as text.
    has_same_tool = {home, abroad} in ({"gemini", "qwen"}, {"pi", "opencode"})
    renamed = [line.count for line in back.report.changed if line.text.startswith("tool ")]
    assert renamed == ([] if has_same_tool else [1])
    assert [line.count for line in back.report.lost] == ([] if {home, abroad} == {"gemini", "qwen"} else [1])


@pytest.mark.parametrize(("home", "abroad"), [*sample(PAIRS, 2)])
def test_both_sessions_grow_in_turn(world: World, home: str, abroad: str):
    session = world.add_recorded(home)
    away = world.move(session, abroad).session
    for number in (1, 2):
        world.resume(away)
        assert world.move(away, home).report.action == "extended"
        world.resume(session)
        back = world.move(session, abroad)
        assert (back.report.action, back.session.id) == ("extended", away.id)
        prompts = 2 + 2 * number
        for each in (session, away):
            assert len(texts(world.read(each), "human")) == prompts
            assert world.violations(each) == []
    assert world.move(away, home).report.action == "unchanged"


@pytest.mark.parametrize(("home", "abroad"), PAIRS)
def test_a_changed_session_is_left_alone_and_a_new_one_names_it(world: World, home: str, abroad: str):
    session = world.add_recorded(home)
    before, reasoning = world.load(session), signatures(world, session)
    away = world.move(session, abroad).session
    world.resume(away)
    world.resume(session)
    changed = world.load(session)
    back = world.move(away, home)
    assert back.report.action == "copied"
    assert back.session.id != session.id
    assert world.load(session) == changed
    copied = world.load(back.session)
    assert f'"{home}:{session.id}"'.encode() in copied
    assert session.id.encode() not in copied.replace(f"{home}:{session.id}".encode(), b"")
    assert signatures(world, back.session) == reasoning
    assert world.violations(back.session) == []
    read = world.read(back.session)
    assert len(texts(read, "human")) == 3
    assert len(copied) > len(before)
    assert world.move(away, home).report.action == "unchanged"


@pytest.mark.parametrize(("home", "abroad"), PAIRS)
def test_a_session_that_is_gone_is_written_again_with_its_reasoning(world: World, home: str, abroad: str):
    session = world.add_recorded(home)
    reasoning = signatures(world, session)
    away = world.move(session, abroad).session
    session.path.unlink()
    back = world.move(away, home)
    assert back.report.action == "copied"
    assert signatures(world, back.session) == reasoning
    assert world.violations(back.session) == []


def test_an_open_session_of_codex_is_not_extended(world: World):
    session = world.add_recorded("codex")
    away = world.move(session, "claude").session
    world.resume(away)
    lock = world.home.path / ".codex" / "thread-writer-locks" / f"{session.id}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert world.plan(away, "codex").action == "copied"
    assert world.plan(away, "codex").action == "extended"


def test_an_open_session_of_claude_is_not_extended(world: World):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    world.resume(away)
    running = world.home.path / ".claude" / "sessions" / "1.json"
    running.parent.mkdir()
    running.write_text(json.dumps({"pid": os.getpid(), "sessionId": session.id}))
    assert world.plan(away, "claude").action == "copied"
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    running.write_text(json.dumps({"pid": int(ended.stdout), "sessionId": session.id}))
    assert world.plan(away, "claude").action == "extended"


def test_a_file_that_changes_during_the_move_is_not_written(world: World):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    world.resume(away)
    mover = world._mover()
    plan = mover.plan(client("codex"), away, client("claude"), WORK)
    world.resume(session)
    changed = world.load(session)
    with pytest.raises(InputError, match="was changed by another program"):
        mover.write(plan)
    assert world.load(session) == changed


def test_over_three_clients_the_first_one_has_everything(world: World):
    session = world.add_recorded("claude")
    before, reasoning = world.load(session), signatures(world, session)
    second = world.move(session, "codex").session
    world.resume(second)
    third = world.move(second, "segue").session
    back = world.move(third, "claude")
    assert (back.report.action, back.session.id) == ("extended", session.id)
    assert world.load(session).startswith(before)
    assert signatures(world, session) == reasoning
    assert len(texts(world.read(session), "human")) == 3
    assert world.violations(session) == []


def test_two_branches_stay_apart(world: World):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    world.resume(away)
    world.move(away, "segue")
    world.resume(session)
    # The conversation has the work of Codex by now, which this session does not have.
    branch = world.move(session, "codex")
    assert branch.report.action in ("copied", "created")
    assert branch.session.id != away.id
    assert len(texts(world.read(branch.session), "human")) == 3
    assert len(texts(world.read(away), "human")) == 3


def test_a_branch_leaves_the_sessions_of_the_other_one(world: World):
    session = world.add_recorded("claude")
    reasoning = signatures(world, session)
    away = world.move(session, "codex").session
    world.resume(away)
    world.move(away, "segue")
    world.resume(session)
    world.move(session, "codex")
    # The first session went on in the other branch; its copy from before still has the reasoning.
    back = world.move(away, "claude")
    assert (back.report.action, signatures(world, back.session)) == ("copied", reasoning)
    assert [text.partition(":")[0] for text in texts(world.read(back.session), "human")][-1] == "TASK-leg1"


def test_a_session_that_was_rewound_is_moved_as_it_is(world: World):
    session = world.add_recorded("codex")
    away = world.move(session, "claude").session
    rolled = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}, "timestamp": "x"}
    with session.path.open("a") as file:
        file.write(json.dumps(rolled) + "\n")
    again = world.move(session, "claude")
    assert again.report.action == "created"
    assert again.session.id != away.id
    assert len(texts(world.read(again.session), "human")) == 1


def test_a_damaged_record_is_an_error_with_its_path(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    world.move(session, "codex")
    with sqlite3.connect(tmp_path / "moves.db") as connection:
        connection.execute("UPDATE journey SET entries = 'damaged'")
    connection.close()
    with pytest.raises(InputError, match="the record of moved sessions can't be read") as raised:
        world.plan(session, "codex")
    assert raised.value.path.endswith("moves.db")


def test_an_empty_record_is_a_new_one(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    (tmp_path / "moves.db").touch()
    assert world.move(session, "codex").report.action == "created"
    assert world.move(session, "codex").report.action == "unchanged"


def test_the_record_is_for_its_owner_only(world: World, tmp_path: Path):
    world.move(world.add_recorded("claude"), "codex")
    assert (tmp_path / "moves.db").stat().st_mode & 0o077 == 0


def test_a_journey_is_forgotten_after_a_year(world: World, tmp_path: Path):
    old = world.add_recorded("claude")
    world.move(old, "codex")
    with sqlite3.connect(tmp_path / "moves.db") as connection:
        connection.execute("UPDATE stop SET moved = moved - 366 * 24 * 3600 * 1000000")
    connection.close()
    assert world.record.find("claude", old.id) is not None
    world.move(world.add_recorded("codex"), "claude")
    assert world.record.find("claude", old.id) is None
    with sqlite3.connect(tmp_path / "moves.db") as connection:
        assert connection.execute("SELECT count(*) FROM content").fetchone() == (2,)
    connection.close()


def test_a_session_that_is_behind_is_moved_as_it_is(world: World):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    world.resume(away)
    assert len(texts(world.read(world.move(away, "segue").session), "human")) == 3
    # Codex has all that this session has, and more.
    assert world.move(session, "codex").report.action == "unchanged"
    session.path.unlink()
    back = world.move(away, "claude")
    assert len(texts(world.read(back.session), "human")) == 3
    assert back.report.lost


def test_a_record_of_an_earlier_version_is_used(world: World, tmp_path: Path):
    session = world.add_recorded("claude")
    away = world.move(session, "codex").session
    with sqlite3.connect(tmp_path / "moves.db") as connection:
        connection.executescript("DROP TABLE unfinished; PRAGMA user_version = 1")
    connection.close()
    world.resume(away)
    assert world.move(away, "claude").report.action == "extended"


def test_a_record_with_former_names_of_fields_is_used(world: World, tmp_path: Path):
    session = world.add_recorded("codex")
    away = world.move(session, "segue").session
    with sqlite3.connect(tmp_path / "moves.db") as connection:
        for file in (session, away):
            encoded = [encode_value(entry.message) for entry in world.read(file).entries]
            former = use_former_names(encoded)
            assert former != encoded
            digest = sha256(encode_json_sorted(former)).hexdigest()
            connection.execute("UPDATE stop SET own_digest = ? WHERE client = ?", (digest, file.client))
        export = json.loads(world.load(away))
        former = encode_json({**export, "events": use_former_names(export["events"])})
        assert b'"said"' in former
        connection.execute("UPDATE content SET data = ? WHERE client = 'segue'", (zlib.compress(former),))
        fields = len(former), sha256(former).hexdigest()
        connection.execute("UPDATE stop SET size = ?, digest = ? WHERE client = 'segue'", fields)
    connection.close()
    world.resume(session)
    back = world.move(session, "segue")
    assert (back.report.action, back.session.id) == ("extended", away.id)
    assert {line.text: line.count for line in back.report.carried}["messages"] == 4


def use_former_names(value: Any) -> Any:
    """Return a value with the names that it had before schema version 5 of the store."""
    if isinstance(value, list):
        return [use_former_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = {"encrypted": "sealed", "omit_reason": "silent"}
    kinds = {"added": "said", "settings": "opened"}
    renamed = {names.get(key, key): use_former_names(item) for key, item in value.items()}
    return {**renamed, **({"type": kinds.get(value["type"], value["type"])} if "type" in value else {})}
