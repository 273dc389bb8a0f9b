"""Writes sessions of Gemini CLI: prompts, and replies with their calls and results in `toolCalls`, as the screen shows
them. Results that are not in the order of their calls follow the reply in a message of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.client import MARK_KEY, NewSession
from segue.sessions.gemini.reader import IGNORED_PREFIXES, SHIELD
from segue.sessions.gemini_contents import (
    call_of,
    response_of,
    show_result,
    strip_names,
    strip_placeholder,
    unnest_media,
)
from segue.sessions.lines import LineWriter, encode_lines
from segue.sessions.values import list_of, object_of
from segue.store.base import format_time

# The names of tools on the screen.
_TITLES = {
    "glob": "FindFiles",
    "google_web_search": "GoogleSearch",
    "grep_search": "SearchText",
    "list_directory": "ReadFolder",
    "read_file": "ReadFile",
    "replace": "Edit",
    "run_shell_command": "Shell",
    "web_fetch": "WebFetch",
    "write_file": "WriteFile",
    "write_todos": "WriteTodos",
}
# Something else than the content on the screen, where a part would be shown as "[Function Response: NAME]".
_NOTHING = [{"text": " "}]


def _hash_folder(cwd: str) -> str:
    return sha256(cwd.encode("utf-8", "replace")).hexdigest()


def _split_object(data: bytes) -> list[dict[str, Any]]:
    """Return an older session, which is one object, as its facts and messages; empty for lines."""
    try:
        value = object_of(parse_json(data)[0])
    except InputError:
        return []
    if "messages" not in value:
        return []
    facts = {key: item for key, item in value.items() if key != "messages"}
    return [facts, *map(object_of, list_of(value["messages"]))]


def normalize_unit(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without what is not written."""
    return strip_names(strip_placeholder(value))


