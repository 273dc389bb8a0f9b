"""Runs a conversion or a check over a corpus: on this machine with processes, or with another engine.

The output is a folder. A part of it is written whole or not at all, and what is written is recorded, so that a run that
was interrupted continues with the parts that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from hashlib import sha256
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Protocol

import msgspec

from segue.canonical.json import encode_json, encode_json_sorted, parse_json
from segue.corpora.formats import ROWS, find_target
from segue.corpora.output import Settings, columns_of
from segue.corpora.parts import Part, convert_part, group_units, measure_part
from segue.corpora.reading import plan_units
from segue.corpora.storage import STATE, Folder
from segue.corpora.units import Counts
from segue.errors import InputError, SegueError

Progress = Callable[[int, int], None]
"""Gets the bytes that are done, and all bytes."""
_PLAN = f"{STATE}/plan.json"
_WAITING = 2
_MAX_FOLDER = 60


class Engine(Protocol):
    """Runs a function on every part and yields the counts, in any order."""

    def __call__(self, function: Callable[[Part], Counts], parts: Sequence[Part]) -> Iterator[tuple[Part, Counts]]: ...


def _no_progress(_done: int, _all: int) -> None:
    pass


def run_here(jobs: int) -> Engine:
    """Return the engine of this machine: some processes, or none but this one."""

    def run(function: Callable[[Part], Counts], parts: Sequence[Part]) -> Iterator[tuple[Part, Counts]]:
        if jobs == 1 or len(parts) == 1:
            yield from ((part, function(part)) for part in parts)
            return
        # A server needs a socket, whose path has at most about 100 bytes.
        has_server = "forkserver" in get_all_start_methods() and len(gettempdir().encode()) < _MAX_FOLDER
        method = "forkserver" if has_server else "spawn"
        context = get_context(method)
        if method == "forkserver":
            # The modules are imported once.
            context.set_forkserver_preload([convert_part.__module__])
        pool = ProcessPoolExecutor(jobs, mp_context=context)
        waiting = iter(parts)
        running = {pool.submit(function, part): part for _, part in zip(range(jobs * _WAITING), waiting, strict=False)}
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    part = running.pop(future)
                    yield part, future.result()
                    if (following := next(waiting, None)) is not None:
                        running[pool.submit(function, following)] = following
        except BrokenProcessPool:
            raise SegueError("a worker process was killed; run the command again to continue") from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    return run


def convert(
    paths: Iterable[str],
    settings: Settings,
    out: str | Path,
    *,
    source: str | None = None,
    engine: Engine | None = None,
    progress: Progress = _no_progress,
) -> Counts:
    """Convert a corpus into a folder, or continue that. `InputError` if the folder is of another corpus."""
    form = find_target(settings.target)
    if settings.only_model is not None and not form.has_weights:
        names = ", ".join(row.name for row in ROWS if row.has_weights)
        raise InputError(f"{settings.target} has no place for weights; {names} have", path="only_model")
    if settings.container == "parquet":
        columns_of(settings.target)
    folder = Folder(str(out))
    parts = group_units(plan_units(paths, source=source, without=folder))
    if not parts:
        raise InputError("there are no files to read")
    _begin(folder, parts, settings)
    finished = {part.number for part in parts if folder.exists(part.state)}
    run_all(
        partial(convert_part, settings=settings, out=folder.name),
        [part for part in parts if part.number not in finished],
        engine,
        progress,
        before=sum(part.size for part in parts if part.number in finished),
    )
    return _finish(folder, parts)


def measure(
    paths: Iterable[str], *, source: str | None = None, engine: Engine | None = None, progress: Progress = _no_progress
) -> Counts:
    """Return the counts of a corpus, and how often it breaks each rule."""
    parts = group_units(plan_units(paths, source=source))
    if not parts:
        raise InputError("there are no files to read")
    counts = run_all(measure_part, parts, engine, progress)
    counts.verify()
    return counts


def run_all(
    function: Callable[[Part], Counts],
    parts: Sequence[Part],
    engine: Engine | None,
    progress: Progress,
    *,
    before: int = 0,
) -> Counts:
    """Run a function on all parts; return the sum of the counts in the order of the parts."""
    done, total = before, before + sum(part.size for part in parts)
    results: dict[int, Counts] = {}
    progress(done, total)
    for part, counts in (engine or run_here(1))(function, parts):
        results[part.number] = counts
        done += part.size
        progress(done, total)
    summed = Counts()
    for number in sorted(results):
        summed.add(results[number])
    return summed


def _begin(folder: Folder, parts: Sequence[Part], settings: Settings) -> None:
    """Record the plan in a new folder; check it in one that has a plan."""
    digest = sha256(encode_json_sorted([settings, parts])).hexdigest()
    if folder.exists(_PLAN):
        if parse_json(folder.read(_PLAN))[0].get("digest") != digest:
            reason = "was begun with other files or options, or the files changed; name another folder, or remove it"
            raise InputError(reason, path=folder.name)
        return
    if not folder.is_empty():
        raise InputError("is not an empty folder", path=folder.name)
    with folder.replacing(_PLAN) as temporary:
        temporary.write_bytes(encode_json({"digest": digest, "parts": len(parts)}))


def _finish(folder: Folder, parts: Sequence[Part]) -> Counts:
    """Write `rejects.jsonl` and `corpus.json`; return the counts of all parts."""
    counts = Counts()
    with folder.replacing("rejects.jsonl") as temporary, temporary.open("wb") as stream:
        for part in parts:
            recorded: Any = parse_json(folder.read(part.state))[0]
            counts.add(msgspec.convert(recorded["counts"], Counts))
            stream.writelines(encode_json(reject) + b"\n" for reject in recorded["rejects"])
    counts.verify()
    with folder.replacing("corpus.json") as temporary:
        temporary.write_bytes(msgspec.json.format(encode_json(counts), indent=2) + b"\n")
    return counts
