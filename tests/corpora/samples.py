"""A session with all that a row can hold, each piece with a marker of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.cli.client_logs import ClaudeCode

_SESSIONS = Path(__file__).parents[1] / "data/sessions"

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def log_session() -> ClaudeCode:
    """Return a session: parallel calls with results out of order, one of them failed, one call more, and an answer."""
    log = ClaudeCode()
    log.user("ASK-ONE: read both files.")
    log.reply("m1", {"type": "thinking", "thinking": "THINK-ONE", "signature": "c2ln"})
    log.reply("m1", {"type": "text", "text": "SAY-ONE"})
    first = log.reply("m1", {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "ARG-ONE"}})
    second = log.reply("m1", {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ARG-TWO"}})
    log.user([{"type": "tool_result", "tool_use_id": "toolu_2", "content": "OUT-TWO", "is_error": True}], second)
    log.user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "OUT-ONE"}], first)
    log.reply(
        "m2", {"type": "tool_use", "id": "toolu_3", "name": "Grep", "input": {"pattern": "ARG-THREE", "-n": True}}
    )
    log.result("toolu_3", "OUT-THREE")
    log.reply("m3", {"type": "text", "text": "ANSWER-ONE"})
    return log


def log_odd_session() -> ClaudeCode:
    """Return a session with a branch that was left, a failed result with an image, and a call and a result alone."""
    log = ClaudeCode()
    first = log.user("ASK")
    log.reply("m0", {"type": "text", "text": "LEFT"})
    log.reply("m1", {"type": "thinking", "thinking": "THINK", "signature": "x"}, below=first)
    log.reply("m1", {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}})
    log.reply("m1", {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "x"}})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    content = [{"type": "text", "text": "OUT"}, image]
    log.user([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": content}])
    log.user([{"type": "tool_result", "tool_use_id": "unknown", "content": "ORPHAN"}])
    log.reply("m2", {"type": "text", "text": "DONE"})
    return log


def session() -> bytes:
    return encode(log_session())


def encode(log: ClaudeCode) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in log.lines).encode()


MARKERS = ("ASK-ONE", "ARG-ONE", "ARG-TWO", "OUT-ONE", "OUT-TWO", "ARG-THREE", "OUT-THREE", "ANSWER-ONE")
REASONING = "THINK-ONE"


def write_corpus(folder: Path, copies: int = 40) -> None:
    """Write sessions of every client, rows with arguments of many types, and a line that can't be read."""
    sessions = folder / "sessions"
    sessions.mkdir(parents=True)
    for client in ("claude", "codex", "gemini", "pi", "qwen"):
        shutil.copy(_SESSIONS / f"{client}.jsonl", sessions)
    shutil.copy(_SESSIONS / "opencode.json", sessions)
    (sessions / "own.jsonl").write_bytes(session())
    odd: tuple[Any, ...] = (1, "1", 1.5, None, [], {}, {"deep": [{"x": None}]}, "ü\u2028 \U0001f600")
    for number in range(copies):
        rows = [_row(f"{number}-{at}", value, "x" * 12_000) for at, value in enumerate(odd)]
        lines = [json.dumps(row) for row in rows]
        (folder / f"rows-{number:03}.jsonl").write_text(
            "\n".join([*lines, '{"messages": ['][: len(lines) + number % 2])
        )


def _row(name: str, value: Any, filler: str) -> dict[str, Any]:
    call = {"id": f"call_{name}", "type": "function", "function": {"name": "f", "arguments": {"value": value}}}
    parameters = {"type": "object", "properties": {"value": {"type": ["string", "null"]}}}
    return {
        "messages": [
            {"role": "user", "content": f"{name} {filler}"},
            {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{name}", "content": f"out {name}"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "F", "parameters": parameters}}],
    }