class _Reply:
    """A reply with its calls, and the results of them that follow."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.results: dict[str, dict[str, Any]] = {}
        self.is_added = False

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [call for part in self.parts if (call := call_of(part))]

    def expects(self, id: object) -> bool:
        """Return whether this is the id of a call without a result."""
        return bool(id) and id not in self.results and any(call.get("id") == id for call in self.calls)


class GeminiWriter(LineWriter):
    version = "0.61.0"

    def __init__(self, draft: NewSession, before: list[dict[str, Any]] | None = None) -> None:
        super().__init__(draft, before)
        self._reply: _Reply | None = None
        self._others: list[dict[str, Any]] = []

    def lines(self) -> Iterator[dict[str, Any]]:
        draft, now = self._draft, format_time(self._draft.now)
        if self._is_new:
            yield {
                "sessionId": draft.id,
                "projectHash": _hash_folder(draft.cwd),
                "startTime": now,
                "lastUpdated": now,
                "kind": "main",
                **({"summary": draft.title} if draft.title else {}),
                "cwd": draft.cwd,
                **self._parent,
            }
        yield from self._messages()
        yield {"$set": {"lastUpdated": now, **self._signed_copy}}

    def renamed_lines(self) -> list[dict[str, Any]]:
        draft, parent = self._draft, self._parent
        for value in self._before:
            for facts in (value, object_of(value.get("$set"))):
                names = {"sessionId": draft.id, "projectHash": _hash_folder(draft.cwd), "cwd": draft.cwd}
                facts.update({key: name for key, name in names.items() if key in facts})
            if "projectHash" in value:
                value.update(parent)
                parent = {}
        return self._before

    @classmethod
    def copy(cls, data: bytes, draft: NewSession) -> bytes:
        """Return a copy of a session; an older one, which is one object, becomes lines."""
        return super().copy(encode_lines(_split_object(data)) or data, draft)

    def _messages(self) -> Iterator[dict[str, Any]]:
        for item in self._draft.items:
            (part,) = normalize_unit(item.value)["parts"]
            if item.value["role"] == "model":
                if self._others or (self._reply is not None and self._reply.results):
                    yield from self._end_reply()
                self._set_time(item)
                self._reply = self._reply or _Reply()
                self._reply.parts.append(part)
                self._reply.is_added |= item.synthetic
            elif self._reply is not None and self._reply.expects(id := response_of(part).get("id")):
                self._set_time(item)
                self._reply.results[str(id)] = part
            elif response_of(part):
                # Of a call without an id, or of none: together with others after the reply.
                self._set_time(item)
                self._others.append(part)
            else:
                yield from self._end_reply()
                self._set_time(item)
                yield self._message("user", _shield(part))
        yield from self._end_reply()

    def _message(self, kind: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"id": self._make_id(), "timestamp": self._time, "type": kind, "content": list(parts)}

    def _end_reply(self) -> Iterator[dict[str, Any]]:
        reply, self._reply = self._reply, None
        others, self._others = self._others, []
        if reply is not None:
            yield from self._messages_of(reply)
        if others:
            yield self._results(others)

    def _messages_of(self, reply: _Reply) -> Iterator[dict[str, Any]]:
        message = self._message("gemini")
        thoughts, texts, unsorted = _sort_parts(reply.parts)
        if unsorted:
            message["content"] = reply.parts
            shown = [{"text": part["text"]} for part in reply.parts if part.get("text") and not part.get("thought")]
            message["displayContent"] = shown or _NOTHING
        else:
            message["content"] = texts[0]["text"] if len(texts) == 1 else texts
            message["thoughts"] = [{"subject": "", "description": part["text"]} for part in thoughts]
        if self._draft.model is not None:
            message["model"] = self._draft.model
        if reply.is_added:
            message[MARK_KEY] = "added"
        ids = [call.get("id") for call in reply.calls]
        in_order = list(reply.results) == [id for id in ids if id in reply.results]
        results: Mapping[str, dict[str, Any]] = reply.results if in_order else {}
        if ids:
            message["toolCalls"] = [self._call(call, results.get(str(call.get("id")))) for call in reply.calls]
        yield message
        if not in_order:
            yield self._results(reply.results.values())

    def _results(self, results: Iterable[dict[str, Any]]) -> dict[str, Any]:
        parts = [part for result in results for part in unnest_media(result)]
        return {**self._message("user", *parts), "displayContent": _NOTHING}

    def _call(self, call: dict[str, Any], result: dict[str, Any] | None) -> dict[str, Any]:
        """Return a call as the client stores it, with its result and what the screen shows of it."""
        response = object_of(response_of(result or {}).get("response"))
        name = call.get("name")
        return {
            **call,
            **({"result": unnest_media(result)} if result is not None else {}),
            "status": "error" if result is None or "error" in response else "success",
            "timestamp": self._time,
            "resultDisplay": show_result(call, response) if result is not None else "",
            "description": _describe(object_of(call.get("args"))),
            "displayName": _TITLES.get(str(name), name),
            "renderOutputAsMarkdown": False,
        }


def _sort_parts(parts: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], ...]:
    """Return thoughts and texts of a reply, and its parts if they are not thoughts, texts and calls in this order."""
    kinds = [_kind(part) for part in parts]
    if kinds != sorted(kinds) or any(kind > 2 for kind in kinds):
        return [], [], parts
    return [part for part in parts if _kind(part) == 0], [part for part in parts if _kind(part) == 1], []


def _kind(part: dict[str, Any]) -> int:
    if part.keys() == {"text", "thought"} and part["thought"] is True:
        return 0
    if part.keys() == {"text"}:
        return 1
    return 2 if part.keys() == {"functionCall"} and call_of(part).keys() == {"id", "name", "args"} else 3


def _shield(part: dict[str, Any]) -> dict[str, Any]:
    """Return a prompt so that the client does not take it for a command and ignore it."""
    text = part.get("text")
    is_ignored = isinstance(text, str) and text.strip().startswith(IGNORED_PREFIXES)
    return {**part, "text": f"{SHIELD}{text}"} if is_ignored else part


def _describe(arguments: dict[str, Any]) -> str:
    """Return the argument that the screen shows beside the name of a tool."""
    names = ("command", "file_path", "pattern", "dir_path", "query", "prompt")
    return next((str(arguments[name]) for name in names if name in arguments), "")
