"""What is written for a row, and the files that it is written to: JSON lines, plain or compressed, or Parquet.

A file is written beside its place and renamed when it is complete. The same rows always give the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, cast

from msgspec import Struct

from segue.canonical.json import encode_json, encode_json_text
from segue.corpora.client_tools import undeclared_tools
from segue.corpora.formats import OWN, ROWS, find_target
from segue.corpora.redacting import redact_output
from segue.corpora.rows import Row
from segue.corpora.storage import open_zstd
from segue.corpora.turns import Turns, build_turns
from segue.corpora.units import Counts
from segue.errors import InputError

Container = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]
_PARQUET_ROWS = 512


class Settings(Struct, frozen=True):
    """What is written: the format, the kind of file, the model to train on, and whether secrets stay."""

    target: str
    container: Container = "jsonl"
    only_model: str | None = None
    keep_secrets: bool = False
    metadata: bool = True


def render_row(row: Row, settings: Settings, counts: Counts, number: str) -> list[dict[str, Any]]:
    """Return the lines for a row: one, or all of its file if each row is a file."""
    form = find_target(settings.target)
    assert form.render is not None
    turns = build_turns(row, form.target, only_model=settings.only_model)
    rendered = form.render(row, turns, number)
    counts.count_row(row, turns)
    lines = rendered if isinstance(rendered, list) else [rendered]
    if settings.metadata and form.metadata is not None:
        place = lines[0] if form.metadata == OWN else lines[0].setdefault(form.metadata, {})
        place[OWN] = describe_row(row, turns)
    if settings.keep_secrets:
        return lines
    redacted = [redact_output(line) for line in lines]
    for _, secrets in redacted:
        counts.count("secret", secrets)
    return [line for line, _ in redacted]


def describe_row(row: Row, turns: Turns) -> dict[str, str | int]:
    """Return the provenance and flags of a row. All values are texts and numbers, so that tables have one type."""
    place = row.provenance
    return {
        "file": place.file,
        "line": place.line,
        "offset": place.offset,
        "format": place.format,
        "session": place.session,
        "client_version": place.client_version,
        "flags": ",".join(turns.flags),
        "tools": row.tool_source,
        "undeclared_tools": ",".join(undeclared_tools(row.request)),
        "models": ",".join(turns.models),
        "results_added": sum(turn.result is not None and turn.result.synthetic is not None for turn in turns.turns),
    }


class Writer(Protocol):
    """Writes rows to an open file."""

    def write(self, lines: Sequence[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class _LineWriter:
    """Writes lines to the first of some streams, each of which writes to the next."""

    def __init__(self, *streams: Any) -> None:
        self._streams = streams

    def write(self, lines: Sequence[dict[str, Any]]) -> None:
        self._streams[0].writelines(encode_json(line) + b"\n" for line in lines)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


class _ParquetWriter:
    """Writes a table with the columns of the format; columns whose values have no common type are JSON text."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str]) -> None:
        try:
            pyarrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise InputError(
                "Parquet needs the extra corpora: pip install 'segue[corpora]'", path="container"
            ) from None
        self._stream = stream
        self._rows: list[dict[str, Any]] = []
        self._table: Any = pyarrow.Table
        self._schema: Any = pyarrow.schema([(name, pyarrow.string()) for name in columns])
        self._parquet: Any = parquet.ParquetWriter(stream, self._schema, compression="zstd")

    def write(self, lines: Sequence[dict[str, Any]]) -> None:
        self._rows += [{key: _as_text(value) for key, value in line.items()} for line in lines]
        if len(self._rows) >= _PARQUET_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._parquet.write_table(self._table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        self._flush()
        self._parquet.close()
        self._stream.close()


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode_json_text(value)


def open_writer(path: Path, settings: Settings) -> Writer:
    """Open a new file for rows."""
    stream = cast("BinaryIO", path.open("wb"))
    match settings.container:
        case "jsonl":
            return _LineWriter(stream)
        case "jsonl.gz":
            return _LineWriter(gzip.GzipFile("", "wb", 6, stream, mtime=0), stream)
        case "jsonl.zst":
            return _LineWriter(open_zstd(stream, "wb"), stream)
        case "parquet":
            return _ParquetWriter(stream, columns_of(settings.target, metadata=settings.metadata))


def columns_of(target: str, *, metadata: bool = True) -> tuple[str, ...]:
    """Return the columns of a table; `InputError` for formats that have none."""
    form = find_target(target)
    if not form.columns:
        names = ", ".join(row.name for row in ROWS if row.columns)
        raise InputError(f"{target} has no columns; only {names} have", path="to")
    return (*form.columns, OWN) if form.metadata == OWN and metadata else form.columns


def features(target: str, *, metadata: bool = True) -> Any:
    """Return the `features` with which `datasets.load_dataset` loads rows: nested values have no common type."""
    datasets: Any = import_module("datasets")
    texts = find_target(target).texts
    kinds = {
        name: datasets.Value("string") if name in texts else datasets.Json()
        for name in columns_of(target, metadata=metadata)
    }
    return datasets.Features(kinds)
