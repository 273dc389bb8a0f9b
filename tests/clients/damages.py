"""The damages of real life that are done to a client's session before it is moved, each in the client's own form.

A damage changes the lines of a session's file; for opencode, the messages in its database. Compactions are made by
the client itself. Cut arguments are stored as the client stores them: as text in Claude Code and Codex, completed to
an object in Qwen Code and pi, and as a call of the tool `invalid` in opencode.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.sessions.lines import decode_lines, encode_lines
from segue.sessions.session import Session

CALL_WORD, RESULT_WORD = "RESULT-one", "RESULT-ONE"
"""The words of the call that a damage removes or cuts, and of its result."""
MANY_PROMPT, MANY_CALL, MANY_RESULT = "TASK-MANY: run it.", "RESULT-many", "RESULT-MANY"
COPIES = 1250
"""The number of times that an exchange of four messages is repeated."""

Lines = list[dict[str, Any]]


class Damage(Struct, frozen=True):
    """A change of a session's content, if any, and the clients whose sessions can't have it, with the reason."""

    title: str
    change: Callable[[Session], bytes] | None = None
    impossible: Mapping[str, str] = {}


class _Form(Struct, frozen=True):
    """How a client stores messages: which lines have them, which objects are calls, and how a call is cut.

    `keys` are those of a line's id and of its parent's, where the lines are a tree.
    """

    has_message: Callable[[dict[str, Any]], bool]
    is_call: Callable[[dict[str, Any]], bool]
    cut: Callable[[dict[str, Any]], None] | None
    keys: tuple[str, str] | None = None


def _cut_text(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments)
    return text[: text.index(CALL_WORD) + len(CALL_WORD) + 5]


def _complete(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return cut arguments as the clients complete them: the last value is short."""
    return json.loads(_cut_text(arguments) + '"}')


def _cut_claude(call: dict[str, Any]) -> None:
    text = _cut_text(call["input"])
    call["input"] = {"__unparsedToolInput": {"raw": text, "len": len(text)}}


def _cut_codex(call: dict[str, Any]) -> None:
    call["arguments"] = _cut_text(json.loads(call["arguments"]))


def _cut_qwen(part: dict[str, Any]) -> None:
    part["functionCall"]["args"] = _complete(part["functionCall"]["args"])


def _cut_pi(call: dict[str, Any]) -> None:
    call["arguments"] = _complete(call["arguments"])


def _cut_opencode(part: dict[str, Any]) -> None:
    text = _cut_text(part["state"]["input"])
    error = f"Invalid input for tool {part['tool']}: JSON parsing failed: Text: {text}.\nError message: Unterminated"
    part["state"]["input"] = {"tool": part["tool"], "error": error}
    part["tool"] = "invalid"


_FORMS: Mapping[str, _Form] = {
    "claude": _Form(
        lambda line: line.get("type") in ("user", "assistant"),
        lambda value: value.get("type") == "tool_use",
        _cut_claude,
        ("uuid", "parentUuid"),
    ),
    "codex": _Form(
        lambda line: line["type"] in ("response_item", "event_msg"),
        lambda value: value.get("type") == "function_call",
        _cut_codex,
    ),
    "gemini": _Form(
        lambda line: "id" in line or "messages" in line.get("$set", {}),
        lambda value: "functionCall" in value or {"args", "status"} <= value.keys(),
        None,
    ),
    "qwen": _Form(
        lambda line: line["type"] in ("user", "assistant", "tool_result"),
        lambda value: "functionCall" in value,
        _cut_qwen,
        ("uuid", "parentUuid"),
    ),
    "pi": _Form(
        lambda line: line["type"] == "message",
        lambda value: value.get("type") == "toolCall",
        _cut_pi,
        ("id", "parentId"),
    ),
    "opencode": _Form(lambda _: True, lambda value: value.get("type") == "tool", _cut_opencode),
}


# --------------------------------------------------------------------------------------------------------------- lines


def _decode(session: Session) -> Lines:
    if session.file.client == "opencode":
        return json.loads(session.data)["messages"]
    return decode_lines(session.data)


def _encode(session: Session, lines: Lines) -> bytes:
    if session.file.client == "opencode":
        return json.dumps({**json.loads(session.data), "messages": lines}).encode()
    return encode_lines(lines)


def store(session: Session, data: bytes) -> None:
    """Replace the content of a session; no client has it open."""
    if session.file.client != "opencode":
        session.file.path.write_bytes(data)
        return
    with closing(sqlite3.connect(session.file.path)) as database, database:
        for table in ("part", "message"):
            database.execute(f"DELETE FROM {table} WHERE session_id = ?", (session.file.id,))
        for message in json.loads(data)["messages"]:
            info = message["info"]
            at = info["time"]["created"]
            row = (info["id"], session.file.id, at, at, _without_ids(info))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
            rows = [(part["id"], info["id"], session.file.id, at, at, _without_ids(part)) for part in message["parts"]]
            database.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", rows)


def _without_ids(value: dict[str, Any]) -> str:
    return json.dumps({key: item for key, item in value.items() if key not in ("id", "sessionID", "messageID")})


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a value."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _walk(item)


# ------------------------------------------------------------------------------------------------------------- changes


