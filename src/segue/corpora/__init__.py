"""Corpora: sessions of coding clients, trajectories, training rows, batch files and request bodies, as checked rows.

`read` yields the rows of files and folders, `load` in another format; `convert_session` returns one file in another
format; `convert` writes a whole corpus into a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from segue.corpora.formats import FORMATS, find_target
from segue.corpora.output import Settings, features, render_row
from segue.corpora.reading import plan_data, plan_units
from segue.corpora.rows import Provenance, Row
from segue.corpora.run import convert, measure, run_here
from segue.corpora.storage import find_files
from segue.corpora.units import Counts, Reject, read_unit
from segue.errors import InputError

__all__ = [
    "FORMATS",
    "Counts",
    "Provenance",
    "Reject",
    "Row",
    "Settings",
    "convert",
    "convert_session",
    "features",
    "find_files",
    "load",
    "measure",
    "read",
    "run_here",
]


def read(
    *paths: str | Path, source: str | None = None, rejected: Callable[[Reject], object] | None = None
) -> Iterator[Row]:
    """Yield the rows of files and folders. What can't be read is given to `rejected`; without it, it raises."""
    for unit in plan_units(map(str, paths), source=source):
        for found in read_unit(unit, Counts()):
            if isinstance(found, Row):
                yield found
            elif rejected is not None:
                rejected(found)
            else:
                place = ": ".join(filter(None, (found.file, found.path)))
                raise InputError(found.reason, path=place)


def load(
    paths: Sequence[str | Path],
    to: str,
    *,
    keep_secrets: bool = False,
    rejected: Callable[[Reject], object] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of files and folders in another format, as `datasets.Dataset.from_generator` takes them.

    `datasets` divides the paths among its processes. What can't be read is treated as by `read`.
    """
    settings = Settings(to, keep_secrets=keep_secrets)
    counts = Counts()
    for number, row in enumerate(read(*paths, rejected=rejected), 1):
        yield from render_row(row, settings, counts, str(number))


def convert_session(
    data: bytes | str, *, to: str, source: str | None = None, keep_secrets: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of one file's content in another format. Content that can't be read raises `InputError`."""
    find_target(to)
    settings = Settings(to, keep_secrets=keep_secrets)
    content = data.encode() if isinstance(data, str) else data
    counts = Counts()
    lines: list[dict[str, Any]] = []
    for number, found in enumerate(read_unit(plan_data(content, source), counts), 1):
        if isinstance(found, Reject):
            raise InputError(found.reason, path=found.path or f"byte {found.offset}")
        lines += render_row(found, settings, counts, str(number))
    counts.verify()
    return lines
