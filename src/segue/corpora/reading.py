"""Finds the files of a corpus, detects their formats, divides them into units, and reads their lines.

A line is never longer than `MAX_LINE` in memory: what is longer is skipped and reported. A file that is one value, or a
session, is read whole, up to `MAX_FILE`.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import PurePosixPath
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from segue.canonical.json import parse_json
from segue.corpora.formats import detect_format, find_format
from segue.corpora.storage import Folder, find_files, open_file, stat_file
from segue.errors import InputError, format_os_error

MAX_LINE = 64 * 2**20
MAX_FILE = 512 * 2**20
UNIT_SIZE = 64 * 2**20
_HEAD_LINES = 20
_BLOCK = 2**20


class Unit(Struct, frozen=True):
    """A part of a file: the lines that begin from `start` to before `end`, which is None for the rest of the file.

    `is_whole`: the file is one JSON value. `companions` are all files of its batch. `problem` is why the file can't be
    read at all.
    """

    path: str
    format: str = ""
    start: int = 0
    end: int | None = None
    is_whole: bool = False
    companions: tuple[str, ...] = ()
    size: int = 0
    stamp: str = ""
    problem: str = ""
    data: bytes = b""
    """The content, of a unit that is no file."""

    @property
    def content(self) -> str | bytes:
        return self.data or self.path


class FoundLine(Struct, frozen=True):
    """A line with its number, from the start of the unit, and its offset; without data if it is too long to be read."""

    number: int
    offset: int
    size: int
    data: bytes | None


def plan_units(
    paths: Iterable[str], *, source: str | None = None, without: Folder | None = None, unit_size: int = UNIT_SIZE
) -> list[Unit]:
    """Return the units of a corpus, in the order of its files. Those in the folder `without` are no part of it."""
    if source is not None:
        find_format(source, argument="from")
    units: list[Unit] = []
    batches: dict[tuple[str, str], list[str]] = {}
    for file in find_files(paths, without):
        try:
            planned = list(_plan_file(file, source, unit_size))
        except (InputError, OSError, EOFError) as error:
            reason = error.message if isinstance(error, InputError) else _describe(error)
            planned = [Unit(file, problem=reason)]
        units += planned
    for unit in units:
        if unit.format.endswith("-batch"):
            batches.setdefault((str(PurePosixPath(unit.path).parent), unit.format), []).append(unit.path)
    return [
        msgspec.structs.replace(
            unit, companions=tuple(batches.get((str(PurePosixPath(unit.path).parent), unit.format), ()))
        )
        for unit in units
    ]


def _describe(error: Exception) -> str:
    return format_os_error(error) if isinstance(error, OSError) else f"can't be decompressed: {error}"


def _plan_file(file: str, source: str | None, unit_size: int) -> Iterator[Unit]:
    size, stamp = stat_file(file)
    if size == 0:
        raise InputError("the file is empty")
    name, is_whole, in_lines = detect(file, source)
    if is_whole or not in_lines or file.endswith((".gz", ".zst")):
        yield Unit(file, name, is_whole=is_whole, size=size, stamp=stamp)
        return
    for start in range(0, size, unit_size):
        end = min(start + unit_size, size)
        yield Unit(file, name, start, end, size=end - start, stamp=stamp)


def plan_data(data: bytes, source: str | None = None) -> Unit:
    """Return the unit for some content."""
    name, is_whole, _ = detect(data, source)
    return Unit("", name, is_whole=is_whole, size=len(data), data=data)


def detect(content: str | bytes, source: str | None) -> tuple[str, bool, bool]:
    """Return the format of a file, whether it is one JSON value, and whether its lines can be read by themselves."""
    if source is not None:
        form = find_format(source, argument="from")
        return source, _is_whole(content), form.in_lines and form.batch is None
    has_values = False
    for line in islice(read_lines(content, 0, None), _HEAD_LINES):
        if line.data is None:
            continue
        if b"\0" in line.data:
            raise InputError("binary data")
        if line.data.startswith(b"["):
            break
        values = parse_objects(line.data)
        has_values = has_values or bool(values)
        if (form := detect_format(values)) is not None:
            return form.name, False, form.in_lines and form.batch is None
    values = [] if has_values else parse_objects(read_whole(content))
    if (form := detect_format(values)) is not None:
        return form.name, True, form.in_lines and form.batch is None
    if has_values or values:
        raise InputError("not a format that segue reads; name it with --from")
    raise InputError("no JSON object was found")


def _is_whole(content: str | bytes) -> bool:
    """Return whether a file is one JSON value: its first line is not an object by itself."""
    first = next(read_lines(content, 0, None), None)
    if first is None or first.data is None or (not first.data.startswith(b"[") and parse_objects(first.data)):
        return False
    return bool(parse_objects(read_whole(content)))


def parse_objects(data: bytes) -> list[dict[str, Any]]:
    """Return the object in some JSON, or the objects of a list; nothing for anything else."""
    try:
        value = parse_json(data)[0]
    except InputError:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def read_whole(content: str | bytes) -> bytes:
    """Return the content of a file; `InputError` if it is too large to be read whole."""
    with open_file(content) as stream:
        data = stream.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InputError(f"more than {MAX_FILE // 2**20} MB in one session or one JSON value")
    return data.removeprefix(BOM_UTF8)


def read_lines(content: str | bytes, start: int, end: int | None) -> Iterator[FoundLine]:
    """Yield the lines that begin from `start` to before `end` and are not blank."""
    with open_file(content) as stream:
        if start:
            stream.seek(start - 1)
            # A line that begins before `start` is part of the unit before this one.
            start += _skip_line(stream) - 1
        offset = start
        for number in count(1):
            if (end is not None and offset >= end) or not (line := stream.readline(MAX_LINE + 1)):
                return
            size = len(line)
            if size > MAX_LINE and not line.endswith(b"\n"):
                size += _skip_line(stream)
                yield FoundLine(number, offset, size, None)
            elif not line.isspace():
                yield FoundLine(number, offset, size, line if offset else line.removeprefix(BOM_UTF8))
            offset += size


def _skip_line(stream: IO[bytes]) -> int:
    """Skip the rest of a line; return its size."""
    size = 0
    while block := stream.readline(_BLOCK):
        size += len(block)
        if block.endswith(b"\n"):
            break
    return size
