"""Writes sessions of Codex: the items that the model sees, and the events that the screen shows.

A turn begins with a message of the user. The items are complete Responses items; outputs follow their calls. A session
that keeps its history in pages (`history_mode`) has numbered lines, and an event for each message, command and change
of a file; an older one has events for messages only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from segue.sessions.client import Draft, decode_lines, encode_added_lines, encode_lines
from segue.sessions.codex.display import display_call, display_message, display_message_in_page
from segue.sessions.marks import PARENT_KEY, SEAL_KEY
from segue.store.base import format_time

_SESSION_KEYS = frozenset({"session_id", "thread_id"})
_SERVER_TOOL = re.compile(r"(?P<namespace>mcp__.+?)__(?P<tool>.+)")
_TEXT_TYPES = {"assistant": "output_text"}


def encode(draft: Draft, version: str, provider: str | None) -> bytes:
    """Return a new session. Without a provider it can be resumed with any: the client refuses to change a provider."""
    at = format_time(draft.now)
    meta: dict[str, Any] = {
        "id": draft.id,
        "session_id": draft.id,
        "timestamp": at,
        "cwd": draft.cwd,
        "originator": "codex-tui",
        "cli_version": version,
        "source": "cli",
        "thread_source": "user",
        **({"model_provider": provider} if provider else {}),
        "history_mode": "paginated",
        **({"git": {"branch": draft.git_branch}} if draft.git_branch else {}),
        **({PARENT_KEY: draft.parent} if draft.parent else {}),
    }
    head = {"timestamp": at, "type": "session_meta", "payload": meta}
    return encode_lines(_number([head, *_Lines(draft, has_pages=True)], 0))


def encode_more(data: bytes, draft: Draft) -> bytes:
    """Return the lines that continue a session."""
    values = decode_lines(data)
    metas = [value["payload"] for value in values if value.get("type") == "session_meta"]
    has_pages = bool(metas) and metas[0].get("history_mode") == "paginated"
    numbers = [number for value in values if isinstance(number := value.get("ordinal"), int)]
    lines: Iterator[dict[str, Any]] = iter(_Lines(draft, has_pages=has_pages))
    return encode_added_lines(data, _number(lines, numbers[-1] + 1) if numbers else lines)


def _number(lines: Any, first: int) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, first):
        yield {"timestamp": line["timestamp"], "ordinal": number, "type": line["type"], "payload": line["payload"]}


def copy(data: bytes, draft: Draft) -> bytes:
    """Return the lines of a session under another id, in the folder of the draft."""
    values = decode_lines(data)
    metas = [cast("dict[str, Any]", value["payload"]) for value in values if value.get("type") == "session_meta"]
    old = metas[0].get("id") if metas else None
    for meta in metas:
        meta.pop("history_base", None)
        if meta.get("id") == old:
            meta.update(id=draft.id, cwd=draft.cwd, **({PARENT_KEY: draft.parent} if draft.parent else {}))
    lines = [_rename(value, old, draft.id) for value in values]
    if lines and isinstance(lines[0].get("ordinal"), int):
        # A fork has the lines of its parent after its own first line.
        lines = [{**line, "ordinal": number} for number, line in enumerate(lines)]
    return encode_lines(lines)


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


class _Lines:
    """The lines of a draft, without numbers."""

    def __init__(self, draft: Draft, *, has_pages: bool) -> None:
        self._draft = draft
        self._has_pages = has_pages
        self._turn: str | None = None
        self._at = next((unit.at for unit in draft.units if unit.at is not None), draft.now)
        self._last_text: str | None = None
        self._calls: dict[str, dict[str, Any]] = {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, unit in enumerate(self._draft.units):
            self._at = max(self._at, unit.at or self._at)
            item = complete_item(unit.value)
            is_prompt = item["type"] == "message" and item["role"] == "user"
            if is_prompt or self._turn is None:
                yield from self._end_turn()
                yield from self._begin_turn(number)
            yield self._line("response_item", item)
            yield from self._events(item, number)
        yield from self._end_turn(**({SEAL_KEY: self._draft.seal} if self._draft.seal is not None else {}))

    def _line(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": format_time(self._at), "type": kind, "payload": payload}

    def _make_id(self, kind: str, number: int) -> str:
        return str(uuid5(NAMESPACE_URL, f"segue:{kind}:{self._draft.id}:{self._draft.now}:{number}"))

    def _begin_turn(self, number: int) -> Iterator[dict[str, Any]]:
        self._turn = self._make_id("turn", number)
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

    def _events(self, item: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
        """Yield what the screen shows of an item."""
        if item["type"] == "message":
            if item["role"] == "assistant":
                self._last_text = "\n".join(part["text"] for part in item["content"] if "text" in part)
            if not self._has_pages:
                yield from (self._line("event_msg", event) for event in display_message(item))
                return
            shown = display_message_in_page(item, self._make_id("item", number))
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
