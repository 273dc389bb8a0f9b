"""`Client`: finds, reads and writes the sessions of a coding client; one subclass for each client.

A session is read into a body of the client's own API, and written from `SessionItem`s of that API. No client overwrites
a file that it did not create: a session is new, or grows at its end.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any, ClassVar, Protocol
from uuid import UUID, uuid4

from msgspec import Struct

from segue.canonical.blocks import Block
from segue.sessions import files
from segue.sessions.files import Fingerprint
from segue.sessions.parsed_log import LogLine, ParsedLog

CANONICAL = "segue"
"""In place of an API: items are messages in their canonical form."""
REASONING_REMOVED = "reasoning of another client removed; it is restored when the session is moved back"
"""A line of the report of a move."""

MARK_KEY = "segue"
"""Marks a message or text that segue added."""
PARENT_KEY = "segueParent"
"""Names the session that this one was moved from, as `CLIENT:ID`."""
SIGNED_COPY_KEY = "segueSeal"
"""Has a signed copy of the conversation that the session is from."""


class ClientHome(Struct, frozen=True):
    """Where the clients of a user keep their files: the home folder, the variables, and the platform (as in `sys`).

    `store` is the location of segue's own store."""

    path: Path
    environ: Mapping[str, str] = {}
    platform: str = "linux"
    store: str = ""

    def folder(self, variable: str, *default: str) -> Path:
        """Return the folder named by a variable; without it, a folder below the home."""
        named = self.environ.get(variable)
        if not named:
            return self.path.joinpath(*default)
        return self.path / named[2:] if named.startswith("~/") else Path(named)

    def is_same_folder(self, recorded: str | None, cwd: str) -> bool:
        """Return whether a path that a client recorded is this folder. On Windows, case and slashes do not matter."""
        if recorded is None or self.platform != "win32":
            return recorded == cwd
        return PureWindowsPath(recorded.removeprefix("\\\\?\\")) == PureWindowsPath(cwd)


class SessionFile(Struct, frozen=True):
    """A session that was found. `updated` is in microseconds since 1970; `title` and `model` are None if unknown.

    `messages` is the number of messages of a session that has no file of its own, and no size."""

    client: str
    id: str
    path: Path
    cwd: str | None = None
    updated: int = 0
    size: int = 0
    title: str | None = None
    model: str | None = None
    messages: int | None = None


class SessionItem(Struct, frozen=True):
    """A piece of a session in the client's API: a message with one block, or an item. `synthetic`: segue added it."""

    value: Mapping[str, Any]
    at: int | None = None
    synthetic: bool = False


class NewSession(Struct, frozen=True):
    """What is written: the items of a new session, or those added to one. `now` is in microseconds since 1970.

    `model` is the client's own last model, if any, and `provider` that of it. `parent` names the session that this one
    continues, as `CLIENT:ID`. `signed_copy` is written with the items, under the key `SIGNED_COPY_KEY`.
    """

    id: str
    items: tuple[SessionItem, ...]
    cwd: str
    now: int
    title: str | None = None
    model: str | None = None
    provider: str | None = None
    git_branch: str | None = None
    parent: str | None = None
    signed_copy: str | None = None


class Reader(Protocol):
    """A module that reads the sessions of a client."""

    def is_line(self, line: LogLine) -> bool:
        """Return whether a line is from a session of this client."""
        ...

    def parse_log(self, lines: list[LogLine]) -> ParsedLog:
        """Return the body with which the client would continue; `InputError` if there are no messages."""
        ...


class Writer(Protocol):
    """Writes the sessions of a client."""

    def encode(self, draft: NewSession) -> bytes:
        """Return the content of a new session."""
        ...

    def encode_more(self, data: bytes, draft: NewSession) -> bytes:
        """Return the bytes that add the draft's items to a session with this content."""
        ...

    def copy(self, data: bytes, draft: NewSession) -> bytes:
        """Return a copy of a session's content with the id and the parent of the draft."""
        ...


