"""pi: its folders, its sessions, and the command that resumes them.

A session is `sessions/FOLDER/TIME_ID.jsonl` below `~/.pi/agent` or `PI_CODING_AGENT_DIR`; FOLDER is the path of the
working folder with `-` between its parts. A folder of sessions that the user chose (`PI_CODING_AGENT_SESSION_DIR`, or
`sessionDir` in the settings) has all files in it. The client does not record that a session is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from segue.errors import InputError
from segue.sessions import files
from segue.sessions.any_provider import AnyProviderClient
from segue.sessions.client import ClientHome, NewSession, SessionFile, time_ordered_id
from segue.sessions.launch import MAX_OUTPUT, MODEL, PROVIDER, Launch, LaunchContext, Program, overlay
from segue.sessions.lines import Excerpt, read_excerpt
from segue.sessions.parsed_log import LogLine
from segue.sessions.pi import reader
from segue.sessions.pi.writer import PiWriter
from segue.sessions.values import string_of
from segue.store.base import format_time

_SEPARATORS = re.compile(r"[/\\:]")
_NOT_IN_NAME = re.compile(r"[:.]")


class Pi(AnyProviderClient, Program):
    name = "pi"
    kind = "pi"
    title = "pi"
    program = "pi"
    resume_arguments = ("--session",)
    reader = reader
    writer = PiWriter
    tested_versions = (PiWriter.version,)
    package = "@earendil-works/pi-coding-agent"

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        sessions = _root(home) / "sessions"
        folder = _own_folder(home) or (sessions / encode_folder(str(cwd)) if cwd is not None else None)
        for path in folder.glob("*.jsonl") if folder is not None else sessions.glob("*/*.jsonl"):
            excerpt = read_excerpt(path)
            session = _describe(path, excerpt) if excerpt is not None else None
            if session is None or session.title is None:
                continue
            if cwd is None or home.is_same_folder(session.cwd, str(cwd)):
                yield session

    def describe(self, path: Path) -> SessionFile:
        excerpt = read_excerpt(path)
        session = _describe(path, excerpt) if excerpt is not None else None
        if session is None:
            raise InputError("not a session of pi: no header", path=str(path))
        return session

    def new_id(self, now: int) -> str:
        return time_ordered_id(now)

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        folder = _own_folder(home) or _root(home) / "sessions" / encode_folder(draft.cwd)
        return folder / f"{_NOT_IN_NAME.sub('-', format_time(draft.now))}_{draft.id}.jsonl"

    def complete(self, home: ClientHome, draft: NewSession) -> NewSession:
        settings = _read_settings(home)
        provider, model = (string_of(settings.get(key)) for key in ("defaultProvider", "defaultModel"))
        return msgspec.structs.replace(draft, provider=provider, model=model)

    def launch(self, context: LaunchContext) -> Launch:
        name = "PI_CODING_AGENT_DIR"
        own = Path(context.environ.get(name) or Path.home() / ".pi" / "agent")
        model = {
            "id": MODEL,
            "name": context.model,
            "reasoning": True,
            "input": ["text", "image"],
            "contextWindow": context.context,
            "maxTokens": MAX_OUTPUT,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        provider = {"baseUrl": context.url, "apiKey": context.key, "api": "anthropic-messages", "models": [model]}
        users = files.read_object(own / "models.json")
        providers = {**users.get("providers", {}), PROVIDER: provider}
        # New sessions are new folders and files in this one.
        sessions = own / "sessions"
        overlay(own, context.folder, {"models.json": {**users, "providers": providers}}, [sessions.name])
        arguments = ("--provider", PROVIDER, "--model", MODEL)
        return Launch(arguments, {name: str(context.folder)}, folders=(sessions,))


def encode_folder(cwd: str) -> str:
    """Return the name that the client gives to the folder of a project's sessions."""
    return f"--{_SEPARATORS.sub('-', cwd[1:] if cwd[:1] in ('/', chr(92)) else cwd)}--"


def _root(home: ClientHome) -> Path:
    return home.folder("PI_CODING_AGENT_DIR", ".pi", "agent")


def _own_folder(home: ClientHome) -> Path | None:
    """Return the folder that the user chose for sessions."""
    named = home.environ.get("PI_CODING_AGENT_SESSION_DIR") or string_of(_read_settings(home).get("sessionDir"))
    return home.path / named[2:] if named and named.startswith("~/") else Path(named) if named else None


def _read_settings(home: ClientHome) -> dict[str, Any]:
    return files.read_object(_root(home) / "settings.json")


def _describe(path: Path, excerpt: Excerpt) -> SessionFile | None:
    header = excerpt.values[0] if excerpt.values else {}
    if not reader.is_line(LogLine(1, header)):
        return None
    return SessionFile(
        "pi",
        header["id"],
        path,
        string_of(header.get("cwd")),
        excerpt.updated,
        excerpt.size,
        reader.find_name(excerpt.values) or reader.find_title(excerpt.values),
        reader.find_model(excerpt.values)[1],
    )
