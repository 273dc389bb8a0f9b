"""Conversations that moved between clients, with every message in its original form, and their sessions.

Signatures and encrypted reasoning, ids and tools that a client's session can't hold are kept here, so that a session
that is moved back has them again. One SQLite file of the user's, readable by its owner only.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import zlib
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from segue.canonical.json import encode_json
from segue.errors import InputError, SegueError
from segue.private_files import make_folder
from segue.sessions.client import SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.session import SessionMessage, decode_entry, encode_entry

_VERSION = 2
# In microseconds: a year after its last move, a conversation is deleted.
_MAX_AGE = 365 * 24 * 3600 * 1_000_000
_DELETE_OLD = "DELETE FROM stop WHERE journey IN (SELECT journey FROM stop GROUP BY journey HAVING max(moved) < ?)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS journey (id TEXT PRIMARY KEY, entries BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stop (
  client TEXT NOT NULL, session TEXT NOT NULL, journey TEXT NOT NULL, path TEXT NOT NULL, cwd TEXT,
  size INTEGER NOT NULL, digest TEXT NOT NULL, own INTEGER NOT NULL, own_digest TEXT NOT NULL,
  done INTEGER NOT NULL, open_calls TEXT NOT NULL, moved INTEGER NOT NULL, PRIMARY KEY (journey, client, session)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS content (
  journey TEXT NOT NULL, client TEXT NOT NULL, session TEXT NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (journey, client, session)
);
CREATE TABLE IF NOT EXISTS unfinished (
  client TEXT NOT NULL, session TEXT NOT NULL, journey TEXT PRIMARY KEY, path TEXT NOT NULL, cwd TEXT,
  size INTEGER NOT NULL, digest TEXT NOT NULL, own INTEGER NOT NULL, own_digest TEXT NOT NULL,
  done INTEGER NOT NULL, open_calls TEXT NOT NULL, moved INTEGER NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stop_session ON stop (client, session);
"""
_FIND = """
WITH known AS (SELECT client, session, journey, moved FROM stop
               UNION ALL SELECT client, session, journey, moved FROM unfinished)
SELECT id, entries FROM known JOIN journey ON id = journey WHERE client = ? AND session = ? ORDER BY moved DESC LIMIT 1
"""
_MARKS = ", ".join("?" * 12)
_COLUMNS = "client, session, path, cwd, size, digest, own, own_digest, done, open_calls, moved"


