"""`read_unit`: the rows and rejects of a part of a file, with counts.

Every file and every record is accounted for: it is in a row, in a reject, or left out for a reason that is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from segue.canonical.blocks import Media, ToolResponse
from segue.canonical.json import parse_json
from segue.corpora.formats import Format, detect_format, find_format
from segue.corpora.reading import MAX_FILE, FoundLine, Unit, parse_objects, read_lines, read_whole
from segue.corpora.rows import Parsed, Provenance, Row
from segue.corpora.turns import Turns
from segue.errors import InputError, SegueError
from segue.sessions.logs import make_line
from segue.sessions.parsed_log import LogLine

_Place: TypeAlias = tuple[str | bytes, int]


class Reject(Struct, frozen=True):
    """What could not be read: a file, or a line at an offset. `path` is the place in its value."""

    file: str
    offset: int
    path: str
    reason: str
    messages: int = 0


Found: TypeAlias = "Row | Reject"
Group = Literal["format", "flag", "tools from", "model", "tool", "left out", "change", "secret", "problem"]


class Counts(Struct):
    """What was read, written and rejected. `groups` count by name; `examples` has the first place of each problem."""

    files: int = 0
    files_rejected: int = 0
    lines_rejected: int = 0
    messages: int = 0
    messages_in_rows: int = 0
    messages_rejected: int = 0
    rows: int = 0
    calls: int = 0
    results_added: int = 0
    errors: int = 0
    images: int = 0
    bytes: int = 0
    groups: dict[Group, dict[str, int]] = {}
    examples: dict[str, str] = {}

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            if name not in ("groups", "examples"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        for group, found in other.groups.items():
            self.count(group, found)
        self.examples = {**other.examples, **self.examples}

    def count(self, group: Group, names: Mapping[str, int] | Iterable[str]) -> None:
        found = self.groups.get(group, {})
        for name, count in Counter[str](names).items():
            found[name] = found.get(name, 0) + count
        if found:
            self.groups[group] = found

    def find(self, group: Group) -> dict[str, int]:
        return self.groups.get(group, {})

    def count_problem(self, rule: str, place: str) -> None:
        self.count("problem", (rule,))
        self.examples.setdefault(rule, place)

    def count_row(self, row: Row, turns: Turns) -> None:
        self.rows += 1
        self.count("flag", turns.flags)
        self.count("tools from", (row.tool_source,))
        self.count("change", turns.changes)
        self.count("model", turns.models)
        self.count("tool", [call.name for turn in turns.turns for call in turn.calls])
        self.images += sum([isinstance(block, Media) for turn in turns.turns for block in turn.blocks])
        for turn in turns.turns:
            self.calls += len(turn.calls)
            self.results_added += turn.result is not None and turn.result.synthetic is not None
        blocks = [block for message in row.request.messages for block in message.blocks]
        self.errors += sum([block.error for block in blocks if isinstance(block, ToolResponse)])

    def verify(self) -> None:
        """Raise if a message is unaccounted for: a bug in segue."""
        placed = self.messages_in_rows + self.messages_rejected + sum(self.find("left out").values())
        if self.messages != placed:
            raise SegueError(f"{self.messages} messages read, but {placed} in rows, rejected or left out")


def read_unit(unit: Unit, counts: Counts) -> Iterator[Found]:
    """Yield the rows and rejects of a unit, and count what was read."""
    counts.bytes += unit.size
    counts.files += unit.start == 0
    if unit.problem:
        yield _reject_file(counts, unit, "", unit.problem)
        return
    form = find_format(unit.format, argument="from")
    counts.count("format", () if unit.start else (form.name,))
    try:
        if form.batch is not None:
            yield from _read_batch(unit, form, counts)
        elif not form.in_lines:
            yield from _read_session(unit, form, counts)
        elif unit.is_whole:
            for value in parse_objects(read_whole(unit.content)):
                yield from _read_value(unit, form, counts, 0, 1, value, form.parse)
        else:
            yield from _read_lines(unit, form, counts)
    except (EOFError, OSError) as error:
        # Rows before the damage were read; the rest of the file was not.
        yield reject(counts, unit, 0, "", f"can't be read to its end: {error}", 0)
    except InputError as error:
        yield _reject_file(counts, unit, error.path, error.message)


def _read_session(unit: Unit, form: Format, counts: Counts) -> Iterator[Found]:
    """Yield the rows of a session. A damaged line is a reject; the client reads the others, too."""
    if unit.is_whole:
        lines = [make_line(at, value) for at, value in enumerate(parse_objects(read_whole(unit.content)), 1)]
    else:
        lines: list[LogLine] = []
        size = 0
        for line in read_lines(unit.content, 0, None):
            size += line.size
            if size > MAX_FILE:
                raise InputError(f"more than {MAX_FILE // 2**20} MB in one session")
            try:
                lines.append(make_line(line.number, _parse_object(line)))
            except InputError as error:
                yield reject(counts, unit, line.offset, error.path or f"line {line.number}", error.message, 1)
    yield from _account(unit, form, counts, 0, 0, form.parse(lines))


def _read_lines(unit: Unit, form: Format, counts: Counts) -> Iterator[Found]:
    for line in read_lines(unit.content, unit.start, unit.end):
        try:
            value = _parse_object(line)
        except InputError as error:
            yield reject(counts, unit, line.offset, error.path, error.message, 0)
            continue
        yield from _read_value(unit, form, counts, line.offset, 0 if unit.start else line.number, value, form.parse)


def _parse_object(line: FoundLine) -> dict[str, Any]:
    if line.data is None:
        raise InputError(f"a line of {line.size:,} bytes is too long")
    try:
        value = parse_json(line.data)[0]
    except InputError as error:
        # The offset says which line it is.
        raise InputError(error.message.replace("at line 1, column", "at column"), path=error.path) from None
    if not isinstance(value, dict):
        raise InputError(f"a JSON object was expected, not {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _read_value(
    unit: Unit,
    form: Format,
    counts: Counts,
    offset: int,
    number: int,
    value: dict[str, Any],
    parse: Callable[[dict[str, Any]], Parsed],
) -> Iterator[Found]:
    try:
        if not form.matches(value):
            other = detect_format((value,))
            if other is None or not other.in_lines or other.batch is not None:
                raise InputError(f"not a line of {form.title}, nor of another format that has a row in each line")
            form, parse = other, other.parse
        parsed = parse(value)
    except InputError as error:
        yield reject(counts, unit, offset, error.path, error.message, form.count(value))
        return
    yield from _account(unit, form, counts, offset, number, parsed)


def _account(unit: Unit, form: Format, counts: Counts, offset: int, number: int, parsed: Parsed) -> Iterator[Found]:
    """Count the records of what was parsed, and yield its rows with their provenance."""
    in_rows = frozenset[int]().union(*(row.records for row in parsed.rows))
    left_out = Counter(parsed.left_out)
    if missing := parsed.records - len(in_rows) - left_out.total():
        left_out["messages without content"] += missing
    counts.messages += parsed.records
    counts.messages_in_rows += len(in_rows)
    counts.count("left out", left_out)
    for row in parsed.rows:
        place = row.provenance
        provenance = Provenance(unit.path, place.line or number, form.name, place.session, place.client_version, offset)
        row = msgspec.structs.replace(row, provenance=provenance)
        yield row


def _reject_file(counts: Counts, unit: Unit, path: str, reason: str) -> Reject:
    counts.files_rejected += 1
    counts.count_problem("unreadable", f"{unit.path}: {path or 'file'}: {reason}")
    return Reject(unit.path, 0, path, reason)


def reject(counts: Counts, unit: Unit, offset: int, path: str, reason: str, messages: int) -> Reject:
    """Count and return what is rejected of a file: a line, or a row that can't be written."""
    counts.lines_rejected += 1
    counts.count_problem("unreadable", f"{unit.path}: {path or f'byte {offset}'}: {reason}")
    counts.messages += messages
    counts.messages_rejected += messages
    return Reject(unit.path, offset, path, reason, messages)


