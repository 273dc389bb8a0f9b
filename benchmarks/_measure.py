"""CPU time of functions that run in turns, and tables of ratios for docs/speed.md."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "speed.md"
MARK = "<!-- {} of `python benchmarks/{}.py --write` -->"

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode
Work = Callable[[], object]


def measure_all(works: Sequence[Work], rounds: int) -> list[float]:
    """Return the least CPU seconds of each function, child processes included. All run in turns."""
    least = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            start = _cpu_seconds()
            work()
            least[index] = min(least[index], _cpu_seconds() - start)
    return least


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def time_once(work: Work) -> float:
    """Return the CPU seconds of one call, without a garbage collection in it."""
    gc.disable()
    start = time.process_time_ns()
    work()
    seconds = (time.process_time_ns() - start) / 1e9
    gc.enable()
    return seconds


def floor(data: bytes) -> Work:
    """Return the floor of a body: msgspec's untyped decode and encode of the same bytes."""
    return lambda: encode(decode(data))


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_page(tables: str, script: str, page: Path = PAGE) -> None:
    """Write the tables of a script between its marks on a page."""
    begin, end = MARK.format("Begin", script), MARK.format("End", script)
    head, _, rest = page.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    page.write_text(f"{head}{begin}\n\n{tables}\n\n{end}{tail}")