def _replace_ids(make_id: Callable[[int, str], str]) -> Callable[[Session], bytes]:
    """Return a damage that replaces the ids of calls, by their number and tool."""

    def change(session: Session) -> bytes:
        data = session.data
        blocks = [block for entry in session.entries for block in entry.message.blocks]
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        for number, call in enumerate(calls):
            data = data.replace(f'"{call.raw_id}"'.encode(), f'"{make_id(number, call.name)}"'.encode())
        return data

    return change


def _remove_call(session: Session) -> bytes:
    """Remove a call. A line that has nothing else is removed too, and its children get its parent."""
    form = _FORMS[session.file.client]
    lines = _decode(session)

    def is_removed(value: Any) -> bool:
        return isinstance(value, dict) and form.is_call(value) and CALL_WORD in json.dumps(value)

    removed: dict[Any, Any] = {}
    kept: Lines = []
    for line in lines:
        emptied = is_removed(line.get("payload"))
        for value in _walk(line) if form.has_message(line) else ():
            for key, items in value.items():
                if isinstance(items, list) and any(map(is_removed, items)):
                    value[key] = [item for item in items if not is_removed(item)]
                    emptied = form.keys is not None and not value[key]
        if emptied and form.keys is not None:
            removed[line[form.keys[0]]] = line[form.keys[1]]
        if not emptied:
            kept.append(line)
    if form.keys is not None:
        for line in kept:
            while line.get(form.keys[1]) in removed:
                line[form.keys[1]] = removed[line[form.keys[1]]]
    return _encode(session, kept)


def _cut_arguments(session: Session) -> bytes:
    form = _FORMS[session.file.client]
    lines = _decode(session)
    for line in lines:
        for value in _walk(line) if form.has_message(line) else ():
            if form.cut is not None and form.is_call(value) and CALL_WORD in json.dumps(value):
                form.cut(value)
    return _encode(session, lines)


# The keys of ids, except for those of sessions.
_ID_KEYS = frozenset(
    ("uuid", "id", "turn_id", "call_id", "tool_use_id", "toolCallId", "callId", "callID", "messageID", "parentID")
)


def _repeat(session: Session) -> bytes:
    """Repeat the last exchange, with other ids and words in each copy."""
    form = _FORMS[session.file.client]
    lines = _decode(session)
    first = next(
        index for index, line in enumerate(lines) if form.has_message(line) and MANY_PROMPT in json.dumps(line)
    )
    exchange = [line for line in lines[first:] if form.has_message(line) and "$set" not in line]
    ids = {
        item
        for value in _walk(exchange)
        for key, item in value.items()
        if key in _ID_KEYS and isinstance(item, str) and item != session.file.id
    }
    text = json.dumps(exchange)
    copies = [lines[:first]]
    for number in range(COPIES):
        copy = text
        for id in ids:
            copy = copy.replace(f'"{id}"', f'"{id[:-5]}{number:05}"')
        for word in (MANY_PROMPT, MANY_CALL, MANY_RESULT):
            copy = copy.replace(word, number_word(word, number))
        copies.append(json.loads(copy))
    return _encode(session, _order(session.file.client, [line for copy in copies for line in copy], first))


def number_word(word: str, number: int) -> str:
    """Return a word as it is in one of the copies."""
    return f"{word}-{number:05}"


def _order(client: str, lines: Lines, first: int) -> Lines:
    """Return lines that name their place, from the first copy on: by their parent, their number, or their time."""
    keys = _FORMS[client].keys
    for number, line in enumerate(lines[first + 1 :], first + 1):
        if keys is not None:
            line[keys[1]] = lines[number - 1][keys[0]]
        if client == "codex":
            line["ordinal"] = number
        if client == "opencode":
            line["info"]["time"]["created"] = lines[first]["info"]["time"]["created"] + number
    return lines


PLAIN = "plain"
DIVERGED = "diverged"
"""Both clients continue the session: what comes home goes into a new session."""
ORPHAN = "orphan"
COMPACTION = "compaction"
MANY = "many"
DAMAGES: Mapping[str, Damage] = {
    PLAIN: Damage("There and back"),
    DIVERGED: Damage("There and back, while the first client continues the session too"),
    "long-ids": Damage("Ids of 96 characters", _replace_ids(lambda number, _: f"{number}".rjust(96, "x"))),
    "k2-ids": Damage("Ids of Kimi K2", _replace_ids(lambda number, name: f"functions.{name}:{number}")),
    # Two parallel calls keep ids of their own: no client tells them apart otherwise.
    "repeated-ids": Damage("Ids that repeat in every reply", _replace_ids(lambda number, _: f"call_{number % 2}")),
    "cut-off": Damage(
        "A last line that is cut off",
        lambda session: session.data + session.data[:100],
        {"opencode": "its sessions are in a database, which has no lines"},
    ),
    ORPHAN: Damage(
        "A result without its call", _remove_call, {"opencode": "a call and its result are one value in its database"}
    ),
    "cut-arguments": Damage(
        "A call whose arguments are cut off",
        _cut_arguments,
        {"gemini": "arguments are an object in Gemini's API and in its sessions, never a text"},
    ),
    COMPACTION: Damage("A compaction by the first client"),
    MANY: Damage("5,000 messages", _repeat),
}
