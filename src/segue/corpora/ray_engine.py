"""Runs the parts of a corpus on Ray Data, which schedules them and runs those of a lost worker again.

Inputs and output must be in a place that all workers see: a shared folder, or a URL that fsspec knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import msgspec

from segue.canonical.json import encode_json
from segue.corpora.parts import Part
from segue.corpora.run import Engine
from segue.corpora.units import Counts
from segue.errors import InputError


def _run_part(row: dict[str, Any], function: Callable[[Part], Counts], parts: Any) -> dict[str, Any]:
    """Run one part in a worker. `parts` are all of them in the store of the cluster."""
    ray: Any = import_module("ray")
    counts = function(ray.get(parts)[int(row["part"])])
    return {"part": row["part"], "counts": encode_json(counts)}


def run_on_ray(address: str | None = None, jobs: int | None = None) -> Engine:
    """Return the engine of a Ray cluster; without an address, of one on this machine that ends with the run."""
    try:
        ray: Any = import_module("ray")
        data: Any = import_module("ray.data")
    except ImportError:
        raise InputError("needs the extra ray: pip install 'segue[ray]'", path="engine") from None

    def run(function: Callable[[Part], Counts], parts: Sequence[Part]) -> Iterator[tuple[Part, Counts]]:
        if not parts:
            return
        started = not ray.is_initialized()
        if started:
            own: dict[str, Any] = {} if address is not None else {"num_cpus": jobs, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
        data.DataContext.get_current().enable_progress_bars = False
        numbers = [{"part": at} for at in range(len(parts))]
        given = {"function": function, "parts": ray.put(list(parts))}
        try:
            blocks = data.from_items(numbers, override_num_blocks=len(parts))
            results = blocks.map(_run_part, fn_kwargs=given, num_cpus=1)
            for row in results.iter_rows():
                yield parts[int(row["part"])], msgspec.json.decode(row["counts"], type=Counts)
        finally:
            if started:
                ray.shutdown()

    return run
