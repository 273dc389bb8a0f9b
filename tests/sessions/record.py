"""Records sessions of real clients for the tests: `python -m tests.sessions.record NODE_MODULES CLIENT…`.

For each client two files: `CLIENT.jsonl` is a session that it made itself, killed during a command; `CLIENT.more.jsonl`
has the lines that it added to a session that was moved to it. For opencode these are `opencode.json`, which is one
value, and `opencode.more.json` with the messages that it added. Paths of the machine are replaced, and long texts, such
as the clients' instructions, are cut.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from segue.sessions.claude import encode_folder
from segue.sessions.client import ClientHome
from segue.sessions.registry import CLIENTS
from segue.sessions.session_search import list_sessions
from tests.clients.moves import MoveRun
from tests.clients.run import Installation

FOLDER = Path(__file__).parent.parent / "data" / "sessions"
HOME, WORK = "/home/me", "/home/me/project"
_MAX_TEXT = 300
_WHOLE = frozenset({"data", "base64", "image_url", "signature", "encrypted_content"})
_LINES = frozenset({"api-request", "api-request-blob", "api-request-shape"})
_SYSTEM = re.compile(r"Linux \d[\w.-]+")


def record(client: str, installed: Installation, folder: Path) -> None:
    """Record the session of a client, and what it adds to a session of another one."""
    other = "codex" if client == "claude" else "claude"
    first = MoveRun(client, other, installed, folder / "first")
    _raise(list(first.make_session(client)))
    _write(client, "", _load(client, folder / "first"), folder / "first")
    second = MoveRun(other, client, installed, folder / "second")
    _raise(list(second.make_session(other)))
    _raise(list(second.move(other, client)))
    data = _load(client, folder / "second")
    added = _find_added(data) if client == "opencode" else data[second.written :]
    _write(client, ".more", added, folder / "second")


def _find_added(data: bytes) -> bytes:
    """Return the messages of opencode from the prompt on with which it resumed the session."""
    value = json.loads(data)
    start = next(number for number, message in enumerate(value["messages"]) if "TASK-leg1" in json.dumps(message))
    return json.dumps({"messages": value["messages"][start:]}).encode()


def _raise(problems: list[str]) -> None:
    if problems:
        raise SystemExit("\n".join(problems))


def _load(client: str, folder: Path) -> bytes:
    home = ClientHome(folder / "home", {})
    return CLIENTS[client].load(home, list_sessions([CLIENTS[client]], home, folder / "project")[0])


def _write(client: str, kind: str, data: bytes, folder: Path) -> None:
    name = f"{client}{kind}.{'json' if client == 'opencode' else 'jsonl'}"
    text = data.decode()
    work, home = str(folder / "project"), str(folder / "home")
    for old, new in ((work, WORK), (encode_folder(work), encode_folder(WORK)), (home, HOME)):
        text = text.replace(old, new)
    lines = [json.loads(line) for line in _SYSTEM.sub("Linux", text).splitlines() if line.strip()]
    kept = [_cut(line) for line in lines if line.get("type") not in _LINES]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / name).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))


def _cut(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _cut(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, key) for item in value[:20]]
    is_long = isinstance(value, str) and len(value) > _MAX_TEXT and key not in _WHOLE
    return f"{value[:60]}…" if is_long else value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        for each in sys.argv[2:]:
            record(each, Installation(Path(sys.argv[1])), Path(name) / each)
