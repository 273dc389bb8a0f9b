"""opencode: its database, its sessions, and the command that resumes them.

Sessions are in `opencode/opencode.db` below `~/.local/share` or `XDG_DATA_HOME`, which segue only reads. They are
written by the client's own `opencode import`, which adds a session, or new messages to one, and needs the program.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import string
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from segue.canonical.blocks import Block, Media
from segue.canonical.json import encode_json, parse_json
from segue.errors import InputError
from segue.sessions import files
from segue.sessions.client import Client, Draft, Place, SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.neutral import API, find_obstacle, normalize_unit, object_of, objects_of, string_of
from segue.sessions.opencode import reader, writer
from segue.sessions.parsed_log import Line, ParsedLog

_SECONDS = 60
_SESSIONS = (
    "SELECT id, directory, title, version, time_created, time_updated, model, slug, project_id, metadata FROM session"
)
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"
_LETTERS = string.digits + string.ascii_letters


class Opencode(Client):
    name = "opencode"
    kind = "opencode"
    title = "opencode"
    api = API
    program = "opencode"
    tested = ("1.18.33",)
    # The client loads the metadata of all sessions to list them; `opencode import` does not change them later.
    max_seal = 256 * 2**10

    def is_line(self, line: Line) -> bool:
        return reader.is_line(line)

    def parse(self, lines: list[Line]) -> ParsedLog:
        return reader.parse_log(lines)

    def find(self, place: Place, cwd: Path | None) -> Iterator[SessionFile]:
        path = _database(place)
        if not path.exists():
            return
        with closing(_connect(path)) as connection:
            rows = connection.execute(f"{_SESSIONS} WHERE parent_id IS NULL").fetchall()
        for row in rows:
            if cwd is None or row["directory"] == str(cwd):
                model = object_of(parse_json(row["model"].encode())[0]) if row["model"] else {}
                at, title = row["time_updated"] * 1000, row["title"]
                yield SessionFile(
                    "opencode", row["id"], path, row["directory"], at, 0, title, string_of(model.get("id"))
                )

    def describe(self, path: Path) -> SessionFile:
        """Return a session by a file of `opencode export`."""
        value = _decode(files.read(path))
        info = value["info"]
        updated = object_of(info.get("time")).get("updated")
        at = updated * 1000 if isinstance(updated, int) else 0
        model = reader.find_model(objects_of(value["messages"]))[1]
        return SessionFile("opencode", info["id"], path, info.get("directory"), at, 0, info.get("title"), model)

    def new_id(self, now: int) -> str:
        """Return an id that is smaller for a later time, by which the client orders sessions."""
        value = ~(now // 1000 * 4096) & (1 << 48) - 1
        return f"ses_{value:012x}{''.join(secrets.choice(_LETTERS) for _ in range(14))}"

    def locate(self, place: Place, draft: Draft) -> Path:
        return _database(place)

    def encode(self, place: Place, draft: Draft) -> bytes:
        return writer.encode(draft, self.tested[-1], _read_model(place))

    def encode_more(self, data: bytes, draft: Draft) -> bytes:
        return writer.encode_more(_decode(data), draft, ("segue", draft.model or "moved"))

    def join(self, before: bytes, more: bytes) -> bytes:
        if not before:
            return more
        first, second = _decode(before), _decode(more)
        return encode_json({**first, "messages": [*first["messages"], *second["messages"]]})

    def copy(self, data: bytes, draft: Draft) -> bytes:
        return writer.copy(_decode(data), draft)

    def resume(self, session: SessionFile) -> tuple[str, ...]:
        return (self.program, "--session", session.id)

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        unit = normalize_unit(value)
        (block,) = unit["content"]
        if block["type"] == "tool_result":
            others = [part for part in block["content"] if part["type"] != "text"]
            text = "\n".join(part["text"] for part in block["content"] if part["type"] == "text")
            block["content"] = [*([{"type": "text", "text": text}] if text else []), *others]
        return unit

    def find_obstacle(self, block: Block, source: str) -> str | None:
        if isinstance(block, Media) and block.kind != "image" and block.mime != "application/pdf":
            return "files other than pictures and PDF removed: opencode has no place for them"
        return find_obstacle(block)

    def is_open(self, place: Place, session: SessionFile) -> bool:
        """Return False: the client does not record which sessions are open."""
        return False

    def load(self, place: Place, session: SessionFile) -> bytes:
        if session.path != _database(place):
            return files.read(session.path)
        if not session.path.exists():
            raise InputError("does not exist", path=str(session.path))
        with closing(_connect(session.path)) as connection:
            row = connection.execute(f"{_SESSIONS} WHERE id = ?", (session.id,)).fetchone()
            if row is None:
                raise InputError(f"has no session {session.id}", path=str(session.path))
            messages = connection.execute(_MESSAGES, (session.id,)).fetchall()
            parts = connection.execute(_PARTS, (session.id,)).fetchall()
        return encode_json({"info": _info(row), "messages": list(_messages(session.id, messages, parts))})

    def create(self, place: Place, draft: Draft, data: bytes) -> SessionFile:
        _import(place, self.program, draft.cwd, data)
        return SessionFile("opencode", draft.id, _database(place), draft.cwd, draft.now, 0, draft.title, draft.model)

    def extend(self, place: Place, session: SessionFile, expected: Fingerprint, data: bytes) -> None:
        if not expected.matches(self.load(place, session)):
            raise InputError("was changed by another program; nothing was written", path=session.id)
        _import(place, self.program, session.cwd or ".", data)

    def remove(self, place: Place, session: SessionFile) -> None:
        """Remove a session that was just created, with the client's own command."""
        _run(place, self.program, session.cwd or ".", "session", "delete", session.id)


