"""What Codex's screen shows of a session: its own events for messages, commands, changes of files and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.patches import FileEdit, FileWrite, parse_patch
from segue.sessions.values import list_of, object_of

_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)$", re.MULTILINE)
_OUTPUT_MARK = "Output:\n"
_SERVER_MARK = "mcp__"


def display_message(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the event of a message, in a session without pages."""
    text = _text(item)
    if item["role"] == "assistant":
        yield {"type": "agent_message", "message": text}
    elif item["role"] == "user":
        images = [part["image_url"] for part in item["content"] if isinstance(part.get("image_url"), str)]
        yield {"type": "user_message", "message": text, "images": images}


def display_message_in_page(item: dict[str, Any], id: str) -> dict[str, Any] | None:
    """Return a message as the screen shows it, in a session with pages."""
    text = _text(item)
    if item["role"] == "assistant":
        return {"type": "AgentMessage", "id": item.get("id", id), "content": [{"type": "Text", "text": text}]}
    if item["role"] != "user":
        return None
    shown: list[dict[str, Any]] = [{"type": "text", "text": text, "text_elements": []}] if text else []
    images = [part["image_url"] for part in item["content"] if isinstance(part.get("image_url"), str)]
    shown += [{"type": "image", "image_url": image} for image in images]
    return {"type": "UserMessage", "id": id, "content": shown}


def display_call(call: dict[str, Any], output: dict[str, Any], cwd: str) -> dict[str, Any] | None:
    """Return a finished call as the screen shows it; None for tools that it does not show."""
    text = _output_text(output["output"])
    found = _EXIT_CODE.search(text)
    code = int(found[1]) if found else 0
    text = text.partition(_OUTPUT_MARK)[2] if _OUTPUT_MARK in text else text
    status = "completed" if code == 0 and not text.startswith("[error]") else "failed"
    id = call["call_id"]
    if call.get("name") == "exec_command":
        command = _arguments(call).get("cmd")
        return {
            "type": "CommandExecution",
            "id": id,
            "process_id": None,
            "command": ["bash", "-lc", command if isinstance(command, str) else ""],
            "cwd": _file_url(cwd),
            "parsed_cmd": [{"type": "unknown", "cmd": command if isinstance(command, str) else ""}],
            "source": "agent",
            "status": status,
            "aggregated_output": text,
            "exit_code": code,
            "duration": {"secs": 0, "nanos": 0},
        }
    if call.get("name") == "view_image":
        path = _arguments(call).get("path")
        return {"type": "ImageView", "id": id, "path": _file_url(path)} if isinstance(path, str) else None
    namespace = call.get("namespace")
    if isinstance(namespace, str) and namespace.startswith(_SERVER_MARK):
        return {
            "type": "McpToolCall",
            "id": id,
            "server": namespace.removeprefix(_SERVER_MARK),
            "tool": call["name"],
            "arguments": _arguments(call),
            "status": status,
            "result": {"content": [{"type": "text", "text": text}]},
            "duration": {"secs": 0, "nanos": 0},
        }
    change = parse_patch(call["input"]) if call.get("name") == "apply_patch" and "input" in call else None
    if change is None:
        return None
    return {
        "type": "FileChange",
        "id": id,
        "changes": {change.path: _display_change(change)},
        "status": status,
        "stdout": text,
        "stderr": "",
    }


def _display_change(change: FileWrite | FileEdit) -> dict[str, Any]:
    if isinstance(change, FileWrite):
        return {"type": "add", "content": change.content}
    old, new = change.old.split("\n"), change.new.split("\n")
    lines = [f"@@ -1,{len(old)} +1,{len(new)} @@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return {"type": "update", "unified_diff": "\n".join([*lines, ""]), "move_path": None}


def _output_text(output: object) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part["text"] for part in list_of(output) if isinstance(part.get("text"), str))


def _text(item: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in item["content"] if isinstance(part.get("text"), str))


def _file_url(path: str) -> str:
    # A path of Windows begins with its drive.
    path = path.replace("\\", "/") if path[1:3] == ":\\" else path
    return f"file://{'' if path.startswith('/') else '/'}{quote(str(PurePosixPath(path)), safe='/:')}"


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    try:
        return object_of(parse_json(call.get("arguments", ""))[0])
    except InputError:
        return {}
