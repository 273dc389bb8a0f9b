"""Writes sessions of pi (version 3): each entry is a child of the one before it.

All blocks of a reply are one message; each result is a message of its own. The client restores the provider and the
model of the last reply. The API that is written is none of the client's: it then makes the ids of calls valid for the
model that it continues with, and expects no reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from segue.sessions.any_provider import objects_of
from segue.sessions.client import MARK_KEY, NewSession, SessionItem
from segue.sessions.lines import LineWriter
from segue.sessions.pi.reader import VERSION, find_model
from segue.sessions.values import object_of
from segue.store.base import format_time

_API = "segue"
_COSTS = ("input", "output", "cacheRead", "cacheWrite")
_USAGE = {**dict.fromkeys(_COSTS, 0), "totalTokens": 0, "cost": {**dict.fromkeys(_COSTS, 0), "total": 0}}


class PiWriter(LineWriter):
    version = "0.87.1"

    def __init__(self, draft: NewSession, before: list[dict[str, Any]] | None = None) -> None:
        super().__init__(draft, before)
        own = find_model(self._before)
        self._provider, self._model = own if all(own) else (draft.provider, draft.model)
        ids = [value.get("id") for value in self._before if value.get("type") != "session"]
        self._taken = set(ids)
        self._last = ids[-1] if ids else None
        self._calls = {
            block.get("id"): block
            for value in self._before
            for block in objects_of(object_of(value.get("message")).get("content"))
            if block.get("type") == "toolCall"
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        if self._is_new:
            draft = self._draft
            at = format_time(draft.now)
            header = {"type": "session", "version": VERSION, "id": draft.id, "timestamp": at, "cwd": draft.cwd}
            yield {**header, **self._parent}
            if draft.title is not None:
                yield self._entry("session_info", name=draft.title)
        yield from self._entries()

    def renamed_lines(self) -> list[dict[str, Any]]:
        for value in self._before:
            if value.get("type") == "session":
                value.update(id=self._draft.id, cwd=self._draft.cwd, **self._parent)
        return self._before

    def _entries(self) -> Iterator[dict[str, Any]]:
        reply: list[SessionItem] = []
        for item in self._draft.items:
            if reply and (item.value["role"] == "user" or item.synthetic):
                yield self._reply(reply)
                reply = []
            self._set_time(item)
            if item.value["role"] == "assistant":
                reply.append(item)
            else:
                yield self._message(self._input(item.value["content"][0]))
        if reply:
            yield {**self._reply(reply), **self._signed_copy}

    def _entry(self, kind: str, **fields: Any) -> dict[str, Any]:
        name = self._make_id()
        short = name if name[:8] in self._taken else name[:8]
        entry = {"type": kind, "id": short, "parentId": self._last, "timestamp": self._time, **fields}
        self._taken.add(short)
        self._last = short
        return entry

    def _message(self, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return self._entry("message", message={**message, "timestamp": self._at // 1000}, **fields)

    def _reply(self, items: list[SessionItem]) -> dict[str, Any]:
        blocks = [item.value["content"][0] for item in items]
        content = [_reply_block(block) for block in blocks]
        self._calls.update({block["id"]: block for block in content if block["type"] == "toolCall"})
        message = {
            "role": "assistant",
            "content": content,
            "api": _API,
            "provider": self._provider or _API,
            "model": self._model or "moved",
            "usage": _USAGE,
            "stopReason": "toolUse" if blocks[-1]["type"] == "tool_use" else "stop",
        }
        return self._message(message, **({MARK_KEY: "added"} if items[0].synthetic else {}))

    def _input(self, block: dict[str, Any]) -> dict[str, Any]:
        if block["type"] != "tool_result":
            return {"role": "user", "content": [_input_block(block)]}
        call = self._calls.get(block["tool_use_id"], {})
        is_error = bool(block.get("is_error"))
        diff = None if is_error else _show_edit(object_of(call.get("arguments")))
        return {
            "role": "toolResult",
            "toolCallId": block["tool_use_id"],
            "toolName": call.get("name", ""),
            "content": [_input_block(part) for part in objects_of(block.get("content"))],
            **({"details": {"diff": diff}} if diff else {}),
            "isError": is_error,
        }


def _reply_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        return {"type": "toolCall", "id": block["id"], "name": block["name"], "arguments": block["input"]}
    return _input_block(block)


def _input_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "image":
        source = block["source"]
        return {"type": "image", "data": source["data"], "mimeType": source["media_type"]}
    return {"type": "text", "text": block["text"]}


def _show_edit(arguments: dict[str, Any]) -> str:
    """Return the diff of an edit for the screen, with the numbers of its own lines; empty for any other call."""
    lines: list[str] = []
    for edit in objects_of(arguments.get("edits")):
        for sign, text in (("-", edit.get("oldText")), ("+", edit.get("newText"))):
            found = text.splitlines() if isinstance(text, str) else []
            lines += [f"{sign}{number} {line}" for number, line in enumerate(found, 1)]
    return "\n".join(lines)
