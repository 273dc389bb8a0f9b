"""STS files: a line with the session, then one line a message.

There is no place for images, errors and tools: a result that failed says so in its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segue.corpora.rows import Parsed, Provenance, Row, mark, row_from_chat
from segue.corpora.turns import Turns, arguments_text, make_target
from segue.errors import InputError
from segue.sessions.parsed_log import LogLine
from segue.sessions.values import list_of, object_of, string_of

STS = make_target("sts", user=())
HARNESS = "segue"


def is_header(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "session" and isinstance(value.get("harness"), str)


def parse(lines: Sequence[LogLine]) -> Parsed:
    """Parse the sessions of a file: one row for each header."""
    starts = [at for at, line in enumerate(lines) if is_header(line.value)]
    if not starts or starts[0]:
        raise InputError("the first line is no session", path="line 1")
    rows: list[Row] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        header, rest = lines[start], lines[start + 1 : end]
        messages = [_parse_message(line) for line in rest]
        if not messages:
            raise InputError("this session has no messages", path=f"line {header.number}")
        place = Provenance(line=header.number, session=str(header.value.get("id") or ""))
        rows.append(row_from_chat(messages, place=place))
    return Parsed(tuple(rows), len(lines) - len(starts))


def _parse_message(line: LogLine) -> dict[str, Any]:
    message = object_of(line.value.get("message"))
    role, content = message.get("role"), message.get("content")
    if line.value.get("type") != "message" or role not in ("system", "user", "assistant", "tool"):
        raise InputError("expected a message of system, user, assistant or tool", path=f"line {line.number}")
    entry: dict[str, Any] = {"role": role, "content": content}
    if role == "tool":
        entry["tool_call_id"] = message.get("toolCallId")
    if role == "assistant":
        if isinstance(message.get("reasoningContent"), str):
            entry["reasoning_content"] = message["reasoningContent"]
        calls = [{"type": "function", **object_of(call)} for call in list_of(message.get("toolCalls"))]
        if calls:
            entry["tool_calls"] = calls
    return mark(entry, line.number, model=string_of(message.get("model")))


def render(row: Row, turns: Turns, _number: str) -> list[dict[str, Any]]:
    name = row.provenance.session or "session"
    lines: list[dict[str, Any]] = [{"type": "session", "harness": HARNESS, "id": name}]
    for turn in turns.turns:
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if turn.reasoning:
            message["reasoningContent"] = turn.reasoning
        if turn.calls:
            message["toolCalls"] = [
                {"id": call.id, "function": {"name": call.name, "arguments": arguments_text(call)}}
                for call in turn.calls
            ]
        if turn.result is not None:
            message["toolCallId"] = turn.result.call_id
        if turn.model:
            message["model"] = turn.model
        lines.append({"type": "message", "message": message})
    return lines
