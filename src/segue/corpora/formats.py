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
from segue.corpora.turns import TRAINING, Turns
from segue.errors import InputError, unknown_name_error
from segue.render.constraints import Constraints
from segue.sessions.client import CANONICAL, Client
from segue.sessions.parsed_log import LogLine, find_bad_name
from segue.sessions.registry import CLIENTS
from segue.sessions.session import LIST_KEYS
from segue.sessions.values import list_of, object_of
from segue.wire.registry import WIRES, find_wire_or_server

OWN = "segue"
"""The key of a row that has its provenance and flags."""
Value = Mapping[str, Any]
Lines = dict[str, Any] | list[dict[str, Any]]


class Format(Struct, frozen=True):
    """A format. Without `render` it can only be read.

    `parse` takes the value of a line, or all lines of a file if not `in_lines`. `keys` are those of the list of records
    of a value that can't be parsed. `render` takes a row, its turns for `target`, and its number.

    `columns` are the keys of a line, those in `texts` without nested values. `metadata` is the object that provenance
    and flags are in; None if there is no place for them. If `is_file_per_row`, a row takes several lines.
    """

    name: str
    title: str
    matches: Callable[[Value], bool]
    parse: Callable[[Any], Parsed]
    render: Callable[[Row, Turns, str], Lines] | None = None
    target: Constraints = TRAINING
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    metadata: str | None = None
    has_weights: bool = False
    in_lines: bool = True
    is_file_per_row: bool = False
    batch: BatchForm | None = None

    def count(self, value: Value) -> int:
        """Return the number of records of a value that can't be parsed."""
        found = object_of(value.get(self.batch.request)) if self.batch is not None else value
        return max((len(list_of(found.get(key))) for key in self.keys), default=0) or 1


def _session_format(name: str, client: Client) -> Format:
    def matches(value: Value) -> bool:
        return find_bad_name(value) is None and client.reader.is_line(LogLine(1, value))

    return Format(name, client.title, matches, partial(sessions.parse, client), in_lines=False)


def _batch_format(form: BatchForm) -> Format:
    def parse(value: tuple[Value, Value | None]) -> Parsed:
        return form.parse(*value)

    return Format(form.name, f"batch file ({form.api})", form.matches, parse, form.render, keys=LIST_KEYS, batch=form)


def _api_format(name: str) -> Format:
    def render(row: Row, turns: Turns, _number: str) -> Lines:
        return bodies.render(row, turns, name)

    parse = partial(bodies.parse, api=name)
    return Format(name, f"request bodies ({name})", bodies.is_body, parse, render, keys=LIST_KEYS)


_CLIENT_NAMES = {"gemini": "gemini-cli"}
"""The names of formats of clients that are also the name of an API."""

ROWS: tuple[Format, ...] = (
    Format(
        "sts",
        "STS sessions",
        sts.is_header,
        sts.parse,
        sts.render,
        sts.STS,
        metadata=OWN,
        in_lines=False,
        is_file_per_row=True,
    ),
    *(
        _session_format(_CLIENT_NAMES.get(name, name), client)
        for name, client in CLIENTS.items()
        if client.api != CANONICAL
    ),
    Format(
        "atif",
        "ATIF 1.8",
        atif.is_trajectory,
        atif.parse,
        atif.render,
        atif.ATIF,
        keys=("steps",),
        columns=("schema_version", "session_id", "agent", "steps", "extra"),
        texts=("schema_version", "session_id"),
        metadata="extra",
        has_weights=True,
    ),
    Format(
        "adp",
        "ADP 1.3",
        adp.is_trajectory,
        adp.parse,
        adp.render,
        adp.ADP,
        keys=("content",),
        columns=("schema_version", "id", "content", "details"),
        texts=("schema_version", "id"),
        metadata="details",
    ),
    Format(
        "sharegpt",
        "ShareGPT",
        sharegpt.is_row,
        sharegpt.parse,
        sharegpt.render,
        sharegpt.SHAREGPT,
        keys=("conversations",),
        columns=("conversations", "system", "tools", "images"),
        texts=("system", "tools"),
        metadata=OWN,
        has_weights=True,
    ),
    *map(_batch_format, BATCHES),
    Format(
        "template",
        "rows for chat templates",
        chat.is_template_row,
        chat.parse,
        chat.render_template,
        chat.TEMPLATE,
        keys=("messages",),
        columns=("messages", "tools"),
        metadata=OWN,
        has_weights=True,
    ),
    Format(
        "openai",
        "OpenAI fine-tuning rows",
        chat.is_row,
        chat.parse,
        chat.render_openai,
        chat.OPENAI,
        keys=("messages",),
        columns=("messages", "tools"),
        metadata=OWN,
        has_weights=True,
    ),
    Format("body", "request bodies", bodies.is_body, bodies.parse, keys=LIST_KEYS),
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
