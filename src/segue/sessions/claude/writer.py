"""Writes sessions of Claude Code: one line for each block, each a child of the line before it.

The lines of one reply have the same `message.id`. The last line is a reply: after a user's message the client inserts
a request to continue. What segue added has the model `<synthetic>`, as the client marks its own texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from segue.canonical.ids import short_hash
from segue.sessions.claude.display import display_result
from segue.sessions.claude.reader import SYNTHETIC_MODEL
from segue.sessions.client import MARK_KEY, NewSession, SessionItem
from segue.sessions.lines import LineWriter

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
