"""Claude Code: its folders, its sessions, and the command that resumes them.

A session is `projects/FOLDER/ID.jsonl` below `~/.claude` or `CLAUDE_CONFIG_DIR`; FOLDER is the path of the working
folder with all but letters and digits replaced. The client resumes only sessions of the folder it is started in. A
running client has a file with its session's id in `sessions/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from segue.canonical.blocks import Block, Thinking
from segue.errors import InputError
from segue.processes import is_running
from segue.sessions import files
from segue.sessions.claude import reader
from segue.sessions.claude.writer import ClaudeWriter
from segue.sessions.client import CANONICAL, REASONING_REMOVED, Client, ClientHome, NewSession, SessionFile
from segue.sessions.launch import Launch, LaunchContext, ModelSetting, Program
from segue.sessions.lines import Excerpt, read_excerpt
from segue.sessions.values import object_of

_NOT_ALPHANUMERIC = re.compile(r"[^a-zA-Z0-9]")
_MAX_FOLDER_NAME = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _list_settings(environ: Mapping[str, str], folder: Path) -> Sequence[Path]:
    own = Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    project = folder / ".claude"
    return project / "settings.local.json", project / "settings.json", own / "settings.json"


class ClaudeCode(Client, Program):
    name = "claude"
    kind = "claude-code"
    title = "Claude Code"
    api = reader.API
    program = "claude"
    resume_arguments = ("--resume",)
    reader = reader
    writer = ClaudeWriter
    tested_versions = (ClaudeWriter.version,)
    package = "@anthropic-ai/claude-code"
    # A session keeps its model, too: without the variable, the client continues with it.
    model_setting = ModelSetting("ANTHROPIC_MODEL", _list_settings, ("model",), "opus")

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        projects = _root(home) / "projects"
        folder = encode_folder(str(cwd)) if cwd is not None else "*"
        for path in projects.glob(f"{folder}/*.jsonl"):
            excerpt = read_excerpt(path)
            if excerpt is not None and any(map(_is_message, excerpt.values)):
                yield _describe(path, excerpt)

    def describe(self, path: Path) -> SessionFile:
        excerpt = read_excerpt(path)
        if excerpt is None:
            raise InputError("can't be read", path=str(path))
        return _describe(path, excerpt)

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        return _root(home) / "projects" / encode_folder(draft.cwd) / f"{draft.id}.jsonl"

    def launch(self, context: LaunchContext) -> Launch:
        return Launch(
            variables={
                "ANTHROPIC_BASE_URL": context.url,
                "ANTHROPIC_AUTH_TOKEN": context.key,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            # With a key of the user, the client would not use the token.
            removed=(
                "ANTHROPIC_API_KEY",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
            ),
        )

    def find_unsupported(self, block: Block, source: str) -> str | None:
        """Return a reason to remove the reasoning of other clients: it is bound to their instructions.

        The bodies of pi and opencode are of the same API, so that rendering would keep it.
        """
        if isinstance(block, Thinking) and source not in (self.name, CANONICAL):
            return REASONING_REMOVED
        return None

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        for path in (_root(home) / "sessions").glob("*.json"):
            record = files.read_object(path)
            if record.get("sessionId") == session.id and _is_running(record):
                return True
        return super().is_open(home, session)


def encode_folder(cwd: str) -> str:
    """Return the name that the client gives to the folder of a project; a long one ends in a hash of the path."""
    name = _NOT_ALPHANUMERIC.sub("-", cwd)
    if len(name) <= _MAX_FOLDER_NAME:
        return name
    number = 0
    for item in memoryview(cwd.encode("utf-16-le")).cast("H"):
        number = (number * 31 + item) & 0xFFFFFFFF
    number = abs(number - 2**32 if number >= 2**31 else number)
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"{name[:_MAX_FOLDER_NAME]}-{digits}"


def _is_running(record: dict[str, Any]) -> bool:
    pid, started = record.get("pid"), record.get("procStart")
    known = started if isinstance(started, str) and started.isdigit() else None
    return isinstance(pid, int) and is_running(pid, known)


def _root(home: ClientHome) -> Path:
    return home.folder("CLAUDE_CONFIG_DIR", ".claude")


def _is_message(value: dict[str, Any]) -> bool:
    return value.get("type") in ("user", "assistant") and not value.get("isSidechain")


def _describe(path: Path, excerpt: Excerpt) -> SessionFile:
    models = [object_of(value.get("message")).get("model") for value in excerpt.values]
    return SessionFile(
        "claude",
        excerpt.last_string("sessionId") or path.stem,
        path,
        excerpt.last_string("cwd"),
        excerpt.updated,
        excerpt.size,
        reader.find_excerpt_title(excerpt.values),
        next((name for name in reversed(models) if isinstance(name, str) and name != reader.SYNTHETIC_MODEL), None),
    )
