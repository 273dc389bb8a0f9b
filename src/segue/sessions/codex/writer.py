"""Writes sessions of Codex: the items that the model sees, and the events that the screen shows.

A turn begins with a message of the user. The items are complete Responses items; outputs follow their calls. A session
that keeps its history in pages (`history_mode`) has numbered lines, and an event for each message, command and change
of a file; an older one has events for messages only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import quote

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.client import NewSession
from segue.sessions.lines import LineWriter
from segue.sessions.patches import FileEdit, FileWrite, parse_patch
from segue.sessions.values import list_of, object_of
from segue.store.base import format_time

_SESSION_KEYS = frozenset({"session_id", "thread_id"})
_SERVER_TOOL = re.compile(r"(?P<namespace>mcp__.+?)__(?P<tool>.+)")
_TEXT_TYPES = {"assistant": "output_text"}


class CodexWriter(LineWriter):
    version = "0.169.0"

    def __init__(self, draft: NewSession, before: list[dict[str, Any]] | None = None) -> None:
        super().__init__(draft, before)
        self._metas = [
            cast("dict[str, Any]", value["payload"]) for value in self._before if value.get("type") == "session_meta"
        ]
        self._has_pages = self._is_new or (bool(self._metas) and self._metas[0].get("history_mode") == "paginated")
        self._turn: str | None = None
        self._last_text: str | None = None
        self._calls: dict[str, dict[str, Any]] = {}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines, with numbers in a new session and in one that has them."""
        numbers = [number for value in self._before if isinstance(number := value.get("ordinal"), int)]
        if self._before and not numbers:
            yield from self._items()
            return
        for number, line in enumerate(self._items(), numbers[-1] + 1 if numbers else 0):
            yield {"timestamp": line["timestamp"], "ordinal": number, "type": line["type"], "payload": line["payload"]}

    def _items(self) -> Iterator[dict[str, Any]]:
        if self._is_new:
            at = format_time(self._draft.now)
            yield {"timestamp": at, "type": "session_meta", "payload": self._meta(at)}
        yield from self._turns()

    def _meta(self, at: str) -> dict[str, Any]:
        """Return the facts of a new session.

        Without a provider it can be resumed with any: the client refuses to change a provider.
        """
        draft = self._draft
        return {
            "id": draft.id,
            "session_id": draft.id,
            "timestamp": at,
            "cwd": draft.cwd,
            "originator": "codex-tui",
            "cli_version": self.version,
            "source": "cli",
            "thread_source": "user",
            **({"model_provider": draft.provider} if draft.provider else {}),
            "history_mode": "paginated",
            **({"git": {"branch": draft.git_branch}} if draft.git_branch else {}),
            **self._parent,
        }

    def renamed_lines(self) -> list[dict[str, Any]]:
        draft = self._draft
        old = self._metas[0].get("id") if self._metas else None
        for meta in self._metas:
            meta.pop("history_base", None)
            if meta.get("id") == old:
                meta.update(id=draft.id, cwd=draft.cwd, **self._parent)
        lines = [_rename(value, old, draft.id) for value in self._before]
        if lines and isinstance(lines[0].get("ordinal"), int):
            # A fork has the lines of its parent after its own first line.
            lines = [{**line, "ordinal": number} for number, line in enumerate(lines)]
        return lines

    def _turns(self) -> Iterator[dict[str, Any]]:
        for unit in self._draft.items:
            self._set_time(unit)
            item = complete_item(unit.value)
            is_prompt = item["type"] == "message" and item["role"] == "user"
            if is_prompt or self._turn is None:
                yield from self._end_turn()
                yield from self._begin_turn()
            yield self._line("response_item", item)
            yield from self._events(item)
        yield from self._end_turn(**self._signed_copy)

    def _line(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": self._time, "type": kind, "payload": payload}

    def _begin_turn(self) -> Iterator[dict[str, Any]]:
        self._turn = self._make_id()
        self._last_text = None
        started = {"type": "task_started", "turn_id": self._turn, "started_at": self._at // 1_000_000}
        yield self._line("event_msg", {**started, "model_context_window": None})
        if self._draft.model is not None:
            context = {"turn_id": self._turn, "cwd": self._draft.cwd, "model": self._draft.model}
            yield self._line("turn_context", context)

    def _end_turn(self, **fields: Any) -> Iterator[dict[str, Any]]:
        if self._turn is not None:
            ended = {"type": "task_complete", "turn_id": self._turn, "last_agent_message": self._last_text}
            yield self._line("event_msg", {**ended, "completed_at": self._at // 1_000_000, **fields})

    def _events(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what the screen shows of an item."""
        if item["type"] == "message":
            if item["role"] == "assistant":
                self._last_text = "\n".join(part["text"] for part in item["content"] if "text" in part)
            if not self._has_pages:
                yield from (self._line("event_msg", event) for event in display_message(item))
                return
            shown = display_message_in_page(item, self._make_id())
        elif item["type"].endswith("_call"):
            self._calls[item["call_id"]] = item
            return
        else:
            call = self._calls.get(item.get("call_id", ""))
            shown = display_call(call, item, self._draft.cwd) if call is not None and self._has_pages else None
        if shown is not None:
            at = self._at // 1000
            event = {"type": "item_completed", "thread_id": self._draft.id, "turn_id": self._turn, "item": shown}
            yield self._line("event_msg", {**event, "started_at_ms": at, "completed_at_ms": at})


def _rename(value: Any, old: object, new: str) -> Any:
    """Return a value with another id in all fields that name the session."""
    if isinstance(value, list):
        return [_rename(item, old, new) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: new if key in _SESSION_KEYS and item == old else _rename(item, old, new)
        for key, item in cast("dict[str, Any]", value).items()
    }


def complete_item(value: Any) -> dict[str, Any]:
    """Return an item in the client's own form: a message with all its fields, a tool of a server in its namespace."""
    found = _SERVER_TOOL.fullmatch(str(value.get("name"))) if value.get("type") == "function_call" else None
    if found is not None and "namespace" not in value:
        return {**value, "name": found["tool"], "namespace": found["namespace"]}
    if value.get("type", "message") != "message":
        return dict(value)
    content = value.get("content")
    kind = _TEXT_TYPES.get(value["role"], "input_text")
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    return {**value, "type": "message", "content": parts}


_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)$", re.MULTILINE)
_OUTPUT_MARK = "Output:\n"
_SERVER_MARK = "mcp__"


# ------------------------------------------------------------------------------------------------ what the screen shows


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