class Client(ABC):
    """A coding client, and what reads and writes its sessions.

    `api` is the API whose bodies `reader` returns and whose items `writer` takes.

    `resume_arguments` are those of `program` before the id of a session that it resumes.
    `kind` is the `ParsedLog.kind` of its sessions; `tested_versions` are those with which moves were tested.
    `max_signed_copy` is the size of the largest signed copy that its sessions have room for.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    title: ClassVar[str]
    api: ClassVar[str]
    program: ClassVar[str]
    resume_arguments: ClassVar[tuple[str, ...]]
    reader: ClassVar[Reader]
    writer: ClassVar[Writer]
    tested_versions: ClassVar[tuple[str, ...]]
    max_signed_copy: ClassVar[int] = 8 * 2**20

    def is_file_name(self, name: str) -> bool:
        """Return whether a file is a session of this client by its name: one whose content does not show it."""
        return False

    def parse_bytes(self, data: bytes) -> ParsedLog | None:
        """Parse a session that is one JSON value; return None for sessions of lines, which `reader` parses."""
        return None

    @abstractmethod
    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        """Yield the sessions of a folder, or all sessions, in no order."""

    @abstractmethod
    def describe(self, path: Path) -> SessionFile:
        """Return a session by its file; `InputError` if it is not a session of this client."""

    def new_id(self, now: int) -> str:
        """Return the id of a new session, `now` in microseconds since 1970; by default a random UUID."""
        return str(uuid4())

    @abstractmethod
    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        """Return the path for a new session; nothing is created."""

    def complete(self, home: ClientHome, draft: NewSession) -> NewSession:
        """Return the draft of a new session with what the client's settings say about the model."""
        return draft

    def join(self, before: bytes, more: bytes) -> bytes:
        """Return the content of a session after the bytes of `Writer.encode_more` were appended."""
        return before + more

    def find_rest(self, written: bytes, content: bytes) -> bytes:
        """Return what `extend` has to add to a session that was written in part; empty if it is not a part of it."""
        return content[len(written) :] if content.startswith(written) else b""

    def is_same(self, recorded: bytes, content: bytes) -> bool:
        """Return whether a session has only another form than when it was recorded."""
        return False

    def resume(self, session: SessionFile) -> tuple[str, ...]:
        """Return the command that resumes a session."""
        return (self.program, *self.resume_arguments, session.id)

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an item in the form in which it is read back after a write, for comparison."""
        return value

    def find_unsupported(self, block: Block, source: str) -> str | None:
        """Return why a session has no place for a block, as a line of the report; None if it has one.

        `source` is the client whose session had the block first.
        """
        return None

    def find_warnings(self, home: ClientHome, cwd: str) -> tuple[str, ...]:
        """Return warnings about a new session in this folder, for the report."""
        return ()

    def read_servers(self, home: ClientHome, cwd: str) -> tuple[str, ...]:
        """Return the names of the user's MCP servers, if the names of their tools do not show where they end."""
        return ()

    def simplify(self, block: Block) -> Block:
        """Return a block in the form that sessions have for it."""
        return block

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        """Return whether a running client has this session open; False if that can't be determined."""
        return files.is_open_file(session.path)

    def load(self, home: ClientHome, session: SessionFile) -> bytes:
        """Return the content of a session."""
        return files.read(session.path)

    def create(self, home: ClientHome, draft: NewSession, data: bytes) -> SessionFile:
        """Write a new session."""
        path = self.locate(home, draft)
        files.create(path, data)
        return SessionFile(self.name, draft.id, path, draft.cwd, draft.now, len(data), draft.title, draft.model)

    def extend(self, home: ClientHome, session: SessionFile, expected: Fingerprint, data: bytes) -> None:
        """Append to a session that has not changed since its fingerprint was taken."""
        files.append(session.path, expected, data)

    def remove(self, home: ClientHome, session: SessionFile) -> None:
        """Remove a session that was just created."""
        session.path.unlink(missing_ok=True)


def time_ordered_id(now: int) -> str:
    """Return a UUID of version 7, by which clients order sessions."""
    value = (now // 1000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=value & ~(0x3 << 62) | 0x2 << 62))
