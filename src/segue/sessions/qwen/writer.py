"""Writes sessions of Qwen Code: a record for each prompt, reply and result, each a child of the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from segue.sessions.client import Draft, decode_lines, encode_added_lines, encode_lines
from segue.sessions.marks import MARK_KEY, PARENT_KEY, SEAL_KEY
from segue.sessions.parts import call_of, response_of, show_result, strip_placeholder
from segue.sessions.qwen.reader import is_record
from segue.sessions.values import object_of
from segue.store.base import format_time

_PROVENANCES = {"user": "real_user", "assistant": "assistant_output", "tool_result": "tool_result"}


def encode(draft: Draft, version: str) -> bytes:
    """Return a new session, with its title at the end: the client reads it from there."""
    records = _Records(draft, None, version)
    lines = list(records)
    if draft.parent is not None:
        lines[0][PARENT_KEY] = draft.parent
    if draft.title is not None:
        payload = {"customTitle": draft.title, "titleSource": "manual"}
        lines.append(records.make("system", subtype="custom_title", systemPayload=payload))
    return encode_lines(lines)


def encode_more(data: bytes, draft: Draft, version: str) -> bytes:
    """Return the records that continue a session after its last one."""
    values = decode_lines(data)
    last = next((value["uuid"] for value in reversed(values) if is_record(value)), None)
    return encode_added_lines(data, _Records(draft, last, version))


def copy(data: bytes, draft: Draft) -> bytes:
    """Return the records of a session under another session id, in the folder of the draft."""
    values = decode_lines(data)
    old = next((value["sessionId"] for value in values if "sessionId" in value), None)
    for value in values:
        value.update({key: name for key, name in (("sessionId", draft.id), ("cwd", draft.cwd)) if key in value})
    if values and draft.parent is not None:
        values[0][PARENT_KEY] = draft.parent
    lines = encode_lines(values)
    if not isinstance(old, str):
        return lines
    # The ids of prompts begin with that of the session.
    return lines.replace(f'"{old}########'.encode(), f'"{draft.id}########'.encode())


class _Records:
    """The records of a draft."""

    def __init__(self, draft: Draft, parent: str | None, version: str) -> None:
        self._draft = draft
        self._parent = parent
        self._version = version
        self._at = next((unit.at for unit in draft.units if unit.at is not None), draft.now)
        self._number = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        reply: list[dict[str, Any]] = []
        calls: dict[Any, dict[str, Any]] = {}
        is_added = False
        for unit in self._draft.units:
            (part,) = strip_placeholder(unit.value)["parts"]
            if unit.value["role"] != "model" and reply:
                yield self._reply(reply, is_added=is_added)
                reply, is_added = [], False
            self._at = max(self._at, unit.at or self._at)
            if unit.value["role"] == "model":
                reply.append(part)
                calls[call_of(part).get("id")] = call_of(part)
                is_added |= unit.synthetic
            elif response_of(part):
                yield self.make("tool_result", message=_message("user", part), toolCallResult=_display(part, calls))
            else:
                yield self.make("user", message=_message("user", part))
        if reply:
            seal = {SEAL_KEY: self._draft.seal} if self._draft.seal is not None else {}
            yield {**self._reply(reply, is_added=is_added), **seal}

    def _reply(self, parts: list[dict[str, Any]], *, is_added: bool) -> dict[str, Any]:
        model = {"model": self._draft.model} if self._draft.model is not None else {}
        added = {MARK_KEY: "added"} if is_added else {}
        return self.make("assistant", **model, message=_message("model", *parts), **added)

    def make(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return a record that is a child of the one before it."""
        self._number += 1
        uuid = str(uuid5(NAMESPACE_URL, f"segue:{self._draft.id}:{self._draft.now}:{self._number}"))
        parent, self._parent = self._parent, uuid
        return {
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": self._draft.id,
            "timestamp": format_time(self._at),
            "type": kind,
            "provenance": _PROVENANCES.get(kind, "system"),
            "cwd": self._draft.cwd,
            "version": self._version,
            **({"gitBranch": self._draft.git_branch} if self._draft.git_branch else {}),
            **fields,
        }


def _message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _display(part: dict[str, Any], calls: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what the client's screen shows of a result. `calls` are those before it, by their ids."""
    id = response_of(part).get("id")
    response = object_of(response_of(part).get("response"))
    status = "error" if "error" in response else "success"
    shown = show_result(calls.get(id, {}), response)
    return {"callId": id, "status": status, "resultDisplay": shown, "executionStatus": status}