def _database(place: Place) -> Path:
    return place.folder("XDG_DATA_HOME", ".local", "share") / "opencode" / "opencode.db"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def _info(row: sqlite3.Row) -> dict[str, Any]:
    metadata = object_of(parse_json(row["metadata"].encode())[0]) if row["metadata"] else {}
    return {
        "id": row["id"],
        "slug": row["slug"],
        "projectID": row["project_id"],
        "directory": row["directory"],
        "title": row["title"],
        "version": row["version"],
        **({"metadata": metadata} if metadata else {}),
        "time": {"created": row["time_created"], "updated": row["time_updated"]},
    }


def _messages(id: str, messages: list[sqlite3.Row], parts: list[sqlite3.Row]) -> Iterator[dict[str, Any]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in parts:
        owner = {"id": row["id"], "sessionID": id, "messageID": row["message_id"]}
        grouped.setdefault(row["message_id"], []).append({**object_of(parse_json(row["data"].encode())[0]), **owner})
    for row in messages:
        info = {**object_of(parse_json(row["data"].encode())[0]), "id": row["id"], "sessionID": id}
        yield {"info": info, "parts": grouped.get(row["id"], [])}


def _decode(data: bytes) -> dict[str, Any]:
    value = object_of(parse_json(data)[0])
    if not reader.is_line(Line(1, value)):
        raise InputError("not a session of opencode")
    return value


def _read_model(place: Place) -> tuple[str, str]:
    """Return the provider and the model of the client's settings."""
    folder = place.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    try:
        settings = object_of(parse_json((folder / "opencode.json").read_bytes())[0])
    except (OSError, InputError):
        settings = {}
    provider, _, model = str(settings.get("model", "")).partition("/")
    return (provider, model) if model else ("segue", "moved")


def _import(place: Place, program: str, cwd: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "session.json"
        files.create(file, data)
        output = _run(place, program, cwd, "import", str(file))
    if "Imported session" not in output:
        raise InputError(f"opencode import failed: {output.strip()[-300:]}")


def _run(place: Place, program: str, cwd: str, *arguments: str) -> str:
    environ = {**os.environ, **place.environ}
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None:
        raise InputError("opencode is not installed, and its sessions are written by it: npm install -g opencode-ai")
    command = [found, *arguments, "--pure"]
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"opencode can't be run: {error}") from None
    return (done.stdout + done.stderr).decode("utf-8", "replace")
