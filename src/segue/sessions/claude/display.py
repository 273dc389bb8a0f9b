"""What Claude Code's screen shows of a tool's result: `toolUseResult`, in the form of that tool.

The client shows nothing of a result whose form is not that of the tool. Of other tools, and of errors, it shows a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from segue.sessions.values import object_of

Arguments = Mapping[str, Any]


def display_result(call: Mapping[str, Any] | None, block: Mapping[str, Any]) -> Any:
    """Return what the screen shows of a result of this call."""
    content = block.get("content")
    parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    text = content if isinstance(content, str) else "\n".join(part["text"] for part in parts if "text" in part)
    if block.get("is_error"):
        return f"Error: {text}"
    name = call["name"] if call is not None else ""
    if name.startswith("mcp__"):
        return parts or [{"type": "text", "text": text}]
    arguments = object_of(call["input"]) if call is not None else {}
    if name == "Read":
        return _display_read(arguments, text, parts)
    display = _DISPLAYS.get(name)
    shown = display(arguments, text) if display is not None else None
    return text if shown is None else shown


def _display_read(arguments: Arguments, text: str, parts: list[dict[str, Any]]) -> Any:
    source = next((part["source"] for part in parts if part.get("type") == "image"), None)
    if source is not None and source.get("type") == "base64":
        data = source["data"]
        file = {"base64": data, "type": source["media_type"], "originalSize": len(data) * 3 // 4}
        return {"type": "image", "file": file}
    path, count = arguments.get("file_path"), len(text.split("\n"))
    if not isinstance(path, str):
        return text
    start = arguments.get("offset")
    file = {"filePath": path, "content": text, "numLines": count, "startLine": start or 1, "totalLines": count}
    return {"type": "text", "file": file}


def _display_command(_: Arguments, text: str) -> dict[str, Any]:
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


def _display_edit(arguments: Arguments, _: str) -> dict[str, Any] | None:
    path, old, new = (arguments.get(key) for key in ("file_path", "old_string", "new_string"))
    if not isinstance(path, str) or not isinstance(old, str) or not isinstance(new, str):
        return None
    before, after = old.split("\n"), new.split("\n")
    lines = [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    hunk = {"oldStart": 1, "oldLines": len(before), "newStart": 1, "newLines": len(after), "lines": lines}
    return {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": None,
        "structuredPatch": [hunk],
        "userModified": False,
        "replaceAll": bool(arguments.get("replace_all")),
    }


def _display_write(arguments: Arguments, _: str) -> dict[str, Any] | None:
    path, content = arguments.get("file_path"), arguments.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return None
    return {"type": "create", "filePath": path, "content": content, "structuredPatch": [], "originalFile": None}


def _display_search(_: Arguments, text: str) -> dict[str, Any]:
    return {"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": len(text.splitlines())}


def _display_found(_: Arguments, text: str) -> dict[str, Any]:
    names = text.splitlines()
    return {"filenames": names, "numFiles": len(names), "durationMs": 0, "truncated": False}


_DISPLAYS: Mapping[str, Callable[[Arguments, str], dict[str, Any] | None]] = {
    "Bash": _display_command,
    "Edit": _display_edit,
    "Write": _display_write,
    "Grep": _display_search,
    "Glob": _display_found,
}
