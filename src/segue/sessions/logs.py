"""Reads request bodies, lists of messages and session logs of coding clients, detected by their shape.

A session log becomes the request body with which the client would continue, in the client's API. Unreadable input is
an `InputError` that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.canonical.json import parse_json
from segue.errors import InputError
from segue.sessions.client import Client
from segue.sessions.parsed_log import LogLine, ParsedLog, find_bad_name
from segue.sessions.registry import CLIENTS

_BODY_KEYS = frozenset({"messages", "input", "contents"})
# The line number is given as the error's path, so the JSON parser's own "line 1" is removed.
_LINE_ONE = re.compile(r"\bat line 1, ")
_ENTRY = re.compile(r"\w+\[(\d+)\]")


def read_log(data: bytes, source: str | None = None) -> ParsedLog | dict[str, Any]:
    """Parse a file; a segue export is returned as its decoded JSON."""
    lines, cut_off = _parse_lines(data)
    log = _parse_log(data, lines, source, cut_off=cut_off is not None)
    if cut_off is None or not isinstance(log, ParsedLog):
        return log
    dropped = {**log.dropped, f"line at the end that is cut off (line {cut_off})": 1}
    return msgspec.structs.replace(log, dropped=dropped)


def detect_client(data: bytes) -> Client | None:
    """Return the client that a file is a session of; None for any other file."""
    try:
        lines, _ = _parse_lines(data)
        value = parse_json(data)[0] if lines is None else None
        if isinstance(value, dict):
            lines = [make_line(1, cast("dict[str, Any]", value))]
    except InputError:
        return None
    return _find_client(lines or [])


def _find_client(lines: list[LogLine]) -> Client | None:
    return next((client for client in CLIENTS.values() if any(map(client.reader.is_line, lines))), None)


def _parse_log(
    data: bytes, lines: list[LogLine] | None, source: str | None, *, cut_off: bool
) -> ParsedLog | dict[str, Any]:
    if lines is None:
        value = parse_json(data)[0]
        if not isinstance(value, dict):
            return _wrap_messages([LogLine(0, item) for item in _message_list(value)], source)
        if "segue" in value:
            return cast("dict[str, Any]", value)
        lines = [make_line(1, cast("dict[str, Any]", value))]
        if (_BODY_KEYS & value.keys() or source is not None) and _find_client(lines) is None:
            return ParsedLog("body", lines[0].value, source)
    client = _find_client(lines)
    if client is not None:
        if source not in (None, client.api):
            raise InputError(f"this is a session log of {client.title}, which uses {client.api}, not {source}")
        return client.reader.parse_log(lines)
    if len(lines) == 1 and (not cut_off or _BODY_KEYS & lines[0].value.keys()):
        return ParsedLog("body", lines[0].value, source)
    if all(_BODY_KEYS & line.value.keys() for line in lines):
        raise InputError(f"each of the {len(lines)} lines is a request body: import them one by one", path="line 1")
    return _wrap_messages(lines, source)


def add_line_number(error: InputError, log: ParsedLog) -> InputError:
    """Return the error with the line number of the message it is about, where known."""
    match = _ENTRY.match(error.path)
    index = int(match[1]) if match else -1
    if not 0 <= index < len(log.line_numbers) or not log.line_numbers[index]:
        return error
    return InputError(error.message, path=f"line {log.line_numbers[index]}: {error.path}")


def _parse_lines(data: bytes) -> tuple[list[LogLine] | None, int | None]:
    """Parse JSON lines: return their objects, and the number of the last line if it is cut off.

    The objects are None for a single JSON value. The last line is cut off in a log that is still being written.
    """
    rows = [(number, row) for number, row in enumerate(data.split(b"\n"), 1) if row.strip()]
    if len(rows) < 2 or not _is_json_object(rows[0][1]):
        return None, None
    lines: list[LogLine] = []
    for number, row in rows:
        try:
            value = parse_json(row)[0]
        except InputError as error:
            if number == rows[-1][0] and not data.endswith(b"\n") and row.lstrip().startswith(b"{"):
                return lines, number
            raise InputError(_LINE_ONE.sub("at ", error.message), path=f"line {number}") from None
        if not isinstance(value, dict):
            raise InputError(f"expected a JSON object, not {type(value).__name__}", path=f"line {number}")
        lines.append(make_line(number, cast("dict[str, Any]", value)))
    return lines, None


def make_line(number: int, value: dict[str, Any]) -> LogLine:
    """Return a line; `InputError` if it has a list or an object where every client has a name."""
    if (key := find_bad_name(value)) is not None:
        raise InputError(f"expected a string, not a {type(value[key]).__name__}", path=f"line {number}: {key}")
    return LogLine(number, value)


def _is_json_object(row: bytes) -> bool:
    """Return whether a line is a complete JSON object."""
    try:
        return isinstance(parse_json(row)[0], dict)
    except InputError:
        return False


def _message_list(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, dict) for item in items):
        empty = "" if items else "; this list is empty"
        raise InputError(f"expected a request body or a list of messages{empty}")
    return cast("list[Mapping[str, Any]]", items)


def _wrap_messages(lines: list[LogLine], source: str | None) -> ParsedLog:
    """Wrap bare messages into a body: Chat messages, Gemini contents or Responses items."""
    values = [line.value for line in lines]
    unknown = next((line for line in lines if not {"role", "type"} & line.value.keys()), None)
    if unknown is not None:
        path = f"line {unknown.number}" if unknown.number else ""
        raise InputError("neither a message nor a line of a supported session log", path=path)
    root = "contents" if any("parts" in value for value in values) else "messages"
    if root == "messages" and any("role" not in value for value in values):
        root = "input"
    return ParsedLog("messages", {root: values}, source, line_numbers=[line.number for line in lines])
