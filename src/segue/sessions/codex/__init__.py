"""Codex: its folders, its sessions (rollouts), and the command that resumes them.

A session is `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` below `~/.codex` or `CODEX_HOME`, or such a file compressed.
When it lists or resumes sessions, the client adds those that its database does not have. It holds a lock on
`thread-writer-locks/ID.lock` while a session is open.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from segue.errors import InputError
from segue.sessions import files
from segue.sessions.client import Client, ClientHome, NewSession, SessionFile, time_ordered_id
from segue.sessions.codex import reader, rollouts
from segue.sessions.codex.writer import CodexWriter, complete_item
from segue.sessions.files import Fingerprint
from segue.sessions.launch import KEY_VARIABLE, PROVIDER, Launch, LaunchContext, Program
from segue.store.base import format_time


class Codex(Client, Program):
    name = "codex"
    kind = "codex"
    title = "Codex"
    api = reader.API
    program = "codex"
    resume_arguments = ("resume",)
    reader = reader
    writer = CodexWriter
    tested_versions = (CodexWriter.version,)
    package = "@openai/codex"
    newer_flags = ("--no-daemon",)

    def is_file_name(self, name: str) -> bool:
        return rollouts.is_compressed(name)

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        for path in rollouts.list_rollouts(_root(home)):
            session = _describe(path)
            if session is not None and (cwd is None or home.is_same_folder(session.cwd, str(cwd))):
                yield session

    def describe(self, path: Path) -> SessionFile:
        session = _describe(path)
        if session is None:
            raise InputError("not a session of Codex: no line with the facts of the session", path=str(path))
        return session

    def load(self, home: ClientHome, session: SessionFile) -> bytes:
        return rollouts.load_rollout(_root(home), session.path)

    def extend(self, home: ClientHome, session: SessionFile, expected: Fingerprint, data: bytes) -> None:
        """Append to a rollout; a compressed one becomes a plain file beside it, which the client then uses."""
        if not expected.matches(self.load(home, session)):
            raise InputError("was changed by another program; nothing was written", path=str(session.path))
        path = rollouts.plain_path(session.path)
        if path.suffix == rollouts.COMPRESSED:
            files.create(path.with_suffix(""), rollouts.read_rollout(path) + data)
        else:
            files.append(path, Fingerprint.of(files.read(path)), data)

    def new_id(self, now: int) -> str:
        return time_ordered_id(now)

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        stamp = format_time(draft.now)[:19]
        year, month, day = stamp[:10].split("-")
        name = f"rollout-{stamp.replace(':', '-')}-{draft.id}.jsonl"
        return _root(home) / "sessions" / year / month / day / name

    def complete(self, home: ClientHome, draft: NewSession) -> NewSession:
        return msgspec.structs.replace(draft, provider=_read_provider(home))

    def launch(self, context: LaunchContext) -> Launch:
        settings: dict[str, str | int] = {
            "model_provider": PROVIDER,
            "model_context_window": context.context,
            f"model_providers.{PROVIDER}.name": PROVIDER,
            f"model_providers.{PROVIDER}.base_url": f"{context.url}/v1",
            f"model_providers.{PROVIDER}.env_key": KEY_VARIABLE,
            f"model_providers.{PROVIDER}.wire_api": "responses",
        }
        arguments = [part for key, value in settings.items() for part in ("-c", f"{key}={json.dumps(value)}")]
        return Launch(tuple(arguments), {KEY_VARIABLE: context.key})

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return complete_item(value)

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        lock = _root(home) / "thread-writer-locks" / f"{session.id}.lock"
        return files.is_locked(lock) or super().is_open(home, session)


def _root(home: ClientHome) -> Path:
    return home.folder("CODEX_HOME", ".codex")


def _read_provider(home: ClientHome) -> str | None:
    """Return the provider in the client's settings: the client lists only sessions of this provider."""
    try:
        settings = tomllib.loads((_root(home) / "config.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    provider = settings.get("model_provider")
    return provider if isinstance(provider, str) and provider else None


def _describe(path: Path) -> SessionFile | None:
    excerpt = rollouts.read_rollout_excerpt(path)
    if excerpt is None:
        return _describe_unread(path)
    payloads = [
        (value.get("type"), cast("dict[str, Any]", value["payload"]))
        for value in excerpt.values
        if isinstance(value.get("payload"), dict)
    ]
    meta = next((payload for kind, payload in payloads if kind == "session_meta"), None)
    # The source of a subagent's session is an object.
    if meta is None or not isinstance(meta.get("id"), str) or isinstance(meta.get("source"), dict):
        return None
    items = [payload for kind, payload in payloads if kind == "response_item"]
    models = [payload.get("model") for kind, payload in payloads if kind == "turn_context"]
    cwd = meta.get("cwd")
    return SessionFile(
        "codex",
        meta["id"],
        path,
        cwd if isinstance(cwd, str) else None,
        excerpt.updated,
        excerpt.size,
        reader.find_title(items),
        next((model for model in reversed(models) if isinstance(model, str)), None),
    )


def _describe_unread(path: Path) -> SessionFile | None:
    """Return a compressed session that can't be read by its name; None for another one."""
    id = rollouts.thread_id(path)
    if path.suffix != rollouts.COMPRESSED or id is None:
        return None
    status = path.stat()
    return SessionFile("codex", id, path, updated=status.st_mtime_ns // 1000, size=status.st_size)
