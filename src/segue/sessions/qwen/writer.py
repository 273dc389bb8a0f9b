"""Writes sessions of Qwen Code: a record for each prompt, reply and result, each a child of the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from segue.sessions.client import MARK_KEY, NewSession
from segue.sessions.gemini_contents import call_of, response_of, show_result, strip_placeholder
from segue.sessions.lines import LineWriter, decode_lines
from segue.sessions.qwen.reader import is_record
from segue.sessions.values import object_of

_PROVENANCES = {"user": "real_user", "assistant": "assistant_output", "tool_result": "tool_result"}


class QwenWriter(LineWriter):
    version = "0.24.4"

    def __init__(self, draft: NewSession, before: list[dict[str, Any]] | None = None) -> None:
        super().__init__(draft, before)
        self._last = next((value["uuid"] for value in reversed(self._before) if is_record(value)), None)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the records. A new session has its title at the end: the client reads it from there."""
        parent = self._parent if self._is_new else {}
        for record in self._records():
            yield {**record, **parent}
            parent = {}
        if self._is_new and self._draft.title is not None:
            payload = {"customTitle": self._draft.title, "titleSource": "manual"}
            yield self._make("system", subtype="custom_title", systemPayload=payload)

    def renamed_lines(self) -> list[dict[str, Any]]:
        values, draft = self._before, self._draft
        for value in values:
            value.update({key: name for key, name in (("sessionId", draft.id), ("cwd", draft.cwd)) if key in value})
        if values:
            values[0].update(self._parent)
        return values

    @classmethod
    def copy(cls, data: bytes, draft: NewSession) -> bytes:
        old = next((value["sessionId"] for value in decode_lines(data) if "sessionId" in value), None)
        lines = super().copy(data, draft)
        # The ids of prompts begin with that of the session.
        return lines.replace(f'"{old}########'.encode(), f'"{draft.id}########'.encode()) if old else lines

    def _records(self) -> Iterator[dict[str, Any]]:
        reply: list[dict[str, Any]] = []
        calls: dict[Any, dict[str, Any]] = {}
        is_added = False
        for item in self._draft.items:
            (part,) = strip_placeholder(item.value)["parts"]
            if item.value["role"] != "model" and reply:
                yield self._reply(reply, is_added=is_added)
                reply, is_added = [], False
            self._set_time(item)
            if item.value["role"] == "model":
                reply.append(part)
                calls[call_of(part).get("id")] = call_of(part)
                is_added |= item.synthetic
            elif response_of(part):
                yield self._make("tool_result", message=_message("user", part), toolCallResult=_display(part, calls))
            else:
                yield self._make("user", message=_message("user", part))
        if reply:
            yield {**self._reply(reply, is_added=is_added), **self._signed_copy}

    def _reply(self, parts: list[dict[str, Any]], *, is_added: bool) -> dict[str, Any]:
        model = {"model": self._draft.model} if self._draft.model is not None else {}
        added = {MARK_KEY: "added"} if is_added else {}
        return self._make("assistant", **model, message=_message("model", *parts), **added)

    def _make(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return a record that is a child of the one before it."""
        uuid = self._make_id()
        parent, self._last = self._last, uuid
        return {
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": self._draft.id,
            "timestamp": self._time,
            "type": kind,
            "provenance": _PROVENANCES.get(kind, "system"),
            "cwd": self._draft.cwd,
            "version": self.version,
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
