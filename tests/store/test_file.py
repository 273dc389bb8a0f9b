"""The file of an SQLite store: permissions, and rejected files that stay unchanged."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from segue.errors import InputError, StoreError
from segue.store import default_location, open_default_store, open_store
from segue.store.events import Event
from segue.store.sqlite import SqliteStore
from segue.store.sqlite_file import APPLICATION_ID
from tests.store.sample_events import EACH_KIND, user_event

ROOT = Path(__file__).parents[2]


def a_store(path: Path, events: tuple[Event, ...] = EACH_KIND) -> str:
    with SqliteStore(path) as store:
        conversation = store.create("a title")
        store.append(conversation, 1, events)
    return conversation


def run_in_child(script: str, *arguments: object, **options) -> list[str]:
    """The lines that a process prints; it has to end well and by itself."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# -------------------------------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_what_is_made(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = tmp_path / "new" / "folders" / "history.db"
        with SqliteStore(path) as store:
            store.append(store.create(), 0, EACH_KIND)
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"history.db": 0o600, "history.db-wal": 0o600, "history.db-shm": 0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}


def test_an_empty_file_becomes_a_store_of_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch(0o644)
    a_store(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_file_has_application_id_and_safe_settings(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqliteStore(path) as store, store._read_session() as session:
        asked = {name: session.run(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "secure_delete")}
        assert asked == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}
        assert session.run("PRAGMA application_id") == [(APPLICATION_ID,)]
    assert path.read_bytes()[68:72] == b"SEGU"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["history.db"]


# ------------------------------------------------------------------------------------------------------------ refusals


def _other_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()


def _other_database_with_log(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.close()


def _cut(path: Path) -> None:
    a_store(path)
    os.truncate(path, path.stat().st_size - 4096)


def _cut_in_the_middle(path: Path) -> None:
    a_store(path)
    os.truncate(path, 4096 * 3 + 100)


def _cut_in_the_head(path: Path) -> None:
    a_store(path)
    os.truncate(path, 90)


def _other_head(path: Path) -> None:
    a_store(path)
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])


def _a_page_of_noise(path: Path) -> None:
    a_store(path)
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = random.Random(1).randbytes(4096)
    path.write_bytes(data)


