"""Writes sessions of Codex: the items that the model sees, and the events that the screen shows.

A turn begins with a message of the user. The items are complete Responses items; outputs follow their calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from segue.sessions.client import Draft, decode_lines, encode_lines
from segue.store.base import format_time

_TEXT_TYPES = {"assistant": "output_text"}


def encode(draft: Draft, version: str) -> bytes:
    """Return a new session. It names no provider: the client refuses to resume a session with another one."""
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
        **({"git": {"branch": draft.git_branch}} if draft.git_branch else {}),
        **({"segue_parent": draft.parent} if draft.parent else {}),
    }
    head = {"timestamp": at, "type": "session_meta", "payload": meta}
    return encode_lines([head, *_lines(draft)])


def encode_more(data: bytes, draft: Draft) -> bytes:
    """Return the lines that continue a session."""
    values = decode_lines(data)
    numbers = [number for value in values if isinstance(number := value.get("ordinal"), int)]
    separator = b"" if not data or data.endswith(b"\n") else b"\n"
    lines = list(_lines(draft))
    if numbers:
        lines = [
            {"timestamp": line.pop("timestamp"), "ordinal": number, **line}
            for number, line in enumerate(lines, numbers[-1] + 1)
        ]
    return separator + encode_lines(lines)


def copy(data: bytes, draft: Draft) -> bytes:
    """Return the lines of a session under another id."""
    values = decode_lines(data)
    old: object = None
    for value in values:
        payload = cast("dict[str, Any]", value["payload"]) if isinstance(value.get("payload"), dict) else {}
        if value.get("type") == "session_meta" and old in (None, payload.get("id")):
            old = payload.get("id")
            payload.update({key: draft.id for key in ("id", "session_id") if key in payload})
            if draft.parent is not None:
                payload["segue_parent"] = draft.parent
        elif payload.get("thread_id") == old:
            payload["thread_id"] = draft.id
    return encode_lines(values)


def _lines(draft: Draft) -> Iterator[dict[str, Any]]:
    turn: str | None = None
    at = next((unit.at for unit in draft.units if unit.at is not None), draft.now)
    last_text: str | None = None
    for number, unit in enumerate(draft.units):
        at = max(at, unit.at or at)
        item = complete_item(unit.value)
        is_prompt = item["type"] == "message" and item["role"] == "user"
        if is_prompt or turn is None:
            if turn is not None:
                yield _line(at, "event_msg", _end_turn(turn, last_text))
            turn = str(uuid5(NAMESPACE_URL, f"segue:{draft.id}:{draft.now}:{number}"))
            yield _line(at, "event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": None})
            if draft.model is not None:
                yield _line(at, "turn_context", {"turn_id": turn, "cwd": draft.cwd, "model": draft.model})
        yield _line(at, "response_item", item)
        event = _display_event(item)
        if event is not None:
            last_text = event["message"] if event["type"] == "agent_message" else last_text
            yield _line(at, "event_msg", event)
    if turn is not None:
        yield _line(at, "event_msg", _end_turn(turn, last_text))


def _line(at: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": format_time(at), "type": kind, "payload": payload}


def _end_turn(turn: str, text: str | None) -> dict[str, Any]:
    return {"type": "task_complete", "turn_id": turn, "last_agent_message": text}


def complete_item(value: Any) -> dict[str, Any]:
    """Return a message with all the fields that the client's own have; other items as they are."""
    if "role" not in value:
        return dict(value)
    content = value["content"]
    kind = _TEXT_TYPES.get(value["role"], "input_text")
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    return {**value, "type": "message", "content": parts}


def _display_event(item: dict[str, Any]) -> dict[str, Any] | None:
    if item["type"] != "message":
        return None
    texts = [part["text"] for part in item["content"] if isinstance(part.get("text"), str)]
    text = "\n".join(texts)
    if item["role"] == "assistant":
        return {"type": "agent_message", "message": text}
    images = [part["image_url"] for part in item["content"] if isinstance(part.get("image_url"), str)]
    return {"type": "user_message", "message": text, "images": images} if item["role"] == "user" else None
