"""Request bodies of any API as rows: the tools, the system text and the messages of the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.conversion.convert import render_for
from segue.corpora.rows import Parsed, Row, mark, parse_request
from segue.corpora.turns import Turns, count_findings
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.sessions.session import LIST_KEYS
from segue.sessions.values import list_of, string_of
from segue.wire.detect_body import detect_source
from segue.wire.registry import find_wire_or_server


def parse(value: Mapping[str, Any], api: str | None = None) -> Parsed:
    """Parse a body; without `api` its API is detected."""
    key = next((key for key in LIST_KEYS if value.get(key) is not None), "messages")
    entries: Any = value.get(key)
    if isinstance(entries, str):
        entries = [{"type": "message", "role": "user", "content": entries}]
    model = string_of(value.get("model"))
    found = list_of(entries)
    # What is no list of objects is left to the parser, which says so.
    marked = [_mark(entry, at, model) for at, entry in enumerate(found, 1)] if isinstance(entries, list) else entries
    body = {**value, key: marked}
    request, records = parse_request(body, api or detect_source(body))
    source = "file" if request.tools else "unknown"
    return Parsed((Row(request, tool_source=source, records=records),), len(found))


def _mark(entry: Any, at: int, model: str | None) -> Any:
    if not isinstance(entry, dict):
        return entry
    fields = cast("dict[str, Any]", entry)
    return mark(fields, at, model=model if fields.get("role") in ("assistant", "model", None) else None)


def render(row: Row, turns: Turns, api: str) -> dict[str, Any]:
    """Return the row as a body of an API. What the API changes takes the place of the changes of the turns."""
    wire = find_wire_or_server(api, argument="to")
    report = Report(target=api)
    model = row.request.model if wire.provider == _provider_of(row) else None
    messages = tuple(msgspec.structs.replace(message, extra=None) for message in row.request.messages)
    request = msgspec.structs.replace(row.request, messages=messages)
    _, rendered = render_for(request, wire, report, Policy(), model=model)
    turns.changes.clear()
    turns.changes.update(count_findings(report))
    return rendered.body


def _provider_of(row: Row) -> str | None:
    natives = (block.native for message in row.request.messages for block in (message, *message.blocks))
    api = next((native.api for native in natives if native is not None), None)
    return find_wire_or_server(api, argument="from").provider if api else None


def is_body(value: Mapping[str, Any]) -> bool:
    """Return whether a value has the conversation of an API."""
    return any(isinstance(value.get(key), list) or (key == "input" and value.get(key)) for key in LIST_KEYS)
