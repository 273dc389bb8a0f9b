"""`Row`: one conversation of a corpus, with where it came from and what is known about it.

A row has a `Request` whose calls and results are paired. Every message, item or step of the source is a record with a
number: the line of a log, else its place in the list. `records` are those that are in the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Message, Native, ToolResponse
from segue.canonical.request import Request
from segue.errors import InputError
from segue.wire.registry import WIRES

Flag = Literal[
    "sidechain",  # the conversation of a subagent
    "rewound",  # the user took back a part of it
    "compacted",  # the client replaced it by a summary
    "truncated",  # a result was cut off by the client
]
ToolSource = Literal["file", "client", "unknown"]

MARK = "segueRecord"
"""The key under which an entry of a body has its record and the facts that the API has no field for."""


class Provenance(Struct, frozen=True):
    """The file and the line of a row, its format, and the session and version that the file names."""

    file: str = ""
    line: int = 0
    format: str = ""
    session: str = ""
    client_version: str = ""
    offset: int = 0


class Row(Struct, frozen=True):
    """A conversation. `tool_source` says where its tools are from: the file, the client's known tools, or nowhere."""

    request: Request
    provenance: Provenance = Provenance()
    flags: tuple[Flag, ...] = ()
    tool_source: ToolSource = "unknown"
    records: frozenset[int] = frozenset()


class Parsed(Struct, frozen=True):
    """The rows of a session or a line, the number of records read, and why some of them are in no row."""

    rows: tuple[Row, ...]
    records: int
    left_out: Mapping[str, int] = {}


def mark(entry: Mapping[str, Any], record: int, **facts: Any) -> dict[str, Any]:
    """Return an entry of a body with its record, and facts: `model`, `weight`, `error`, further records as `joined`."""
    return {**entry, MARK: {"record": record, **{key: value for key, value in facts.items() if value is not None}}}


def parse_request(body: Mapping[str, Any], api: str) -> tuple[Request, frozenset[int]]:
    """Parse a body whose entries are marked: return the request without the marks, and the records in it.

    A message has the model and the weight of its mark in `extra`.
    """
    request = WIRES[api].parse_request(body)
    if not request.messages:
        raise InputError("there are no messages")
    marks = [_marks_of(message) for message in request.messages]
    for message in request.messages:
        for native in _natives_of(message):
            # The fragment is a copy that `mark` made, and several blocks may have it.
            cast("dict[str, Any]", native.fragment).pop(MARK, None)
    records = {record for found in marks for each in found for record in (each["record"], *each.get("joined", ()))}
    messages = tuple(map(_add_facts, request.messages, marks))
    return msgspec.structs.replace(request, messages=messages, native=None), frozenset(records)


def _natives_of(message: Message) -> list[Native]:
    return [each.native for each in (message, *message.blocks) if each.native is not None]


def _marks_of(message: Message) -> list[dict[str, Any]]:
    return [native.fragment[MARK] for native in _natives_of(message) if MARK in native.fragment]


def _add_facts(message: Message, marks: Sequence[Mapping[str, Any]]) -> Message:
    facts = {key: each[key] for each in marks for key in ("model", "weight") if key in each}
    if any("error" in each for each in marks):
        blocks = [
            msgspec.structs.replace(block, error=True) if isinstance(block, ToolResponse) else block
            for block in message.blocks
        ]
        message = msgspec.structs.replace(message, blocks=tuple(blocks))
    return msgspec.structs.replace(message, extra={**(message.extra or {}), **facts}) if facts else message


def fact_of(message: Message, name: str) -> Any:
    """Return the model or the weight of a message; None if it is not known."""
    return (message.extra or {}).get(name)


def make_call(call_id: object, name: object, arguments: object) -> dict[str, Any]:
    """Return a call of Chat."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def row_from_chat(messages: Sequence[Mapping[str, Any]], tools: object = None, place: Provenance | None = None) -> Row:
    """Return the row of Chat messages that are marked; 0 is the mark of text that is no record of its own."""
    body = {"messages": list(messages), **({"tools": tools} if tools else {})}
    request, records = parse_request(body, "openai-chat")
    return Row(request, place or Provenance(), tool_source="file" if tools else "unknown", records=records - {0})