class SessionState(Struct, frozen=True):
    """A session of a conversation, as it was when a move last read or wrote it.

    It has the first `message_count` messages of the conversation. Its file has `file_message_count` messages with the
    digest `file_digest`, which may differ in number: rendering adds and merges some. `open_calls` are the ids of its
    calls without a result; `moved` is the time of that move in microseconds since 1970.
    """

    file: SessionFile
    fingerprint: Fingerprint
    file_message_count: int
    file_digest: str
    message_count: int
    moved: int
    open_calls: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The client and the id of the session."""
        return self.file.client, self.file.id


class MovedConversation(Struct):
    """A conversation and its sessions. `contents` has the content of sessions that `MoveRecord.save` has to write.

    A session can be in several of them: each has the session as it was when it was moved. `unfinished` is a session
    with its content that a move began to write: it is saved before the write, and removed with the record of it.
    """

    id: str
    entries: list[SessionMessage]
    states: list[SessionState]
    contents: dict[tuple[str, str], bytes] = {}
    unfinished: tuple[SessionState, bytes] | None = None

    @classmethod
    def start(cls) -> MovedConversation:
        return cls(secrets.token_hex(16), [], [])

    def find_state(self, client: str, session: str) -> SessionState | None:
        return next((state for state in self.states if state.key == (client, session)), None)

    def latest_state(self, client: str) -> SessionState | None:
        """Return the session of a client that has most of the conversation; of several, the last one written."""
        states = [state for state in self.states if state.file.client == client]
        return max(states, key=lambda state: (state.message_count, state.moved), default=None)

    def set_state(self, state: SessionState, content: bytes) -> None:
        """Add a session with its content; an earlier state of the same session is replaced."""
        self.contents[state.key] = content
        self.states = [*(other for other in self.states if other.key != state.key), state]


class MoveRecord:
    """The file with all conversations, made on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, client: str, session: str) -> MovedConversation | None:
        """Return the conversation that a session belongs to; of several, the one that it was moved in last."""
        if not self._path.exists():
            return None
        try:
            with closing(self._open()) as connection:
                row = connection.execute(_FIND, (client, session)).fetchone()
                if row is None:
                    return None
                states = connection.execute(f"SELECT {_COLUMNS} FROM stop WHERE journey = ?", (row[0],)).fetchall()
                query = f"SELECT {_COLUMNS}, data FROM unfinished WHERE journey = ?"
                begun = connection.execute(query, (row[0],)).fetchone()
            stored = cast("list[Any]", msgspec.json.decode(zlib.decompress(row[1])))
            entries = [decode_entry(entry, f"entries[{number}]") for number, entry in enumerate(stored)]
            unfinished = (decode_state(begun[:-1]), zlib.decompress(begun[-1])) if begun is not None else None
        except (sqlite3.Error, zlib.error, msgspec.DecodeError, SegueError, OSError, TypeError, ValueError) as error:
            raise InputError(f"the record of moved sessions can't be read: {error}", path=str(self._path)) from None
        return MovedConversation(row[0], entries, [decode_state(state) for state in states], unfinished=unfinished)

    def load_content(self, conversation: MovedConversation, state: SessionState) -> bytes | None:
        """Return the content that a session of a conversation had when it was last read or written by a move."""
        if state.key in conversation.contents or not self._path.exists():
            return conversation.contents.get(state.key)
        try:
            with closing(self._open()) as connection:
                query = "SELECT data FROM content WHERE journey = ? AND client = ? AND session = ?"
                row = connection.execute(query, (conversation.id, *state.key)).fetchone()
            return zlib.decompress(row[0]) if row is not None else None
        except (sqlite3.Error, zlib.error, OSError, TypeError) as error:
            raise InputError(f"the record of moved sessions can't be read: {error}", path=str(self._path)) from None

    @contextmanager
    def lock(self) -> Generator[None]:
        """Hold a lock while a move is planned and written, and until its commands end."""
        from filelock import FileLock

        lock = FileLock(self._path.with_suffix(".lock"), mode=0o600)
        try:
            make_folder(self._path.parent)
            lock.acquire()
        except OSError as error:
            raise InputError(f"the record of moved sessions can't be written: {error}", path=str(self._path)) from None
        try:
            # The commands of a move that is killed hold the lock until they end.
            handle = lock._context.lock_file_fd  # pyright: ignore[reportPrivateUsage]
            if handle is not None and os.name == "posix":
                os.set_inheritable(handle, True)
            yield
        finally:
            lock.release()

    def save(self, conversation: MovedConversation) -> None:
        """Store a conversation and its sessions, in one transaction."""
        entries = zlib.compress(encode_json([encode_entry(entry) for entry in conversation.entries]))
        try:
            with closing(self._connect()) as connection, connection:
                connection.execute("INSERT OR REPLACE INTO journey VALUES (?, ?)", (conversation.id, entries))
                for state in conversation.states:
                    connection.execute(
                        f"INSERT OR REPLACE INTO stop (journey, {_COLUMNS}) VALUES ({_MARKS})",
                        (conversation.id, *encode_state(state)),
                    )
                for key, data in conversation.contents.items():
                    values = conversation.id, *key, zlib.compress(data)
                    connection.execute("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", values)
                connection.execute("DELETE FROM unfinished WHERE journey = ?", (conversation.id,))
                if conversation.unfinished is not None:
                    state, data = conversation.unfinished
                    connection.execute(
                        f"INSERT INTO unfinished (journey, {_COLUMNS}, data) VALUES ({_MARKS}, ?)",
                        (conversation.id, *encode_state(state), zlib.compress(data)),
                    )
                newest = max((state.moved for state in conversation.states), default=0)
                connection.execute(_DELETE_OLD, (newest - _MAX_AGE,))
                for table, column in (("journey", "id"), ("content", "journey"), ("unfinished", "journey")):
                    connection.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT journey FROM stop)")
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"the record of moved sessions can't be written: {error}", path=str(self._path)) from None

    def _connect(self) -> sqlite3.Connection:
        """Open the file to write; it is created if it is missing."""
        make_folder(self._path.parent)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._path, timeout=10)
        try:
            if _read_version(connection) < _VERSION:
                connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_VERSION};COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self) -> sqlite3.Connection:
        """Open the file to read. What an older segue or a killed one left incomplete is made complete first."""
        connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
        is_complete = False
        try:
            is_complete = _read_version(connection) == _VERSION
        except sqlite3.OperationalError as error:
            # A transaction of a killed process has to be rolled back.
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        finally:
            if not is_complete:
                connection.close()
        return connection if is_complete else self._connect()


def _read_version(connection: sqlite3.Connection) -> int:
    """Return the version of the file, 0 for a new one; raise for versions of other releases."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise sqlite3.DatabaseError(f"it has version {version}; this segue reads {_VERSION}")
    return version


def encode_state(state: SessionState) -> Sequence[Any]:
    """Return the stored form of a session of a conversation."""
    file = state.file
    fields = (file.client, file.id, str(file.path), file.cwd, state.fingerprint.size, state.fingerprint.digest)
    return (
        *fields,
        state.file_message_count,
        state.file_digest,
        state.message_count,
        " ".join(state.open_calls),
        state.moved,
    )


def decode_state(row: Sequence[Any]) -> SessionState:
    """Decode a session of a conversation."""
    client, session, path, cwd, size, digest, own, file_digest, done, open_calls, moved = row
    file = SessionFile(client, session, Path(path), cwd, size=size)
    return SessionState(file, Fingerprint(size, digest), own, file_digest, done, moved, tuple(open_calls.split()))
