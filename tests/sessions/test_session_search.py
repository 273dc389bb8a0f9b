"""Finding sessions: the clients' folders and variables, ids, paths and words; files that are written safely."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from segue.errors import InputError
from segue.sessions import files
from segue.sessions.claude import encode_folder
from segue.sessions.client import ClientHome, SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.registry import CLIENTS
from segue.sessions.session_search import find_session, list_sessions
from segue.store.sqlite import SqliteStore
from tests.sessions.record import FOLDER, WORK
from tests.sessions.world import World

ALL = list(CLIENTS.values())
HERE = Path(WORK)


def test_sessions_of_a_folder_are_listed_newest_first(world: World):
    claude, codex = world.add_recorded("claude"), world.add_recorded("codex")
    os.utime(claude.path, (2_000_000_000, 2_000_000_000))
    listed = list_sessions(ALL, world.home, HERE)
    assert [each.id for each in listed] == [claude.id, codex.id]
    assert [each.model for each in listed] == ["claude-opus-5-5", "gpt-5.5"]
    assert all(each.title and each.title.startswith("TASK-ONE") and each.cwd == WORK for each in listed)
    assert list_sessions(ALL, world.home, Path("/home/me/other")) == []


@pytest.mark.parametrize(
    ("client", "variable", "folder"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "projects/-home-me-project"),
        ("codex", "CODEX_HOME", "sessions/2026/11/18"),
        ("gemini", "GEMINI_CLI_HOME", f".gemini/tmp/{sha256(WORK.encode()).hexdigest()}/chats"),
        ("qwen", "QWEN_HOME", "projects/-home-me-project/chats"),
        ("qwen", "QWEN_RUNTIME_DIR", "projects/-home-me-project/chats"),
    ],
)
def test_the_clients_variables_are_honoured(world: World, tmp_path: Path, client: str, variable: str, folder: str):
    own = tmp_path / "own"
    names = {"codex": "rollout-2026-11-18T05-00-00-x.jsonl", "gemini": "session-2026-11-18T05-00-x.jsonl"}
    name = names.get(client, "x.jsonl")
    (own / folder).mkdir(parents=True)
    (own / folder / name).write_bytes((FOLDER / f"{client}.jsonl").read_bytes())
    home = ClientHome(world.home.path, {variable: str(own)})
    (found,) = CLIENTS[client].find(home, HERE)
    assert found.path == own / folder / name
    assert list(CLIENTS[client].find(world.home, HERE)) == []


def test_an_id_its_beginning_a_path_and_words_name_a_session(world: World):
    claude, codex = world.add_recorded("claude"), world.add_recorded("codex")

    def find(wanted: str | None, *clients: str) -> SessionFile:
        chosen = [CLIENTS[name] for name in clients] or ALL
        return find_session(chosen, world.home, HERE, wanted)

    assert find(claude.id).id == claude.id
    assert find(codex.id[:8]).id == codex.id
    assert find(str(codex.path)).id == codex.id
    assert find("files change command", "claude").id == claude.id
    assert find("CHUNK", "codex").id == codex.id
    assert find(None, "claude").id == claude.id


@pytest.mark.parametrize("key", ["parentUuid", "call_id", "sessionId", "timestamp"])
def test_words_are_not_searched_in_keys(world: World, key: str):
    world.add_recorded("claude")
    world.add_recorded("codex")
    with pytest.raises(InputError, match="no session of"):
        find_session(ALL, world.home, HERE, key)


@pytest.mark.parametrize("wanted", ["missing", "files command"])
def test_no_session_or_several_are_an_error(world: World, wanted: str):
    world.add_recorded("claude")
    world.add_recorded("codex")
    expected = "no session of" if wanted == "missing" else "2 sessions match"
    with pytest.raises(InputError, match=expected):
        find_session(ALL, world.home, HERE, wanted)


def test_a_file_that_is_no_session_is_refused(world: World, tmp_path: Path):
    file = tmp_path / "body.json"
    file.write_text('{"messages": []}')
    with pytest.raises(InputError, match="not a session of Claude Code or Codex"):
        find_session([CLIENTS["claude"], CLIENTS["codex"]], world.home, HERE, str(file))


def test_an_empty_home_has_no_sessions(tmp_path: Path):
    assert list_sessions(ALL, ClientHome(tmp_path / "nothing"), None) == []
    with pytest.raises(InputError, match="in this folder"):
        find_session(ALL, ClientHome(tmp_path / "nothing"), HERE, None)


def test_a_large_session_is_listed_by_its_beginning_and_end(world: World):
    session = world.add_recorded("codex")
    line = json.dumps({"timestamp": "2026-11-18T05:32:43.000Z", "type": "other", "payload": {"text": "x" * 1000}})
    data = world.load(session)
    head, _, tail = data.partition(b"\n")
    session.path.write_bytes(head + b"\n" + f"{line}\n".encode() * 500 + tail)
    (found,) = CLIENTS["codex"].find(world.home, HERE)
    assert (found.id, found.model) == (session.id, "gpt-5.5")


def test_a_long_folder_has_the_name_that_claude_gives_it():
    # The expected names are those of the client's own function.
    assert encode_folder("/home/me/my project.1") == "-home-me-my-project-1"
    long = "/home/" + "ab/" * 90
    assert encode_folder(long) == f"-home-{'ab-' * 64}ab-xrpq01"


def test_a_file_is_never_overwritten(tmp_path: Path):
    file = tmp_path / "new" / "a.jsonl"
    files.create(file, b"first")
    with pytest.raises(InputError, match="exists already"):
        files.create(file, b"second")
    assert file.read_bytes() == b"first"
    assert [path.name for path in file.parent.iterdir()] == ["a.jsonl"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_only_an_unchanged_file_is_extended(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n")
    before = Fingerprint.of(b"one\n")
    files.append(file, before, b"two\n")
    assert file.read_bytes() == b"one\ntwo\n"
    with pytest.raises(InputError, match="was changed"):
        files.append(file, before, b"three\n")
    assert file.read_bytes() == b"one\ntwo\n"


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(InputError, match="no space left"):
        files.append(file, Fingerprint.of(b"one\n"), b"two\n")
    assert file.read_bytes() == b"one\n"
    with pytest.raises(InputError, match="no space left"):
        files.create(tmp_path / "b.jsonl", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_open_file_is_noticed(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"one\n")
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list open files")
    assert not files.is_open_file(file)
    with file.open("rb"):
        assert files.is_open_file(file)


def test_stored_conversations_are_found_by_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    home = ClientHome(tmp_path, store=str(tmp_path / "store.db"))
    with SqliteStore(tmp_path / "store.db") as store:
        ours = store.create("Ours", folder=str(here.resolve()))
        theirs = store.create("Theirs", folder=str(there.resolve()))
    client = CLIENTS["segue"]
    assert find_session([client], home, here, None).id == ours
    assert {session.id for session in list_sessions([client], home, None)} == {ours, theirs}
    assert [session.cwd for session in list_sessions([client], home, there)] == [str(there.resolve())]
