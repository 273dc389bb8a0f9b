"""opencode: its database, its sessions, and the command that resumes them.

Sessions are in `opencode/opencode.db` below `~/.local/share` or `XDG_DATA_HOME`, which segue only reads. They are
written by the client's own `opencode import`, which adds a session, or new messages to one, and needs the program.
Sessions of subagents are not listed: their result is in the session that started them.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import string
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from segue.canonical.blocks import Media
from segue.canonical.json import encode_json
from segue.errors import InputError
from segue.sessions import files
from segue.sessions.any_provider import AnyProviderClient, normalize_unit, objects_of
from segue.sessions.client import ClientHome, NewSession, SessionFile
from segue.sessions.files import Fingerprint
from segue.sessions.launch import MAX_OUTPUT, MODEL, PROVIDER, Launch, LaunchContext, Program
from segue.sessions.opencode import reader, writer
from segue.sessions.opencode.database import Database, locate_database, parse_model, updated_at
from segue.sessions.opencode.reader import decode
from segue.sessions.opencode.settings import UNKNOWN_MODEL, find_default_model, read_servers
from segue.sessions.values import object_of, string_of

_SECONDS = 300
_LETTERS = string.digits + string.ascii_letters
_NO_MODEL = (
    "opencode has no default model: choose one in opencode, pass --model PROVIDER/MODEL to opencode run, "
    "or start it with segue with opencode"
)


class Opencode(AnyProviderClient, Program):
    name = "opencode"
    kind = "opencode"
    title = "opencode"
    program = "opencode"
    resume_arguments = ("--session",)
    reader = reader
    writer = writer
    tested_versions = (writer.VERSION,)
    package = "opencode-ai"
    buffer_tool_calls = True
    # The client loads the metadata of all sessions to list them; `opencode import` does not change them later.
    max_signed_copy = 256 * 2**10

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        path = locate_database(home)
        try:
            found = Database(path).list_sessions(cwd)
        except InputError:
            # A database of another version must not hide the sessions of other clients.
            return
        for row, size in found:
            model = string_of(parse_model(row).get("id"))
            at = updated_at(row) * 1000
            yield SessionFile("opencode", row["id"], path, row["directory"], at, size, row["title"], model)

    def describe(self, path: Path) -> SessionFile:
        """Return a session by a file of `opencode export`."""
        data = files.read(path)
        try:
            value = decode(data)
        except InputError as error:
            raise InputError(error.message, path=str(path)) from None
        info = value["info"]
        updated = object_of(info.get("time")).get("updated")
        at = updated * 1000 if isinstance(updated, int) else 0
        model = reader.find_model(objects_of(value["messages"]))[1]
        return SessionFile("opencode", info["id"], path, info.get("directory"), at, len(data), info.get("title"), model)

    def new_id(self, now: int) -> str:
        """Return an id that is smaller for a later time, by which the client orders sessions."""
        value = ~(now // 1000 * 4096) & (1 << 48) - 1
        return f"ses_{value:012x}{''.join(secrets.choice(_LETTERS) for _ in range(14))}"

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        return locate_database(home)

    def complete(self, home: ClientHome, draft: NewSession) -> NewSession:
        provider, model = find_default_model(home, draft.cwd) or UNKNOWN_MODEL
        return msgspec.structs.replace(draft, provider=provider, model=model)

    def join(self, before: bytes, more: bytes) -> bytes:
        if not before:
            return more
        first, second = decode(before), decode(more)
        return encode_json({**first, "messages": [*first["messages"], *second["messages"]]})

    def find_rest(self, written: bytes, content: bytes) -> bytes:
        """Return the whole session if messages or parts are missing: an import adds those alone."""
        return content if _list_ids(written) < _list_ids(content) else b""

    def launch(self, context: LaunchContext) -> Launch:
        model = {
            "name": context.model,
            "tool_call": True,
            "attachment": True,
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "limit": {"context": context.context, "output": MAX_OUTPUT},
        }
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": PROVIDER,
            "options": {"baseURL": f"{context.url}/v1", "apiKey": context.key},
            "models": dict.fromkeys((MODEL, UNKNOWN_MODEL[1]), model),
        }
        name = f"{PROVIDER}/{MODEL}"
        # The model of an agent takes precedence over that of the session.
        agents = {agent: {"model": name} for agent in ("build", "plan")}
        content = {"provider": {PROVIDER: provider}, "model": name, "agent": agents}
        return Launch(variables={"OPENCODE_CONFIG_CONTENT": json.dumps(content)})

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        item = normalize_unit(value)
        (block,) = item["content"]
        if block["type"] == "tool_result":
            others = [part for part in block["content"] if part["type"] != "text"]
            text = "\n".join(part["text"] for part in block["content"] if part["type"] == "text")
            block["content"] = [*([{"type": "text", "text": text}] if text else []), *others]
            if others:
                block.pop("is_error", None)
        return item

    def accepts(self, media: Media) -> bool:
        return media.kind == "image" or media.mime == "application/pdf"

    def find_warnings(self, home: ClientHome, cwd: str) -> tuple[str, ...]:
        """Warn if a new session names no model: the client chooses one on its screen, but not in `opencode run`."""
        return (_NO_MODEL,) if find_default_model(home, cwd) is None else ()

    def read_servers(self, home: ClientHome, cwd: str) -> tuple[str, ...]:
        return read_servers(home, cwd)

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        """Return whether a session must not be extended: the client works on it, or a revert is pending.

        The client does not record which sessions it shows. It works on one that does not end on a reply, if a process
        has the database open. After a revert it removes, at the next prompt, all messages from some message on. A file
        of `opencode export` is never extended.
        """
        if session.path != locate_database(home):
            return True
        database = Database(session.path)
        return database.has_revert(session.id) or (database.is_busy(session.id) and files.is_open_file(session.path))

    def load(self, home: ClientHome, session: SessionFile) -> bytes:
        if session.path != locate_database(home):
            return files.read(session.path)
        return encode_json(Database(session.path).load_session(session.id))

    def create(self, home: ClientHome, draft: NewSession, data: bytes) -> SessionFile:
        _import(home, self.program, draft.cwd, data)
        path, size = locate_database(home), len(data)
        return SessionFile("opencode", draft.id, path, draft.cwd, draft.now, size, draft.title, draft.model)

    def extend(self, home: ClientHome, session: SessionFile, expected: Fingerprint, data: bytes) -> None:
        if not expected.matches(self.load(home, session)):
            raise InputError("was changed by another program; nothing was written", path=session.id)
        _import(home, self.program, session.cwd or ".", data)

    def remove(self, home: ClientHome, session: SessionFile) -> None:
        """Remove a session that was just created, with the client's own command."""
        done, output = _run(home, self.program, session.cwd or ".", "session", "delete", session.id)
        if not done:
            raise InputError(f"opencode session delete {session.id} failed: {_last(output)}", path=session.id)


def _list_ids(data: bytes) -> set[str]:
    """Return the ids of the messages and parts of a session."""
    messages = objects_of(decode(data)["messages"])
    infos = [object_of(message.get("info")) for message in messages]
    parts = [part for message in messages for part in objects_of(message.get("parts"))]
    return {str(item.get("id")) for item in (*infos, *parts)}


def _import(home: ClientHome, program: str, cwd: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "session.json"
        files.create(file, data)
        done, output = _run(home, program, cwd, "import", str(file))
    if not done or "Imported session" not in output:
        raise InputError(f"opencode import failed: {_last(output)}")


def _last(output: str) -> str:
    return output.strip()[-300:] or "no output"


def _run(home: ClientHome, program: str, cwd: str, *arguments: str) -> tuple[bool, str]:
    """Return whether a command of the client succeeded, and its output."""
    environ = {**os.environ, **home.environ}
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None:
        raise InputError("opencode is not installed, and its sessions are written by it: npm install -g opencode-ai")
    command = [found, *arguments, "--pure"]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            # The lock on moves is inherited: a next move waits also for the command of one that was killed.
            close_fds=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"opencode can't be run: {error}") from None
    return done.returncode == 0, (done.stdout + done.stderr).decode("utf-8", "replace")
