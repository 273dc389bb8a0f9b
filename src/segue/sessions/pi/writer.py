"""Writes sessions of pi (version 3): each entry is a child of the one before it.

All blocks of a reply are one message; each result is a message of its own. The client restores the provider and the
model of the last reply. The API that is written is none of the client's: it then makes the ids of calls valid for the
model that it continues with, and expects no reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from segue.sessions.client import Draft, Unit, decode_lines, encode_added_lines, encode_lines
from segue.sessions.marks import MARK_KEY, PARENT_KEY, SEAL_KEY
from segue.sessions.neutral import objects_of
from segue.sessions.pi.reader import VERSION, find_model
from segue.sessions.values import object_of
from segue.store.base import format_time

_API = "segue"
_COSTS = ("input", "output", "cacheRead", "cacheWrite")
_USAGE = {**dict.fromkeys(_COSTS, 0), "totalTokens": 0, "cost": {**dict.fromkeys(_COSTS, 0), "total": 0}}

Model = tuple[str | None, str | None]


def encode(draft: Draft, model: Model) -> bytes:
    """Return a new session, for a provider and a model of the client."""
    at = format_time(draft.now)
    header: dict[str, Any] = {"type": "session", "version": VERSION, "id": draft.id, "timestamp": at, "cwd": draft.cwd}
    if draft.parent is not None:
        header[PARENT_KEY] = draft.parent
    return encode_lines([header, *_Entries(draft, model, [])])


def encode_more(data: bytes, draft: Draft, model: Model) -> bytes:
    """Return the entries that continue a session after its last entry."""
    values = decode_lines(data)
    own = find_model(values)
    return encode_added_lines(data, _Entries(draft, own if all(own) else model, values))


def copy(data: bytes, draft: Draft) -> bytes:
    """Return the lines of a session under another id, in the folder of the draft."""
    values = decode_lines(data)
    for value in values:
        if value.get("type") == "session":
            value.update(id=draft.id, cwd=draft.cwd, **({PARENT_KEY: draft.parent} if draft.parent else {}))
    return encode_lines(values)


class _Entries:
    """The entries of a draft, after those of a session."""

    def __init__(self, draft: Draft, model: Model, before: list[dict[str, Any]]) -> None:
        self._draft = draft
        self._provider, self._model = model
        self._taken = {value.get("id") for value in before if value.get("type") != "session"}
        last = [value for value in before if value.get("type") != "session"][-1:]
        self._parent = last[0].get("id") if last else None
        self._at = next((unit.at for unit in draft.units if unit.at is not None), draft.now)
        self._calls = {
            block.get("id"): block
            for value in before
            for block in objects_of(object_of(value.get("message")).get("content"))
            if block.get("type") == "toolCall"
        }
        self._has_name = not before and draft.title is not None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._has_name:
            yield self._entry("session_info", name=self._draft.title)
        reply: list[Unit] = []
        for unit in self._draft.units:
            if reply and (unit.value["role"] == "user" or unit.synthetic):
                yield self._reply(reply)
                reply = []
            self._at = max(self._at, unit.at or self._at)
            if unit.value["role"] == "assistant":
                reply.append(unit)
            else:
                yield self._message(self._input(unit.value["content"][0]))
        if reply:
            seal = {SEAL_KEY: self._draft.seal} if self._draft.seal is not None else {}
            yield {**self._reply(reply), **seal}

    def _entry(self, kind: str, **fields: Any) -> dict[str, Any]:
        name = str(uuid5(NAMESPACE_URL, f"segue:{self._draft.id}:{self._draft.now}:{len(self._taken)}"))
        short = name if name[:8] in self._taken else name[:8]
        entry = {"type": kind, "id": short, "parentId": self._parent, "timestamp": format_time(self._at), **fields}
        self._taken.add(short)
        self._parent = short
        return entry

    def _message(self, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return self._entry("message", message={**message, "timestamp": self._at // 1000}, **fields)

    def _reply(self, units: list[Unit]) -> dict[str, Any]:
        blocks = [unit.value["content"][0] for unit in units]
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
        return self._message(message, **({MARK_KEY: "added"} if units[0].synthetic else {}))

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
