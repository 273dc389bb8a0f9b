"""opencode's database, which is only read: its sessions, with their messages and parts.

Sessions of subagents are left out: their result is in the session that started them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.client import ClientHome
from segue.sessions.values import object_of

# Metadata may be long; it is not read to list sessions.
_LISTED = ("id", "directory", "title", "model", "time_updated", "time_archived")
_ALL = (*_LISTED, "slug", "project_id", "version", "time_created", "agent", "metadata", "revert")
_SIZES = """
SELECT session_id, SUM(LENGTH(CAST(data AS BLOB))) AS size FROM {table}
WHERE session_id IN (SELECT id FROM session WHERE {condition}) GROUP BY session_id
"""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_LAST_MESSAGE = "SELECT data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1"
_PARTS = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"

Row = dict[str, Any]


def locate_database(home: ClientHome) -> Path:
    """Return the absolute path of the database."""
    folder = home.folder("XDG_DATA_HOME", ".local", "share").absolute() / "opencode"
    return folder / (home.environ.get("OPENCODE_DB") or "opencode.db")


class Database:
    """The database of a path; `InputError` if it can't be read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def list_sessions(self, cwd: Path | None) -> list[tuple[Row, int]]:
        """Return the rows of the sessions of a folder, or of all, with their sizes. Archived ones are left out."""
        condition, values = ("directory = ?", [str(cwd)]) if cwd is not None else ("parent_id IS NULL", [])
        sizes: Counter[str] = Counter()
        with self._open() as connection:
            for table in ("message", "part"):
                for row in connection.execute(_SIZES.format(table=table, condition=condition), values):
                    sizes[row["session_id"]] += row["size"]
            rows = _select_sessions(connection, _LISTED, condition, *values)
        return [(row, sizes[row["id"]]) for row in rows if row["time_archived"] is None]

    def load_session(self, id: str) -> Row:
        """Return a session in the form of `opencode export`."""
        with self._open() as connection:
            rows = _select_sessions(connection, _ALL, "id = ?", id)
            stored_messages = connection.execute(_MESSAGES, (id,)).fetchall()
            stored_parts = connection.execute(_PARTS, (id,)).fetchall()
        if not rows:
            raise InputError(f"has no session {id}", path=str(self._path))
        parts: dict[str, list[Row]] = {}
        for row in stored_parts:
            owner = {"id": row["id"], "sessionID": id, "messageID": row["message_id"]}
            parts.setdefault(row["message_id"], []).append({**parse_object(row["data"]), **owner})
        messages = [
            {"info": {**parse_object(row["data"]), "id": row["id"], "sessionID": id}, "parts": parts.get(row["id"], [])}
            for row in stored_messages
        ]
        return {"info": _info(rows[0]), "messages": messages}

    def is_busy(self, id: str) -> bool:
        """Return whether a reply is missing after the last message of a session: it is a prompt, or did not end, or has
        calls whose results were not sent."""
        with self._open() as connection:
            row = connection.execute(_LAST_MESSAGE, (id,)).fetchone()
        last = parse_object(row["data"]) if row is not None else {"time": {"completed": 0}}
        return "completed" not in object_of(last.get("time")) or last.get("finish") == "tool-calls"

    def has_revert(self, id: str) -> bool:
        """Return whether the user took back messages of a session, which the next prompt removes."""
        with self._open() as connection:
            return any(row["revert"] for row in _select_sessions(connection, ("revert",), "id = ?", id))

    def list_models(self) -> list[Row]:
        """Return the models of the sessions, the last used first."""
        with self._open() as connection:
            rows = _select_sessions(connection, _LISTED, "parent_id IS NULL")
        rows.sort(key=updated_at, reverse=True)
        return [parse_model(row) for row in rows]

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """Open the database for reads that see the same state of it."""
        if not self._path.exists():
            raise InputError("does not exist", path=str(self._path))
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("BEGIN")
                yield connection
        except sqlite3.Error as error:
            raise InputError(f"can't be read: {error}", path=str(self._path)) from None


def _select_sessions(
    connection: sqlite3.Connection, columns: tuple[str, ...], condition: str, *values: str
) -> list[Row]:
    """Return columns of sessions; None for those that the database of an older version does not have."""
    existing = {row["name"] for row in connection.execute("PRAGMA table_info(session)")}
    selected = ", ".join(["id", *(name for name in columns if name in existing)])
    query = f"SELECT {selected} FROM session WHERE parent_id IS NULL AND {condition}"
    return [dict.fromkeys(columns) | dict(row) for row in connection.execute(query, values)]


def parse_object(text: object) -> Row:
    """Parse a column with an object; empty if there is none."""
    return object_of(parse_json(text)[0]) if text else {}


def updated_at(row: Row) -> int:
    """Return when a session was updated, in milliseconds since 1970; 0 if that is damaged."""
    at = row["time_updated"]
    return at if isinstance(at, int) else 0


def parse_model(row: Row) -> Row:
    """Return the model of a session; empty if there is none, or if it can't be parsed."""
    try:
        return parse_object(row["model"])
    except InputError:
        return {}


def _info(row: Row) -> Row:
    return {
        "id": row["id"],
        "slug": row["slug"],
        "projectID": row["project_id"],
        "directory": row["directory"],
        "title": row["title"],
        **({"agent": row["agent"]} if row["agent"] else {}),
        **{key: value for key in ("model", "metadata", "revert") if (value := parse_object(row[key]))},
        "version": row["version"],
        "time": {"created": row["time_created"], "updated": row["time_updated"]},
    }
