"""Qwen Code: its folders, its sessions, and the command that resumes them.

A session is `projects/FOLDER/chats/ID.jsonl` below `~/.qwen`, `QWEN_HOME` or `QWEN_RUNTIME_DIR`; FOLDER is the path of
the working folder with all but letters and digits replaced. The client resumes only sessions of the folder it is
started in. Where it locks sessions, there is `tmp/session-writer-locks/ID.lock` with the id of the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from segue.errors import InputError
from segue.processes import is_running
from segue.sessions import files
from segue.sessions.client import Client, ClientHome, NewSession, SessionFile
from segue.sessions.gemini_contents import API, strip_placeholder
from segue.sessions.launch import MODEL, Launch, LaunchContext, Program, write_json
from segue.sessions.lines import Excerpt, read_excerpt
from segue.sessions.parsed_log import LogLine
from segue.sessions.qwen import reader
from segue.sessions.qwen.writer import QwenWriter

_NOT_ALPHANUMERIC = re.compile(r"[^a-zA-Z0-9]")


class QwenCode(Client, Program):
    name = "qwen"
    kind = "qwen-code"
    title = "Qwen Code"
    api = API
    program = "qwen"
    resume_arguments = ("--resume",)
    reader = reader
    writer = QwenWriter
    tested_versions = (QwenWriter.version,)
    package = "@qwen-code/qwen-code"

    def find(self, home: ClientHome, cwd: Path | None) -> Iterator[SessionFile]:
        folder = _encode_folder(home, str(cwd)) if cwd is not None else "*"
        for path in (_root(home) / "projects").glob(f"{folder}/chats/*.jsonl"):
            excerpt = read_excerpt(path)
            session = _describe(path, excerpt) if excerpt is not None else None
            # Two folders can have the same name.
            if session is None:
                continue
            if cwd is None or session.cwd is None or home.is_same_folder(session.cwd, str(cwd)):
                yield session

    def describe(self, path: Path) -> SessionFile:
        excerpt = read_excerpt(path)
        session = _describe(path, excerpt) if excerpt is not None else None
        if session is None:
            raise InputError("not a session of Qwen Code: no line with a message", path=str(path))
        return session

    def locate(self, home: ClientHome, draft: NewSession) -> Path:
        return _root(home) / "projects" / _encode_folder(home, draft.cwd) / "chats" / f"{draft.id}.jsonl"

    def launch(self, context: LaunchContext) -> Launch:
        # The client guesses from a model's name whether it accepts pictures: it sends none to a name it never saw.
        options = {"modalities": {"image": True}, "contextWindowSize": context.context}
        settings = {"model": {"generationConfig": options}}
        return Launch(
            ("--auth-type", "openai", "-m", MODEL),
            {
                "OPENAI_BASE_URL": f"{context.url}/v1",
                "OPENAI_API_KEY": context.key,
                "OPENAI_MODEL": MODEL,
                "QWEN_CODE_SYSTEM_SETTINGS_PATH": str(write_json(context.folder / "settings.json", settings)),
            },
        )

    def normalize(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return strip_placeholder(value)

    def is_open(self, home: ClientHome, session: SessionFile) -> bool:
        lock = _root(home) / "tmp" / "session-writer-locks" / f"{session.id}.lock"
        pid = files.read_object(lock).get("pid")
        return (isinstance(pid, int) and is_running(pid)) or super().is_open(home, session)


def _root(home: ClientHome) -> Path:
    if home.environ.get("QWEN_RUNTIME_DIR"):
        return home.folder("QWEN_RUNTIME_DIR")
    return home.folder("QWEN_HOME", ".qwen")


def _encode_folder(home: ClientHome, cwd: str) -> str:
    return _NOT_ALPHANUMERIC.sub("-", cwd.lower() if home.platform == "win32" else cwd)


def _describe(path: Path, excerpt: Excerpt) -> SessionFile | None:
    if not any(reader.is_line(LogLine(1, value)) for value in excerpt.values):
        return None
    return SessionFile(
        "qwen",
        excerpt.last_string("sessionId") or path.stem,
        path,
        excerpt.last_string("cwd"),
        excerpt.updated,
        excerpt.size,
        reader.find_title(excerpt.values),
        excerpt.last_string("model"),
    )
