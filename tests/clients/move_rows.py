"""The clients whose sessions are moved: how each edits a file, resumes a session by its id, and compacts one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from segue.sessions.launch import MODEL
from tests.clients.rows import CLIENT_ROWS

COMPACTION_PROMPT = "TASK-MIDDLE: answer."


class CompactionRow(Struct, frozen=True):
    """How a client compacts its last session without a terminal: by a command, or by a limit that it is above.

    `settings` are values of files of the user during this run, by the files' names below the home.
    """

    arguments: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]] = {}


class MoveRow(Struct, frozen=True):
    """What a client adds to its row: its API here, an edit with its own tool, and the arguments that resume an id.

    `records_open_calls`: the client records a call when it begins, not when it ends. `has_picture_in_result`: it sends
    the picture of a result in that result, not beside or after it.
    """

    upstream: str
    build_edit: Callable[[Path, str, str], tuple[str, Any]]
    resume: Callable[[str, str], tuple[str, ...]]
    compaction: CompactionRow
    more_tools: tuple[str, ...] = ()
    records_open_calls: bool = True
    has_picture_in_result: bool = True


def _claude_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "Edit", {"file_path": str(path), "old_string": old, "new_string": new}


def _resume_claude(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--resume", id, "--allowedTools", "Read", "Edit", "Bash")


def _patch(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "apply_patch", f"*** Begin Patch\n*** Update File: {path.name}\n@@\n-{old}\n+{new}\n*** End Patch\n"


_CODEX_FLAGS = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', "-m", "gpt-5.5")


def _resume_codex(prompt: str, id: str) -> tuple[str, ...]:
    return ("exec", "resume", id, *_CODEX_FLAGS, prompt)


def _gemini_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "replace", {"file_path": str(path), "instruction": "Edit it", "old_string": old, "new_string": new}


def _resume_gemini(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro", "--resume", id)


def _qwen_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"file_path": str(path), "old_string": old, "new_string": new}


def _resume_qwen(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", "--resume", id)


def _pi_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}


def _resume_pi(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", "--session", id, "--offline", "--thinking", "medium", "--tools", "read,bash,edit", prompt)


def _opencode_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"filePath": str(path), "oldString": old, "newString": new}


def _resume_opencode(prompt: str, id: str) -> tuple[str, ...]:
    return ("run", "--session", id, "--pure", "--auto", prompt)


((_OPENCODE_FILE, _content),) = CLIENT_ROWS["opencode"].settings.items()
# Without a limit for the input, the client ignores what is reserved. The requests before the compaction have more than
# 11,000 tokens, those after it less than 8,000. The last messages are kept.
_OPENCODE_LIMIT = {"context": 200_000, "input": 200_000, "output": 32_000}
_OPENCODE_LIMITS: Mapping[str, Any] = {
    **json.loads(_content),
    "provider": {"segue": {"models": {MODEL: {"limit": _OPENCODE_LIMIT}}}},
    "compaction": {"reserved": 190_500, "preserve_recent_tokens": 300},
}
_COMPACTIONS: Mapping[str, CompactionRow] = {
    "claude": CompactionRow(("-p", "/compact", "--continue")),
    "codex": CompactionRow(
        ("exec", "resume", "--last", "-c", "model_auto_compact_token_limit=500", *_CODEX_FLAGS, COMPACTION_PROMPT)
    ),
    "gemini": CompactionRow(
        _resume_gemini(COMPACTION_PROMPT, "latest"),
        {".gemini/settings.json": {"model": {"compressionThreshold": 0.0001}}},
    ),
    "qwen": CompactionRow(("-p", "/compress", "--approval-mode", "yolo", "--continue")),
    # More is reserved for the reply than there is.
    "pi": CompactionRow(
        ("-p", "-c", "--offline", COMPACTION_PROMPT),
        {".pi/agent/settings.json": {"compaction": {"reserveTokens": 199_500, "keepRecentTokens": 1}}},
    ),
    "opencode": CompactionRow(("run", "-c", "--pure", "--auto", COMPACTION_PROMPT), {_OPENCODE_FILE: _OPENCODE_LIMITS}),
}

MOVE_ROWS: Mapping[str, MoveRow] = {
    "claude": MoveRow("anthropic", _claude_edit, _resume_claude, _COMPACTIONS["claude"], ("Edit",)),
    "codex": MoveRow("openai-responses", _patch, _resume_codex, _COMPACTIONS["codex"]),
    "gemini": MoveRow(
        "gemini",
        _gemini_edit,
        _resume_gemini,
        _COMPACTIONS["gemini"],
        records_open_calls=False,
        has_picture_in_result=False,
    ),
    "qwen": MoveRow("qwen", _qwen_edit, _resume_qwen, _COMPACTIONS["qwen"], has_picture_in_result=False),
    "pi": MoveRow("anthropic", _pi_edit, _resume_pi, _COMPACTIONS["pi"], ("--tools", "read,bash,edit")),
    "opencode": MoveRow(
        "anthropic", _opencode_edit, _resume_opencode, _COMPACTIONS["opencode"], has_picture_in_result=False
    ),
}
