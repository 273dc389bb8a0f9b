"""Writes sessions of Claude Code: one line for each block, each a child of the line before it.

The lines of one reply have the same `message.id`. The last line is a reply: after a user's message the client inserts
a request to continue. What segue added has the model `<synthetic>`, as the client marks its own texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from segue.canonical.ids import short_hash
from segue.sessions.claude.display import display_result
from segue.sessions.claude.reader import SYNTHETIC_MODEL
from segue.sessions.client import Draft, Unit, decode_lines, encode_added_lines, encode_lines
from segue.sessions.marks import MARK_KEY, PARENT_KEY, SEAL_KEY
from segue.store.base import format_time

_ENTRY_TYPES = frozenset({"user", "assistant", "attachment", "system", "progress"})
_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
    "service_tier": "standard",
}
_LINE_KEYS = ("sessionId", "session_id")


def encode(draft: Draft, version: str) -> bytes:
    """Return a new session: the entries, then its title and the last prompt, which the client lists."""
    entries = list(_entries(draft, None, version))
    parent = [{"type": "segue-parent", PARENT_KEY: draft.parent, "sessionId": draft.id}] if draft.parent else []
    title = [{"type": "custom-title", "customTitle": draft.title, "sessionId": draft.id}] if draft.title else []
    return encode_lines([*parent, *entries, *_seal(draft), *title, *_tail(draft, entries)])


def encode_more(data: bytes, draft: Draft, version: str) -> bytes:
    """Return the entries that continue a session after its last entry."""
    values = decode_lines(data)
    last = next((value["uuid"] for value in reversed(values) if _is_main_entry(value)), None)
    entries = list(_entries(draft, last, version))
    return encode_added_lines(data, [*_seal(draft), *entries, *_tail(draft, entries)])


def copy(data: bytes, draft: Draft) -> bytes:
    """Return the lines of a session under another session id."""
    values = decode_lines(data)
    for value in values:
        value.update({key: draft.id for key in _LINE_KEYS if key in value})
    parent = {"type": "segue-parent", PARENT_KEY: draft.parent, "sessionId": draft.id}
    return encode_lines([parent, *values] if draft.parent is not None else values)


def _is_main_entry(value: dict[str, Any]) -> bool:
    return value.get("type") in _ENTRY_TYPES and bool(value.get("uuid")) and not value.get("isSidechain")


def _entries(draft: Draft, parent: str | None, version: str) -> Iterator[dict[str, Any]]:
    reply: str | None = None
    written: list[dict[str, Any]] = []
    calls: dict[str, tuple[dict[str, Any], str]] = {}
    at = next((unit.at for unit in draft.units if unit.at is not None), draft.now)
    for number, unit in enumerate(draft.units):
        at = max(at, unit.at or at)
        role = unit.value["role"]
        uuid = str(uuid5(NAMESPACE_URL, f"segue:{draft.id}:{draft.now}:{number}"))
        (block,) = unit.value["content"]
        if role == "assistant":
            if reply is None or block in written:
                # A line may repeat the reply so far, so a block occurs once in a reply.
                reply, written = f"msg_{short_hash(uuid)}", []
            written.append(block)
            if block["type"] == "tool_use":
                calls[block["id"]] = block, uuid
            content: dict[str, Any] = {"message": _reply_message(unit, reply, draft), "type": "assistant"}
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
            **({MARK_KEY: "added"} if unit.synthetic else {}),
            "uuid": uuid,
            "timestamp": format_time(at),
            "userType": "external",
            "cwd": draft.cwd,
            "sessionId": draft.id,
            "version": version,
            **({"gitBranch": draft.git_branch} if draft.git_branch else {}),
        }
        parent = uuid


def _reply_message(unit: Unit, reply: str, draft: Draft) -> dict[str, Any]:
    (block,) = unit.value["content"]
    calls = block["type"] == "tool_use"
    model = SYNTHETIC_MODEL if unit.synthetic else draft.model
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


def _seal(draft: Draft) -> Iterator[dict[str, Any]]:
    """Yield the line with the seal. The last lines are short ones, from which the client lists a session."""
    if draft.seal is not None:
        yield {"type": "segue-seal", SEAL_KEY: draft.seal, "sessionId": draft.id}


def _tail(draft: Draft, entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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
