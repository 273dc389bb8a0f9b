"""What opencode's screen shows of a finished tool call besides its arguments: metadata of the call."""

from __future__ import annotations

from typing import Any

_MAX_OUTPUT = 30_000


def display_call(name: str, arguments: dict[str, Any], output: str) -> dict[str, Any]:
    """Return the metadata of a call, by its tool."""
    match name:
        case "bash":
            return {"output": output[:_MAX_OUTPUT]}
        case "edit" if _are_texts(arguments, "filePath", "oldString", "newString"):
            return {"diff": _render_diff(arguments["filePath"], arguments["oldString"], arguments["newString"])}
        case "write":
            return {"diagnostics": {}}
        case "todowrite" if isinstance(arguments.get("todos"), list):
            return {"todos": arguments["todos"]}
        case _:
            return {}


def _are_texts(arguments: dict[str, Any], *names: str) -> bool:
    return all(isinstance(arguments.get(name), str) for name in names)


def _render_diff(path: str, old: str, new: str) -> str:
    """Return a diff that replaces all lines. Where they are in the file is not known."""
    removed, added = old.split("\n"), new.split("\n")
    head = [f"--- {path}", f"+++ {path}", f"@@ -1,{len(removed)} +1,{len(added)} @@"]
    return "\n".join([*head, *(f"-{line}" for line in removed), *(f"+{line}" for line in added), ""])
