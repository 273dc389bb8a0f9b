"""Gemini CLI: its folders, its sessions, and the command that resumes them.

A session is `tmp/PROJECT/chats/session-TIME-ID.jsonl` below `~/.gemini`, or below `.gemini` in `GEMINI_CLI_HOME`.
PROJECT is a short name of the working folder, whose path is in `.project_root` beside it; in older versions it is the
SHA-256 of the path. The client resumes only sessions of the folder it is started in. It does not record that a session
is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PureWindowsPath
from typing import Any

from segue.errors import InputError
from segue.sessions import files
from segue.sessions.client import Client, ClientHome, NewSession, SessionFile
from segue.sessions.gemini import reader
from segue.sessions.gemini.writer import GeminiWriter, normalize_unit
from segue.sessions.gemini_contents import API
from segue.sessions.launch import Launch, LaunchContext, ModelSetting, Program, write_json
from segue.sessions.lines import Excerpt, read_excerpt
from segue.sessions.parsed_log import LogLine
from segue.sessions.values import object_of
from segue.store.base import format_time

_ROOT_FILE = ".project_root"
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
_MAX_EMPTY = 64 * 1024


def _list_settings(environ: Mapping[str, str], folder: Path) -> Sequence[Path]:
    homes = (folder, Path(environ.get("GEMINI_CLI_HOME") or Path.home()))
    return [home / ".gemini" / "settings.json" for home in homes]


class GeminiCli(Client, Program):
    name = "gemini"
    kind = "gemini-cli"
    title = "Gemini CLI"
    api = API
    program = "gemini"
    resume_arguments = ("--resume",)
    reader = reader
    writer = GeminiWriter
    tested_versions = (GeminiWriter.version,)
    package = "@google/gemini-cli"
    model_setting = ModelSetting("GEMINI_MODEL", _list_settings, ("model", "name"), "auto")

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        for project in (_root(home) / "tmp").glob("*/"):
            if cwd is None or _is_project_of(home, project, str(cwd)):
                for path in (project / "chats").glob("session-*.json*"):
                    session = _describe(path) if path.suffix in (".json", ".jsonl") else None
                    # Each start leaves a file; one without a prompt is small.
                    if session is not None and (session.title is not None or session.size > _MAX_EMPTY):
                        yield session

    def describe(self, path: Path) -> SessionFile:
        session = _describe(path)
        if session is None:
            raise InputError("not a session of Gemini CLI: no line with the facts of the session", path=str(path))
        return session

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        stamp = format_time(draft.now)[:16].replace(":", "-")
        return _find_project(home, draft.cwd) / "chats" / f"session-{stamp}-{draft.id[:8]}.jsonl"

    def create(self, home: ClientHome, draft: NewSession, data: bytes) -> SessionFile:
        """Write a new session, and the path of its folder, by which the client finds it."""
        root_file = _find_project(home, draft.cwd) / _ROOT_FILE
        if not root_file.exists():
            files.create(root_file, _normalize(home, draft.cwd).encode("utf-8", "replace"))
        return super().create(home, draft, data)

    def launch(self, context: LaunchContext) -> Launch:
        # The settings of the system take precedence over those of the user.
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        file = write_json(context.folder / "settings.json", settings)
        return Launch(
            variables={
                "GOOGLE_GEMINI_BASE_URL": context.url,
                "GEMINI_API_KEY": context.key,
                "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(file),
            },
            removed=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
        )

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return normalize_unit(value)

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        """Return whether it is open, or is one object: nothing can be appended to that."""
        return session.path.suffix == ".json" or super().is_open(home, session)


def _root(home: ClientHome) -> Path:
    return home.folder("GEMINI_CLI_HOME") / ".gemini"


def _normalize(home: ClientHome, cwd: str) -> str:
    """Return a folder's path as the client records it."""
    return cwd.lower() if home.platform == "win32" else cwd


def _is_project_of(home: ClientHome, project: Path, cwd: str) -> bool:
    if home.is_same_folder(_read_root(project), cwd):
        return True
    return project.name == sha256(cwd.encode("utf-8", "replace")).hexdigest()


def _read_root(project: Path) -> str | None:
    """Return the path of a project's folder; None if it is not recorded."""
    try:
        return (project / _ROOT_FILE).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _find_project(home: ClientHome, cwd: str) -> Path:
    """Return where the client keeps the sessions of a folder; for one without any, a name that is not taken."""
    root = _root(home)
    cwd = _normalize(home, cwd)
    projects = root / "tmp"
    taken = _read_registry(root)
    if cwd in taken and _read_root(projects / taken[cwd]) in (None, cwd):
        return projects / taken[cwd]
    known = sorted(project for project in projects.glob("*/") if _read_root(project) == cwd)
    if known:
        return known[0]
    folder = PureWindowsPath(cwd) if home.platform == "win32" else Path(cwd)
    name = _NOT_ALPHANUMERIC.sub("-", folder.name.lower()).strip("-") or "project"
    number = 0
    while True:
        candidate = f"{name}-{number}" if number else name
        owners = {_read_root(root / base / candidate) for base in ("tmp", "history")}
        if candidate not in taken.values() and owners <= {None, cwd}:
            return projects / candidate
        number += 1


def _read_registry(root: Path) -> dict[str, str]:
    """Return the client's names of folders by their paths."""
    projects = object_of(files.read_object(root / "projects.json").get("projects"))
    return {
        path: name for path, name in projects.items() if isinstance(name, str) and name and not {"/", "\\"} & set(name)
    }


def _describe(path: Path) -> SessionFile | None:
    excerpt = read_excerpt(path)
    if excerpt is None:
        return None
    if not excerpt.values:
        # An older session is one object over several lines.
        excerpt = Excerpt([files.read_object(path)], excerpt.size, excerpt.updated)
    facts = next((value for value in excerpt.values if reader.is_line(LogLine(1, value))), None)
    if facts is None or facts.get("kind") == "subagent":
        return None
    return SessionFile(
        "gemini",
        facts["sessionId"],
        path,
        _read_root(path.parent.parent),
        excerpt.updated,
        excerpt.size,
        reader.find_title(excerpt.values),
        excerpt.last_string("model"),
    )
