"""Writes sessions of Claude Code: one line for each block, each a child of the line before it.

The lines of one reply have the same `message.id`. The last line is a reply: after a user's message the client inserts
a request to continue. What segue added has the model `<synthetic>`, as the client marks its own texts.

The screen shows `toolUseResult` of a result, if it has the form of its tool; of other tools, and of errors, a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from segue.canonical.ids import short_hash
from segue.sessions.claude.reader import SYNTHETIC_MODEL
from segue.sessions.client import MARK_KEY, NewSession, SessionItem
from segue.sessions.lines import LineWriter
from segue.sessions.values import object_of

_ENTRY_TYPES = frozenset({"user", "assistant", "attachment", "system", "progress"})
_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
    "service_tier": "standard",
}
_LINE_KEYS = ("sessionId", "session_id")


class ClaudeWriter(LineWriter):
    version = "2.1.326"

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the entries, then the title and the last prompt, which the client lists.

        The last lines are short ones, from which the client lists a session.
        """
        draft = self._draft
        entries = list(self._entries())
        signed_copy = [{"type": "segue-seal", **self._signed_copy, "sessionId": draft.id}] if self._signed_copy else []
        if not self._is_new:
            yield from (*signed_copy, *entries, *_tail(draft, entries))
            return
        yield from self._parent_line()
        yield from (*entries, *signed_copy)
        if draft.title:
            yield {"type": "custom-title", "customTitle": draft.title, "sessionId": draft.id}
        yield from _tail(draft, entries)

    def renamed_lines(self) -> Iterator[dict[str, Any]]:
        yield from self._parent_line()
        for value in self._before:
            yield {**value, **{key: self._draft.id for key in _LINE_KEYS if key in value}}

    def _parent_line(self) -> Iterator[dict[str, Any]]:
        if self._parent:
            yield {"type": "segue-parent", **self._parent, "sessionId": self._draft.id}

    def _entries(self) -> Iterator[dict[str, Any]]:
        draft = self._draft
        parent = next((value["uuid"] for value in reversed(self._before) if _is_main_entry(value)), None)
        reply: str | None = None
        written: list[dict[str, Any]] = []
        calls: dict[str, tuple[dict[str, Any], str]] = {}
        for item in draft.items:
            self._set_time(item)
            role = item.value["role"]
            uuid = self._make_id()
            (block,) = item.value["content"]
            if role == "assistant":
                if reply is None or block in written:
                    # A line may repeat the reply so far, so a block occurs once in a reply.
                    reply, written = f"msg_{short_hash(uuid)}", []
                written.append(block)
                if block["type"] == "tool_use":
                    calls[block["id"]] = block, uuid
                content: dict[str, Any] = {"message": _reply_message(item, reply, draft), "type": "assistant"}
            else:
                reply = None
                content = {"type": "user", "message": {"role": "user", "content": _user_content(block)}}
                if block["type"] == "tool_result":
                    call, source = calls.get(block["tool_use_id"], (None, None))
                    content["toolUseResult"] = display_result(call, block)
                    if source is not None:
                        content["sourceToolAssistantUUID"] = source
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                **content,
                **({MARK_KEY: "added"} if item.synthetic else {}),
                "uuid": uuid,
                "timestamp": self._time,
                "userType": "external",
                "cwd": draft.cwd,
                "sessionId": draft.id,
                "version": self.version,
                **({"gitBranch": draft.git_branch} if draft.git_branch else {}),
            }
            parent = uuid


def _is_main_entry(value: dict[str, Any]) -> bool:
    return value.get("type") in _ENTRY_TYPES and bool(value.get("uuid")) and not value.get("isSidechain")


def _reply_message(item: SessionItem, reply: str, draft: NewSession) -> dict[str, Any]:
    (block,) = item.value["content"]
    calls = block["type"] == "tool_use"
    model = SYNTHETIC_MODEL if item.synthetic else draft.model
    return {
        "id": reply,
        "type": "message",
        "role": "assistant",
        # The client restores the model of the last reply, and complains about a model that it does not have.
        **({"model": model} if model is not None else {}),
        "content": [block],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def _user_content(block: dict[str, Any]) -> Any:
    """Return a typed text as the client writes it, and other blocks in a list."""
    return block["text"] if block["type"] == "text" and block.keys() <= {"type", "text"} else [block]


def _tail(draft: NewSession, entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    prompts = [
        content
        for entry in entries
        if entry["type"] == "user" and isinstance(content := entry["message"]["content"], str)
    ]
    if entries and prompts:
        yield {
            "type": "last-prompt",
            "lastPrompt": " ".join(prompts[-1].split())[:200],
            "leafUuid": entries[-1]["uuid"],
            "sessionId": draft.id,
        }


# ------------------------------------------------------------------------------------ what the screen shows of a result

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
