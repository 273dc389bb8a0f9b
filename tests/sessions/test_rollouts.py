"""The rollouts of Codex on disk: forks and reverted threads, which continue another rollout, and compressed ones."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from segue.errors import InputError
from segue.sessions.client import SessionFile
from segue.sessions.codex import rollouts
from segue.sessions.logs import read_log
from segue.sessions.session_search import find_session
from tests.cli.client_logs import Codex
from tests.sessions.world import World, client, texts

PARENT = "01a1edc5-0000-7000-8000-000000000001"
CHILD = "01a1edc5-0000-7000-8000-000000000002"
GRANDCHILD = "01a1edc5-0000-7000-8000-000000000003"


def _write(world: World, name: str, log: Codex, first: int = 0) -> Path:
    """Write a rollout of this id, or of these ids of thread and rollout, with numbered lines."""
    path = world.home.path / f".codex/sessions/2026/11/18/rollout-2026-11-18T05-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{**line, "ordinal": number} for number, line in enumerate(log.lines, first)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def _log(id: str, *words: str, base: tuple[str, int] | None = None) -> Codex:
    log = Codex(history_mode="paginated")
    log.lines[0]["payload"].update(id=id, cwd="/home/me/project")
    if base is not None:
        log.lines[0]["payload"]["history_base"] = {"thread_id": base[0], "end_ordinal_exclusive": base[1]}
    for word in words:
        log.user(f"Prompt {word}")
        log.answer(f"Answer {word}")
    return log


def _fork(world: World) -> SessionFile:
    """A fork after the first of two turns, which has a turn of its own, and a fork of that fork."""
    _write(world, PARENT, _log(PARENT, "one", "two"))
    _write(world, CHILD, _log(CHILD, "three", base=(PARENT, 5)), 5)
    path = _write(world, GRANDCHILD, _log(GRANDCHILD, "four", base=(CHILD, 10)), 10)
    return client("codex").describe(path)


WANTED = [f"{kind} {word}" for word in ("one", "three", "four") for kind in ("Prompt", "Answer")]


def test_a_fork_is_read_with_the_turns_before_it(world: World):
    session = world.read(_fork(world))
    assert texts(session, "human", "ai") == WANTED
    assert session.log.facts.id == GRANDCHILD


def test_a_fork_is_extended_in_its_own_file(world: World):
    fork = _fork(world)
    before = {path: path.read_bytes() for path in fork.path.parent.iterdir()}
    moved = world.move(fork, "claude").session
    world.resume(moved)
    assert world.move(moved, "codex").report.action == "extended"
    assert texts(world.read(fork), "human", "ai")[: len(WANTED)] == WANTED
    assert fork.path.read_bytes().startswith(before.pop(fork.path))
    assert all(path.read_bytes() == data for path, data in before.items())


def test_a_copy_of_a_fork_has_all_its_lines(world: World):
    fork = _fork(world)
    moved = world.move(fork, "claude").session
    world.resume(moved)
    world.resume(fork)
    copied = world.move(moved, "codex")
    assert copied.report.action == "copied"
    lines = [json.loads(line) for line in copied.session.path.read_text().splitlines()]
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    assert "history_base" not in lines[0]["payload"]
    assert texts(world.read(copied.session), "human", "ai")[: len(WANTED)] == WANTED


def test_a_fork_without_the_rollout_that_it_continues_is_refused(world: World):
    fork = _fork(world)
    next(fork.path.parent.glob(f"*{PARENT}.jsonl")).unlink()
    with pytest.raises(InputError, match=f"continues the rollout {PARENT}, which is not there"):
        world.read(fork)


def test_the_file_of_a_fork_alone_is_refused(world: World):
    with pytest.raises(InputError, match=f"continues the rollout {CHILD}"):
        read_log(_fork(world).path.read_bytes())


def test_a_reverted_thread_is_one_session(world: World):
    _write(world, PARENT, _log(PARENT, "one", "two"))
    _write(world, f"{PARENT}_{CHILD}", _log(PARENT, "other", base=(PARENT, 5)), 5)
    (session,) = client("codex").find(world.home, None)
    assert texts(world.read(session), "human") == ["Prompt one", "Prompt other"]


# ---------------------------------------------------------------------------------------------------------- compressed


def _find_zstd() -> Any:
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    pytest.skip("no package for zstd is installed")


def _compress(path: Path) -> Path:
    compressed = path.with_name(f"{path.name}.zst")
    with _find_zstd().open(compressed, "wb") as file:
        file.write(path.read_bytes())
    path.unlink()
    return compressed


def test_a_compressed_session_is_listed_and_read(world: World):
    path = _compress(_write(world, PARENT, _log(PARENT, "one")))
    (session,) = client("codex").find(world.home, Path("/home/me/project"))
    assert (session.id, session.title, session.path) == (PARENT, "Prompt one", path)
    assert texts(world.read(session), "human") == ["Prompt one"]
    assert find_session([client("codex")], world.home, Path("/"), str(path)) == session


def test_a_compressed_session_is_extended_beside_its_file(world: World):
    path = _compress(_write(world, PARENT, _log(PARENT, "one")))
    data = path.read_bytes()
    session = client("codex").describe(path)
    moved = world.move(session, "claude").session
    world.resume(moved)
    assert world.move(moved, "codex").report.action == "extended"
    assert path.read_bytes() == data
    (found,) = client("codex").find(world.home, None)
    assert found.path == path.with_suffix("")
    assert texts(world.read(found), "human")[0] == "Prompt one"
    assert "leg1 answer." in world.load(found).decode()
    assert world.move(found, "claude").report.action == "unchanged"


def test_a_compressed_fork_is_extended_as_a_fork(world: World):
    fork = _fork(world)
    own = fork.path.read_bytes()
    session = client("codex").describe(_compress(fork.path))
    moved = world.move(session, "claude").session
    world.resume(moved)
    assert world.move(moved, "codex").report.action == "extended"
    extended = fork.path.read_bytes()
    assert extended.startswith(own)
    numbers = [json.loads(line)["ordinal"] for line in extended.splitlines()]
    assert numbers == list(range(10, 10 + len(numbers)))
    assert texts(world.read(client("codex").describe(fork.path)), "human", "ai")[: len(WANTED)] == WANTED


def test_all_frames_of_a_compressed_session_are_read(world: World):
    path = _write(world, PARENT, _log(PARENT, "one", "two"))
    lines = path.read_bytes().splitlines(keepends=True)
    compressed = path.with_name(f"{path.name}.zst")
    compressed.write_bytes(b"".join(map(_find_zstd().compress, lines)))
    path.unlink()
    (session,) = client("codex").find(world.home, None)
    assert session.title == "Prompt one"
    assert world.load(session) == b"".join(lines)


@pytest.mark.parametrize("rest", [b"x", b"no frame", b"\x28\xb5\x2f\xfd"])
def test_what_follows_the_frames_is_refused(world: World, rest: bytes):
    path = _compress(_write(world, PARENT, _log(PARENT, "one")))
    session = client("codex").describe(path)
    path.write_bytes(path.read_bytes() + rest)
    with pytest.raises(InputError, match="can't be decompressed"):
        world.read(session)


def test_a_damaged_compressed_session_is_refused(world: World):
    path = _compress(_write(world, PARENT, _log(PARENT, "one")))
    session = client("codex").describe(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match="can't be decompressed"):
        world.read(session)


def test_a_compressed_session_names_the_extra_that_reads_it(world: World, monkeypatch: pytest.MonkeyPatch):
    path = _write(world, PARENT, _log(PARENT, "one"))
    path.rename(path.with_name(f"{path.name}.zst"))
    monkeypatch.setattr(rollouts, "_MODULES", ())
    (session,) = client("codex").find(world.home, None)
    assert (session.id, session.title) == (PARENT, None)
    with pytest.raises(InputError, match=r"pip install 'segue\[zstd\]'"):
        world.plan(session, "claude")
