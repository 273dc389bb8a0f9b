"""The record of moves: one move at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from segue.errors import InputError
from segue.sessions.move_record import MovedConversation, MoveRecord

COUNT = """
import pathlib, sys
from segue.sessions.move_record import MoveRecord
store, file = MoveRecord(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
for _ in range(100):
    with store.lock():
        number = int(file.read_text())
        file.write_text("")
        file.write_text(str(number + 1))
"""


# It is killed in a transaction of which a part is in the file already.
KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
for number in range(100):
    connection.execute("INSERT INTO journey VALUES (?, ?)", (str(number), os.urandom(5_000)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_one_process_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "count"
    file.write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "new" / "moves.db"), str(file)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert file.read_text() == "300"


def test_a_transaction_that_was_killed_is_rolled_back(tmp_path: Path) -> None:
    store, path = MoveRecord(tmp_path / "moves.db"), tmp_path / "moves.db"
    store.save(MovedConversation.start())
    whole = path.read_bytes()
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert path.with_name("moves.db-journal").stat().st_size > 512
    assert path.read_bytes() != whole
    assert store.find("claude", "any") is None
    assert path.read_bytes() == whole


def test_a_lock_is_released_by_an_error(tmp_path: Path) -> None:
    store = MoveRecord(tmp_path / "moves.db")
    for _ in range(2):
        with pytest.raises(InputError, match="of the body"), store.lock():
            raise InputError("of the body")
    assert (tmp_path / "moves.lock").stat().st_mode & 0o777 == 0o600


def test_a_lock_that_can_not_be_made_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written") as caught, MoveRecord(tmp_path / "file" / "x.db").lock():
        raise AssertionError("it was locked")
    assert caught.value.path == str(tmp_path / "file" / "x.db")