def _no_tables(path: Path) -> None:
    a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE leases")
    connection.close()


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("dear diary\n" * 50, "utf-8"), "foreign"),
    "a short text": (lambda path: path.write_text("x", "utf-8"), "foreign"),
    "noise": (lambda path: path.write_bytes(random.Random(2).randbytes(9000)), "foreign"),
    "zeros": (lambda path: path.write_bytes(bytes(8192)), "foreign"),
    "another program's": (_other_database, "foreign"),
    "another program's with a log": (_other_database_with_log, "foreign"),
    "a head of nothing": (_other_head, "foreign"),
    "cut in the head": (_cut_in_the_head, "corrupt"),
    "cut": (_cut, "corrupt"),
    "cut in the middle": (_cut_in_the_middle, "corrupt"),
    "a page of noise": (_a_page_of_noise, "corrupt"),
    "no tables": (_no_tables, "corrupt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_non_store_file_is_rejected_and_unchanged(tmp_path: Path, case: str) -> None:
    make, cause = REFUSED[case]
    path = tmp_path / "file"
    make(path)
    before = path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert caught.value.cause == cause
    assert str(path) in str(caught.value)
    assert not [raw for raw in ("btree", "*** in", "Tree ", "Page ") if raw in str(caught.value)]
    assert (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("seed", range(25))
def test_bytes_that_changed_are_noticed_or_change_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "file"
    conversation = a_store(path, tuple(user_event(f"message {number} " + "word " * 40) for number in range(60)))
    with SqliteStore(path) as store:
        whole = list(store.events(conversation))
    data = bytearray(path.read_bytes())
    for _ in range(3):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    cause = read = None
    try:
        with SqliteStore(path) as store:
            read = list(store.events(conversation))
    except StoreError as error:
        cause = error.cause
    assert read == whole or cause in ("corrupt", "missing", "foreign", "newer")


def test_a_folder_a_pipe_and_no_place_at_all(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x", "utf-8")
    for place, cause in ((tmp_path, "foreign"), (tmp_path / "pipe", "foreign"), (tmp_path / "file" / "x", "refused")):
        with pytest.raises(StoreError) as caught:
            SqliteStore(place)
        assert caught.value.cause == cause


def test_a_link_to_nowhere_is_a_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "later" / "history.db")
    conversation = a_store(tmp_path / "link")
    with SqliteStore(tmp_path / "later" / "history.db") as store:
        assert store.get(conversation).seq == 1 + len(EACH_KIND)


UNREADABLE = """
import os, sys
from segue.errors import StoreError
from segue.store.sqlite import SqliteStore
try:
    SqliteStore(sys.argv[1])
except StoreError as error:
    print(error.cause)
"""


def test_inaccessible_file_is_rejected(tmp_path: Path) -> None:
    # Root may read everything: another user asks, who can reach neither our modules nor our folders by himself.
    import tempfile

    script = f"import os, sys; sys.path[:] = {sys.path!r}\nimport segue.store.sqlite\nWHO{UNREADABLE}"
    script = script.replace("WHO", "os.setuid(65534) if os.geteuid() == 0 else None")
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        a_store(folder / "closed")
        (folder / "closed").chmod(0o000 if os.geteuid() else 0o600)
        before = (folder / "closed").read_bytes() if os.geteuid() == 0 else b""
        assert run_in_child(script, folder / "closed") == ["refused"]
        if os.geteuid() == 0:
            assert (folder / "closed").read_bytes() == before
            assert run_in_child(script, folder / "new" / "history.db") == ["refused"]


READING = """
import os, sys
from segue.errors import StoreError
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from segue.store.events import Renamed
with SqliteStore(sys.argv[1]) as store:
    [row] = store.list()
    print(row.title, len(list(store.events(row.id))), len(store.search("main")), store.lease(row.id))
    assert StoredConversation(store, row.id).state.seq == row.seq
    for write in (
        lambda: store.create("x"),
        lambda: store.append(row.id, row.seq, [Renamed("x")]),
        lambda: store.acquire(row.id, "me", 1),
        lambda: store.fork(row.id, 1),
        lambda: store.delete(row.id),
        lambda: StoredConversation(store, row.id).rename("x"),
    ):
        try:
            write()
        except StoreError as error:
            print(error.cause, "is read-only" in str(error))
"""


@pytest.mark.parametrize("closed", ["the file", "the folder", "both", "both, while another writes"])
def test_read_only_store_is_readable_and_rejects_writes(closed: str) -> None:
    # Root may write everything: another user asks, as above.
    import tempfile

    script = f"import os, sys; sys.path[:] = {sys.path!r}\nimport segue.store.conversation, segue.store.sqlite\nWHO"
    script = script.replace("WHO", "os.setuid(65534) if os.geteuid() == 0 else None") + READING
    talk = (user_event("print main"), user_event("twice"))
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder, path = Path(made), Path(made) / "history.db"
        conversation = a_store(path, talk)
        writer = SqliteStore(path) if "writes" in closed else None
        if writer is not None:
            writer.append(conversation, 3, [user_event("from the log")])
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        for file in folder.iterdir():
            file.chmod(0o666 if closed == "the folder" else 0o444)
        folder.chmod(0o777 if closed == "the file" else 0o555)
        output = run_in_child(script, path)
        folder.chmod(0o755)
        assert output == [f"a title {4 if writer else 3} 1 None", *["readonly True"] * 6]
        assert {file.name: file.read_bytes() for file in folder.iterdir() if "shm" not in file.name} == {
            name: data for name, data in before.items() if "shm" not in name
        }
        if writer is not None:
            writer.close()


@pytest.mark.parametrize(
    "where", ["sqlite:///x.db", "mysql://x", "file:foo.db", "file:foo.db?mode=ro", ":memory:", "", "~nobody-here/x.db"]
)
def test_an_address_that_is_no_store_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_store(where)
    assert caught.value.path == "store"
    assert list(tmp_path.iterdir()) == []


def test_any_file_name_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("./file:foo.db").close()
    open_store(Path("sqlite:bar")).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file:foo.db", "sqlite:bar"]


def test_a_file_that_vanishes_while_in_use_takes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqliteStore(path) as store:
        conversation = store.create()
        path.unlink()
        with pytest.raises(StoreError, match="removed or replaced"):
            store.append(conversation, 0, [user_event("into the void")])


def test_busy_store_is_a_retryable_error(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqliteStore(path) as patient, SqliteStore(path, timeout=0.05) as hasty:
        conversation = patient.create()
        with patient._write_session():
            with pytest.raises(StoreError) as caught:
                hasty.append(conversation, 0, [user_event("now")])
            assert hasty.get(conversation).seq == 0
        assert (caught.value.cause, caught.value.retryable) == ("locked", True)
        assert hasty.append(conversation, 0, [user_event("now")]) == 1


def test_nothing_is_left_of_what_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqliteStore(path) as store:
        stays, gone = store.create("ordinary"), store.create("zanzibar")
        store.append(gone, 1, [user_event("my word is rumpelstilzchen " * 300)])
        store.append(stays, 1, [user_event("something else")])
        store.delete(gone)
        left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"ordinary" in left
        for word in (b"rumpelstilz", b"zanzibar", gone.encode()):
            assert word not in left


# ----------------------------------------------------------------------------------------------------------- full disk

FULL = """
import resource, sys
from segue.canonical.blocks import Message, Text
from segue.errors import StoreError
from segue.store.events import MessageAdded
from segue.store.sqlite import SqliteStore

def message(number, count=2000):
    return MessageAdded(Message("human", (Text(f"{number} " + "word " * count),)))

path, room = sys.argv[1], int(sys.argv[2])
with SqliteStore(path) as store:
    conversation = store.create()
    written = store.append(conversation, 0, [message(0)])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        while True:
            written = store.append(conversation, written, [message(written), message(written + 1)])
    except StoreError as error:
        print(error.cause)
    print([r.event for r in store.events(conversation)] == [message(0), *(message(n) for n in range(1, written))])
    print(store.get(conversation).seq == written and len(store.search("word", 10_000)) == written)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(store.append(conversation, written, [message(written)]) == written + 1)
print(written)
"""

NO_ROOM = """
import resource, sys
from segue.errors import StoreError
from segue.store.sqlite import SqliteStore
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
try:
    SqliteStore(sys.argv[1])
except StoreError as error:
    print(error.cause)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
with SqliteStore(sys.argv[1]) as store:
    print(len(store.list()))
"""


@pytest.mark.parametrize("room", [200_000, 300_001, 1_000_000])
def test_full_disk_is_reported_and_old_state_kept(tmp_path: Path, room: int) -> None:
    path = tmp_path / "history.db"
    *output, written = run_in_child(FULL, path, room)
    assert output == ["full", "True", "True", "True"]
    with SqliteStore(path) as store:
        [summary] = store.list()
        assert len(list(store.events(summary.id))) == summary.seq == int(written) + 1


@pytest.mark.parametrize("room", [0, 3000, 5000, 20_000])
def test_no_room_for_a_new_store(tmp_path: Path, room: int) -> None:
    assert run_in_child(NO_ROOM, tmp_path / "history.db", room) == ["full", "0"]


# ----------------------------------------------------------------------------------------------------------- the place


def test_where_the_users_store_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGUE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_location().endswith("history.db")
    assert default_location().startswith(str(tmp_path))
    assert default_location("/configured.db") == "/configured.db"
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path / "named.db"))
    with open_default_store("/configured.db") as store:
        assert store.location == str((tmp_path / "named.db").resolve())


def test_a_place_is_a_file_or_a_server(tmp_path: Path) -> None:
    with open_store(tmp_path / "x.db") as store:
        assert isinstance(store, SqliteStore)
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://user:hush@/nowhere?host={tmp_path}")
    assert (caught.value.cause, caught.value.retryable) == ("lost", True)
    assert "hush" not in str(caught.value)
