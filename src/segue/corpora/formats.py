"""The table of formats: how each is detected by content, parsed and rendered.

Formats `in_lines` have a row in each line, so that a file can be divided; others are read file by file. Detection tries
the rows of the table in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from segue.corpora import adp, atif, bodies, chat, sessions, sharegpt, sts
from segue.corpora.batches import BATCHES, BatchForm
from segue.corpora.rows import Parsed, Row
from segue.corpora.turns import Turns
from segue.errors import InputError, unknown_name_error
from segue.sessions.client import CANONICAL, Client
from segue.sessions.parsed_log import LogLine, find_bad_name
from segue.sessions.registry import CLIENTS
from segue.sessions.values import list_of
from segue.wire.registry import WIRES, find_wire_or_server

Value = Mapping[str, Any]
Rendered = tuple[dict[str, Any] | list[dict[str, Any]], Turns]


class Format(Struct, frozen=True):
    """A format. Without `render` it can only be read.

    `parse` takes the value of a line, or all lines of a file if not `in_lines`. `count` returns the number of records
    of a value that can't be parsed. `render` takes a row, the model whose replies are trained on, and the row's number.
    """

    name: str
    title: str
    matches: Callable[[Value], bool]
    parse: Callable[[Any], Parsed]
    count: Callable[[Value], int]
    render: Callable[[Row, str | None, str], Rendered] | None = None
    in_lines: bool = True
    batch: BatchForm | None = None

    @property
    def is_file_per_row(self) -> bool:
        """Whether a row takes several lines, so that each row is a file."""
        return self.name == "sts"


def _size_of(*keys: str) -> Callable[[Value], int]:
    def count(value: Value) -> int:
        return max((len(list_of(value.get(key))) for key in keys), default=0) or 1

    return count


def _plain(render: Callable[[Row, str | None], Rendered]) -> Callable[[Row, str | None, str], Rendered]:
    return lambda row, only_model, _number: render(row, only_model)


def _session_format(name: str, client: Client) -> Format:
    def matches(value: Value) -> bool:
        return find_bad_name(value) is None and client.reader.is_line(LogLine(1, value))

    return Format(name, client.title, matches, partial(sessions.parse, client), lambda _value: 1, in_lines=False)


def _batch_format(form: BatchForm) -> Format:
    def parse(value: tuple[Value, Value | None]) -> Parsed:
        return form.parse(*value)

    def count(value: Value) -> int:
        return _BODY_SIZE(value.get(form.request) or {}) if form.is_request(value) else 1

    def render(row: Row, _model: str | None, number: str) -> Rendered:
        return form.render(row, number)

    return Format(form.name, f"batch file ({form.api})", form.matches, parse, count, render, batch=form)


def _api_format(name: str) -> Format:
    def render(row: Row, _model: str | None, _number: str) -> Rendered:
        return bodies.render(row, name)

    return Format(name, f"request bodies ({name})", bodies.is_body, partial(bodies.parse, api=name), _BODY_SIZE, render)


_BODY_SIZE = _size_of("messages", "input", "contents")
_CLIENT_NAMES = {"gemini": "gemini-cli"}
"""The names of formats of clients that are also the name of an API."""

ROWS: tuple[Format, ...] = (
    Format("sts", "STS sessions", sts.is_header, sts.parse, lambda _value: 1, _plain(sts.render), in_lines=False),
    *(
        _session_format(_CLIENT_NAMES.get(name, name), client)
        for name, client in CLIENTS.items()
        if client.api != CANONICAL
    ),
    Format("atif", "ATIF 1.8", atif.is_trajectory, atif.parse, _size_of("steps"), _plain(atif.render)),
    Format("adp", "ADP 1.3", adp.is_trajectory, adp.parse, _size_of("content"), _plain(adp.render)),
    Format(
        "sharegpt",
        "ShareGPT",
        sharegpt.is_row,
        sharegpt.parse,
        _size_of("conversations"),
        _plain(sharegpt.render),
    ),
    *map(_batch_format, BATCHES),
    Format(
        "template",
        "rows for chat templates",
        chat.is_template_row,
        chat.parse,
        _size_of("messages"),
        _plain(chat.render_template),
    ),
    Format(
        "openai",
        "OpenAI fine-tuning rows",
        chat.is_row,
        chat.parse,
        _size_of("messages"),
        _plain(chat.render_openai),
    ),
    Format("body", "request bodies", bodies.is_body, bodies.parse, _BODY_SIZE),
)
FORMATS: Mapping[str, Format] = {row.name: row for row in ROWS}


def find_format(name: str, *, argument: str) -> Format:
    """Return a format by its name, which may be that of an API or provider; `InputError` for others."""
    if name in FORMATS:
        return FORMATS[name]
    try:
        find_wire_or_server(name, argument=argument)
    except InputError:
        raise unknown_name_error("format", name, [*FORMATS, *WIRES], path=argument) from None
    return _api_format(name)


def find_target(name: str) -> Format:
    """Return a format that can be written."""
    found = find_format(name, argument="to")
    if found.render is None:
        raise InputError(f"{name} can only be read; segue move writes sessions of clients", path="to")
    return found


def detect_format(values: Sequence[Value]) -> Format | None:
    """Return the format of the first values of a file; None if it is not known."""
    return next((row for row in ROWS if any(map(row.matches, values))), None)


def writable_names() -> list[str]:
    """Return the names of the formats that can be written, those of APIs last."""
    return [*(row.name for row in ROWS if row.render is not None), *WIRES]
