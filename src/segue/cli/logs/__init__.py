"""Conversations that others recorded: bodies, lists of messages, and the logs of clients, told apart by their shape.

A client's log becomes the request body that the client would go on from, in the API that it speaks. Whatever can't be
read is an `InputError` that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from segue.canonical.jsontext import read
from segue.cli.logs import claude_code, codex
from segue.cli.logs.recorded import Line, Recorded
from segue.errors import InputError

__all__ = ["Recorded", "read_log", "with_line"]

_BODIES = frozenset({"messages", "input", "contents"})
_CLIENTS = (claude_code, codex)
_ENTRY = re.compile(r"\w+\[(\d+)\]")


def read_log(data: bytes, source: str | None = None) -> Recorded | dict[str, Any]:
    """The body that a file holds; or, where it is an export of ours, that value."""
    lines = _lines(data)
    if lines is None:
        value = read(data)[0]
        if not isinstance(value, dict):
            return _messages([Line(0, item) for item in _listed(value)], source)
        if "segue" in value:
            return cast("dict[str, Any]", value)
        lines = [Line(1, cast("dict[str, Any]", value))]
        if _BODIES & value.keys() or source is not None:
            return Recorded("body", lines[0].value, source)
    for client in _CLIENTS:
        if any(map(client.is_line, lines)):
            if source not in (None, client.API):
                raise InputError(f"this is a log of {client.NAME}, which speaks {client.API} and not {source}")
            return client.recorded(lines)
    if len(lines) == 1:
        return Recorded("body", lines[0].value, source)
    if all(_BODIES & line.value.keys() for line in lines):
        raise InputError(f"each of the {len(lines)} lines is a body of its own: import them one by one", path="line 1")
    return _messages(lines, source)


def with_line(error: InputError, recorded: Recorded) -> InputError:
    """The error with the line of the file that it is about, where that can be told."""
    found = _ENTRY.match(error.path)
    place = int(found[1]) if found else -1
    if not 0 <= place < len(recorded.lines) or not recorded.lines[place]:
        return error
    return InputError(error.message, path=f"line {recorded.lines[place]}: {error.path}")


def _lines(data: bytes) -> list[Line] | None:
    """The objects of JSON lines; None where this is one JSON value."""
    rows = [(number, row) for number, row in enumerate(data.split(b"\n"), 1) if row.strip()]
    if len(rows) < 2 or not _is_whole(rows[0][1]):
        return None
    lines: list[Line] = []
    for number, row in rows:
        try:
            value = read(row)[0]
        except InputError as error:
            raise InputError(error.message, path=f"line {number}") from None
        if not isinstance(value, dict):
            raise InputError(f"an object was expected, not {type(value).__name__}", path=f"line {number}")
        lines.append(Line(number, cast("dict[str, Any]", value)))
    return lines


def _is_whole(row: bytes) -> bool:
    """Whether a line is a JSON object by itself, and not the beginning of one."""
    try:
        return isinstance(read(row)[0], dict)
    except InputError:
        return False


def _listed(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, dict) for item in items):
        empty = "" if items else "; this list is empty"
        raise InputError(f"a body, or a list of messages was expected{empty}")
    return cast("list[Mapping[str, Any]]", items)


def _messages(lines: list[Line], source: str | None) -> Recorded:
    """Messages without a body around them: chat messages, Gemini's contents or items of Responses."""
    values = [line.value for line in lines]
    stranger = next((line for line in lines if not {"role", "type"} & line.value.keys()), None)
    if stranger is not None:
        where = f"line {stranger.number}" if stranger.number else ""
        raise InputError("this is neither a message nor a line of a log that is known here", path=where)
    root = "contents" if any("parts" in value for value in values) else "messages"
    if root == "messages" and any("role" not in value for value in values):
        root = "input"
    return Recorded("messages", {root: values}, source, lines=[line.number for line in lines])
