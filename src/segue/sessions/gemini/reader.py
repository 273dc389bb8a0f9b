"""Parses sessions of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-….jsonl`, and the older single objects (`.json`).

A line with `sessionId` and `projectHash` has the facts of the session; a line with an `id` is a message, which replaces
an earlier one of the same id. `$rewindTo` removes a message and all after it; `$set` changes facts, and with `messages`
all messages: the client writes the whole history anew when it resumes or compacts a session.

A reply has its calls in `toolCalls`, with their results, or in its parts. The results are often in a message of their
own, too, and again in the history that is written on resuming.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from segue.errors import InputError
from segue.sessions.gemini_contents import API, call_of, nest_media, parts_of, response_of, text_of
from segue.sessions.parsed_log import LogLine, ParsedLog, SessionFacts, make_title
from segue.sessions.values import list_of, object_of
from segue.store.base import parse_time

_SESSION_CONTEXT, _HOOK_CONTEXT = "<session_context>", "<hook_context>"
IGNORED_PREFIXES = ("/", "?", _SESSION_CONTEXT, _HOOK_CONTEXT)
"""The client does not send a message of the user that begins with one of these when it resumes a session."""
SHIELD = "\u2060"
"""Written before a prompt that the client would ignore."""
_COMMAND = re.compile(r"/[\w:-]+(\s|$)")


class _Message(Struct):
    """A message with the line that it is on, and the time when it was first written."""

    number: int
    at: int | None
    value: dict[str, Any]


class _Record:
    """The facts and messages of a session after all of its lines."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.messages: dict[str, _Message] = {}
        self.model: str | None = None
        self.rewound = 0
        self._times: dict[str, int | None] = {}

    def add_line(self, line: LogLine) -> None:
        value = line.value
        changes = object_of(value.get("$set"))
        if isinstance(rewound := value.get("$rewindTo"), str):
            self._rewind(rewound)
        elif isinstance(value.get("id"), str):
            self._add(line.number, dict(value))
        elif changes or is_line(line):
            fields = changes or dict(value)
            if isinstance(fields.get("messages"), list):
                self._replace(line.number, fields["messages"])
            self.facts.update({key: item for key, item in fields.items() if key != "messages"})

    def find(self, key: str) -> str | None:
        """Return a fact of the session; None if it is not known."""
        value = self.facts.get(key)
        return value if isinstance(value, str) and value else None

    def _add(self, number: int, message: dict[str, Any]) -> None:
        at = self._times.setdefault(message["id"], parse_time(message.get("timestamp")))
        self.messages[message["id"]] = _Message(number, at, message)
        model = message.get("model")
        self.model = model if isinstance(model, str) and model else self.model

    def _replace(self, number: int, messages: list[Any]) -> None:
        """Replace all messages, unless by the client's context alone.

        It writes that first when it resumes a session. If it is killed then, its next start deletes the file.
        """
        if not any(list(_contents(object_of(message))) for message in messages):
            return
        self.messages = {}
        for message in messages:
            if isinstance(object_of(message).get("id"), str):
                self._add(number, object_of(message))

    def _rewind(self, id: str) -> None:
        ids = list(self.messages)
        kept = ids[: ids.index(id)] if id in ids else []
        self.rewound += len(ids) - len(kept)
        self.messages = {each: self.messages[each] for each in kept}


def is_line(line: LogLine) -> bool:
    return isinstance(line.value.get("sessionId"), str) and isinstance(line.value.get("projectHash"), str)


def parse_log(lines: list[LogLine]) -> ParsedLog:
    """Return the body with which the client would continue, each result once."""
    record = _Record()
    for line in lines:
        record.add_line(line)
    contents: list[dict[str, Any]] = []
    numbers: list[int] = []
    times: list[int | None] = []
    answered: set[str] = set()
    for message in record.messages.values():
        for content in _contents(message.value):
            if parts := list(_once(nest_media(content["parts"]), answered)):
                contents.append({**content, "parts": parts})
                numbers.append(message.number)
                times.append(message.at)
    if not contents:
        raise InputError("this session has no messages")
    body = {**({"model": record.model} if record.model else {}), "contents": contents}
    facts = SessionFacts(record.find("sessionId"), record.find("cwd"), name=record.find("summary"))
    dropped = {"messages that were rewound": record.rewound}
    return ParsedLog("gemini-cli", body, API, None, numbers, dropped, times, facts=facts)


def _contents(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message as the client sends it: a prompt or a reply, and the results of its calls."""
    parts = parts_of(message.get("content"))
    if message.get("type") == "user":
        if parts := _prompt_parts(parts):
            yield {"role": "user", "parts": [_without_shield(part) for part in parts]}
    elif message.get("type") == "gemini":
        calls = [object_of(call) for call in list_of(message.get("toolCalls"))]
        if not any(call_of(part) or part.get("thought") for part in parts):
            parts = [*map(_thought, list_of(message.get("thoughts"))), *parts, *map(_call, calls)]
        if parts:
            yield {"role": "model", "parts": parts}
            results = [part for call in calls for part in _results(call)]
            if results:
                yield {"role": "user", "parts": results}


def _thought(thought: object) -> dict[str, Any]:
    fields = object_of(thought)
    subject, text = fields.get("subject"), str(fields.get("description", ""))
    return {"text": f"**{subject}** {text}" if subject else text, "thought": True}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {key: call[key] for key in ("id", "name", "args") if key in call}}


def _results(call: dict[str, Any]) -> list[dict[str, Any]]:
    result = call.get("result")
    if isinstance(result, str) and result:
        response = {"id": call.get("id"), "name": call.get("name"), "response": {"output": result}}
        return [{"functionResponse": response}]
    return parts_of(result)


def _once(parts: list[dict[str, Any]], answered: set[str]) -> Iterator[dict[str, Any]]:
    """Yield parts without results that were there before. `answered` are the ids of calls with a result so far."""
    for part in parts:
        if isinstance(called := call_of(part).get("id"), str):
            answered.discard(called)
        result = response_of(part).get("id")
        if isinstance(result, str) and result:
            if result in answered:
                continue
            answered.add(result)
        yield part


def _prompt_parts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a prompt; none if they are context of the client, or one of its commands.

    When the client shortens a history, it puts its context and the first prompt into one message. It does not send that
    message when it resumes the session, so that the prompt is lost to it.
    """
    if parts and str(parts[0].get("text")).lstrip().startswith(_SESSION_CONTEXT):
        parts = parts[1:]
    text = text_of(parts).strip()
    is_ignored = text == "?" or text.startswith(_HOOK_CONTEXT) or bool(_COMMAND.match(text))
    return [] if is_ignored else parts


def _without_shield(part: dict[str, Any]) -> dict[str, Any]:
    text = part.get("text")
    return {**part, "text": text[len(SHIELD) :]} if isinstance(text, str) and text.startswith(SHIELD) else part


def find_title(values: list[dict[str, Any]]) -> str | None:
    """Return the title of a session from some of its lines: the given one, or the start of the first prompt."""
    facts = [{**value, **object_of(value.get("$set"))} for value in values]
    names = [name for each in reversed(facts) if isinstance(name := each.get("summary"), str) and name]
    if names:
        return make_title(names[0])
    messages = [value for each in facts for value in (each, *map(object_of, list_of(each.get("messages"))))]
    for message in messages:
        if message.get("type") == "user":
            text = text_of(_prompt_parts(parts_of(message.get("content")))).removeprefix(SHIELD)
            if text.strip():
                return make_title(text)
    return None