def _read_batch(unit: Unit, form: Format, counts: Counts) -> Iterator[Found]:
    """Yield the requests of a file with their results, which may be in other files, and results without a request."""
    assert form.batch is not None
    batch = form.batch
    requests, results = _index_batch(unit.companions or (unit.content,), form.name)
    for line in read_lines(unit.content, 0, None):
        place = unit.content, line.offset
        try:
            value = _parse_object(line)
            if not batch.matches(value):
                raise InputError(f"not a line of {form.title}")
        except InputError as error:
            yield reject(counts, unit, line.offset, error.path, error.message, 0)
            continue
        name = batch.id_of(value)
        if batch.is_request(value):
            found = results.get(name) if requests[name] == place else None
            pair = value, _load_line(*found) if found else None
            yield from _read_value(
                unit, form, counts, line.offset, line.number, value, partial(_parse_pair, form, pair)
            )
        elif name not in requests:
            yield reject(counts, unit, line.offset, batch.id, f"a result for the unknown request {name}", 1)
        elif results[name] != place:
            yield reject(counts, unit, line.offset, batch.id, f"another result for the request {name}", 1)


def _parse_pair(form: Format, pair: tuple[dict[str, Any], dict[str, Any] | None], _value: object) -> Parsed:
    return form.parse(pair)


@lru_cache(maxsize=4)
def _index_batch(files: tuple[str | bytes, ...], name: str) -> tuple[dict[str, _Place], dict[str, _Place]]:
    """Return where the first request and the first result of each id are."""
    batch = find_format(name, argument="from").batch
    assert batch is not None
    requests: dict[str, _Place] = {}
    results: dict[str, _Place] = {}
    for file in files:
        for line in read_lines(file, 0, None):
            for value in parse_objects(line.data) if line.data is not None else ():
                if batch.matches(value):
                    places = requests if batch.is_request(value) else results
                    places.setdefault(batch.id_of(value), (file, line.offset))
    return requests, results


def _load_line(file: str | bytes, offset: int) -> dict[str, Any]:
    return _parse_object(next(read_lines(file, offset, None)))
