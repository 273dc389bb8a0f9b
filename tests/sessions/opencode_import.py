"""In place of `opencode import FILE`, for tests: adds a session, or new messages of one, to the client's database."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id, parent_id, slug, directory, title, version,
  metadata, model, time_created, time_updated);
CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id, time_created, data);
CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id, session_id, data);
"""


def main(file: Path, data: Path) -> None:
    value = json.loads(file.read_text())
    info, path = value["info"], data / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(_SCHEMA)
        metadata = json.dumps(info["metadata"]) if "metadata" in info else None
        facts = (info["slug"], info["directory"], info["title"], info["version"], metadata)
        row = (info["id"], "global", None, *facts, None, info["time"]["created"], info["time"]["updated"])
        database.execute(f"INSERT OR IGNORE INTO session VALUES ({', '.join('?' * 11)})", row)
        for message in value["messages"]:
            head = {key: item for key, item in message["info"].items() if key not in ("id", "sessionID")}
            names = message["info"]["id"], info["id"], head["time"]["created"]
            database.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?)", (*names, json.dumps(head)))
            for part in message["parts"]:
                rest = {key: item for key, item in part.items() if key not in ("id", "sessionID", "messageID")}
                names = part["id"], part["messageID"], info["id"]
                database.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?)", (*names, json.dumps(rest)))
    print("Imported session:", info["id"])


if __name__ == "__main__":
    main(Path(sys.argv[2]), Path(os.environ["XDG_DATA_HOME"]))
