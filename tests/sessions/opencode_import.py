"""In place of `opencode import FILE`, for tests: adds a session, or new messages of one, to the client's database.

It rejects what the client rejects, and drops the keys that the client's schema does not have. A session is of the
folder in which the command runs.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

_TABLES = """
PRAGMA foreign_keys = ON;
CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL,
  directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, metadata TEXT, revert TEXT, agent TEXT,
  model TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_archived INTEGER);
CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES session (id),
  time_created INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL REFERENCES message (id),
  session_id TEXT NOT NULL, data TEXT NOT NULL);
"""

Check = Callable[[Any, str], Any]
"""Returns a value without unknown keys; `ValueError` names the place of one that the client rejects."""


def fail(expected: str, path: str) -> Any:
    raise ValueError(f"Expected {expected} at {path}")


def text(value: Any, path: str) -> Any:
    return value if isinstance(value, str) else fail("string", path)


def flag(value: Any, path: str) -> Any:
    return value if isinstance(value, bool) else fail("boolean", path)


def number(value: Any, path: str) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else fail("number", path)


def count(value: Any, path: str) -> Any:
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) and value >= 0
    return value if is_count else fail("integer", path)


def mapping(value: Any, path: str) -> Any:
    return value if isinstance(value, dict) else fail("object", path)


def anything(value: Any, path: str) -> Any:
    return value


def name(prefix: str) -> Check:
    return lambda value, path: value if text(value, path).startswith(prefix) else fail(f"{prefix}…", path)


def literal(*values: str) -> Check:
    return lambda value, path: value if value in values else fail(" or ".join(values), path)


def array(item: Check) -> Check:
    return lambda value, path: (
        [item(each, f"{path}[{at}]") for at, each in enumerate(value)]
        if isinstance(value, list)
        else fail("array", path)
    )


def struct(**fields: Check) -> Check:
    """Check an object; a name that ends with `_` is optional."""

    def check(value: Any, path: str) -> Any:
        mapping(value, path)
        found: dict[str, Any] = {}
        for field, check_field in fields.items():
            key = field.rstrip("_")
            if key in value:
                found[key] = check_field(value[key], f"{path}.{key}")
            elif not field.endswith("_"):
                fail("a value", f"{path}.{key}")
        # In the order of the file, as the client keeps it.
        return {key: found[key] for key in value if key in found}

    return check


def union(key: str, **members: Check) -> Check:
    """Check an object by the value of a key; names are written with `_` in place of `-`."""

    def check(value: Any, path: str) -> Any:
        member = members.get(str(mapping(value, path).get(key)).replace("-", "_"))
        return member(value, path) if member is not None else fail(" | ".join(members), f"{path}.{key}")

    return check


_SESSION, _MESSAGE, _PART = name("ses"), name("msg"), name("prt")
_TOKENS = struct(total_=number, input=number, output=number, reasoning=number, cache=struct(read=number, write=number))
_MODEL = struct(providerID=text, modelID=text, variant_=text)
_API_ERROR = struct(
    message=text, statusCode_=count, isRetryable=flag, responseHeaders_=mapping, responseBody_=text, metadata_=mapping
)
_MESSAGE_ERROR = struct(message=text)
_ERROR = union(
    "name",
    **{
        error: struct(name=text, data=data)
        for error, data in {
            "ProviderAuthError": struct(providerID=text, message=text),
            "UnknownError": struct(message=text, ref_=text),
            "MessageOutputLengthError": mapping,
            "MessageAbortedError": _MESSAGE_ERROR,
            "StructuredOutputError": struct(message=text, retries=count),
            "ContextOverflowError": struct(message=text, responseBody_=text),
            "ContentFilterError": _MESSAGE_ERROR,
            "APIError": _API_ERROR,
        }.items()
    },
)
_DIFF = struct(
    file_=text, patch_=text, additions=number, deletions=number, status_=literal("added", "deleted", "modified")
)
_INFO = union(
    "role",
    user=struct(
        id=_MESSAGE,
        sessionID=_SESSION,
        role=text,
        time=struct(created=number),
        format_=mapping,
        summary_=struct(title_=text, body_=text, diffs=array(_DIFF)),
        agent=text,
        model=_MODEL,
        system_=text,
        tools_=mapping,
    ),
    assistant=struct(
        id=_MESSAGE,
        sessionID=_SESSION,
        role=text,
        time=struct(created=count, completed_=count),
        error_=_ERROR,
        parentID=_MESSAGE,
        modelID=text,
        providerID=text,
        mode=text,
        agent=text,
        path=struct(cwd=text, root=text),
        summary_=flag,
        cost=number,
        tokens=_TOKENS,
        structured_=anything,
        variant_=text,
        finish_=text,
    ),
)


def part(**fields: Check) -> Check:
    return struct(id=_PART, sessionID=_SESSION, messageID=_MESSAGE, type=text, **fields)


_SOURCE_TEXT = struct(value=text, start=number, end=number)
_SOURCE = union(
    "type",
    file=struct(type=text, text=_SOURCE_TEXT, path=text),
    symbol=struct(type=text, text=_SOURCE_TEXT, path=text, range=mapping, name=text, kind=count),
    resource=struct(type=text, text=_SOURCE_TEXT, clientName=text, uri=text),
)
_FILE = part(mime=text, filename_=text, url=text, source_=_SOURCE)
_STATE = union(
    "status",
    pending=struct(status=text, input=mapping, raw=text),
    running=struct(status=text, input=mapping, title_=text, metadata_=mapping, time=struct(start=count)),
    completed=struct(
        status=text,
        input=mapping,
        output=text,
        title=text,
        metadata=mapping,
        time=struct(start=count, end=count, compacted_=count),
        attachments_=array(_FILE),
    ),
    error=struct(status=text, input=mapping, error=text, metadata_=mapping, time=struct(start=count, end=count)),
)
_SPAN = struct(start=count, end_=count)
_CHECK_PART = union(
    "type",
    text=part(text=text, synthetic_=flag, ignored_=flag, time_=_SPAN, metadata_=mapping),
    subtask=part(
        prompt=text, description=text, agent=text, model_=struct(providerID=text, modelID=text), command_=text
    ),
    reasoning=part(text=text, metadata_=mapping, time=_SPAN),
    file=_FILE,
    tool=part(callID=text, tool=text, state=_STATE, metadata_=mapping),
    step_start=part(snapshot_=text),
    step_finish=part(reason=text, snapshot_=text, cost=number, tokens=_TOKENS),
    snapshot=part(snapshot=text),
    patch=part(hash=text, files=array(text)),
    agent=part(name=text, source_=struct(value=text, start=count, end=count)),
    retry=part(attempt=count, error=struct(name=literal("APIError"), data=_API_ERROR), time=struct(created=count)),
    compaction=part(auto=flag, overflow_=flag, tail_start_id_=_MESSAGE),
)
_CHECK_SESSION = struct(
    id=_SESSION,
    slug=text,
    parentID_=_SESSION,
    title=text,
    agent_=text,
    model_=struct(id=text, providerID=text, variant_=text),
    version=text,
    metadata_=mapping,
    time=struct(created=count, updated=count, compacting_=count, archived_=number),
    revert_=struct(messageID=_MESSAGE, partID_=_PART, snapshot_=text, diff_=text),
)


def main(file: Path, data: Path, directory: str) -> None:
    """Import a file. As with the client, what comes before a message that is rejected stays in the database."""
    value = json.loads(file.read_text())
    path = data / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)
        try:
            _import(database, value, directory)
        finally:
            database.commit()
    print("Imported session:", value["info"]["id"])


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _import(database: sqlite3.Connection, value: Any, directory: str) -> None:
    info = _CHECK_SESSION(value["info"], "info")
    values = {key: _encode(info[key]) if key in info else None for key in ("metadata", "revert", "model")}
    row = (info["id"], "global", info.get("parentID"), info["slug"], directory, info["title"], info["version"])
    times = (info["time"]["created"], info["time"]["updated"], info["time"].get("archived"))
    row = (*row, values["metadata"], values["revert"], info.get("agent"), values["model"], *times)
    database.execute(
        f"INSERT INTO session VALUES ({', '.join('?' * len(row))}) "
        "ON CONFLICT (id) DO UPDATE SET directory = excluded.directory",
        row,
    )
    for at, message in enumerate(value["messages"]):
        head = _INFO(message["info"], f"messages[{at}].info")
        rest = {key: item for key, item in head.items() if key not in ("id", "sessionID")}
        names = head["id"], info["id"], head["time"]["created"]
        database.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?)", (*names, _encode(rest)))
        for place, item in enumerate(message["parts"]):
            found = _CHECK_PART(item, f"messages[{at}].parts[{place}]")
            rest = {key: item for key, item in found.items() if key not in ("id", "sessionID", "messageID")}
            names = found["id"], found["messageID"], info["id"]
            query = "INSERT INTO part VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
            database.execute(query, (*names, _encode(rest)))


if __name__ == "__main__":
    try:
        if sys.argv[1] == "import":
            main(Path(sys.argv[2]), Path(os.environ["XDG_DATA_HOME"]), str(Path.cwd()))
    except (ValueError, KeyError, sqlite3.Error) as error:
        raise SystemExit(f"Error: {error}") from None
