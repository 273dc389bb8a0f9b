"""How fast `segue.convert` is, bytes in to bytes out, against the floor and against others.

The floor is msgspec's untyped decode and encode of the same bytes: what it costs to look at a body at all. Everything
that is compared runs in turns in one process, and the least CPU time of several rounds counts, so that what else the
machine does falls on all alike. `--instructions` counts with valgrind as well, where it is installed.

    make bench                                 all of it, with the peers
    python benchmarks/convert.py --quick       segue alone, small
    python benchmarks/convert.py --write       the tables also into docs/speed.md
"""

from __future__ import annotations

import argparse
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from _peers import peers
from _transcripts import SIZES, SPELLINGS, body

import segue
import segue.fast
from segue.render.report import Report

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "speed.md"
MARK = "<!-- {} of `python benchmarks/{}.py --write` -->"

read = msgspec.json.Decoder().decode
write = msgspec.json.Encoder().encode
Work = Callable[[], object]


def least(works: Sequence[Work], rounds: int) -> list[float]:
    """The least seconds of each, all taking turns: of this process and of those that it starts."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            start = _seconds()
            work()
            found[index] = min(found[index], _seconds() - start)
    return found


def _seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def floor(data: bytes) -> Work:
    return lambda: write(read(data))


def conversion(data: bytes, source: str, target: str) -> Work:
    return lambda: segue.convert(data, source=source, target=target).data


def put_into_page(told: str, script: str) -> None:
    """Writes the tables of a script between its marks on the page."""
    begin, end = MARK.format("Begin", script), MARK.format("End", script)
    head, _, rest = PAGE.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}\n\n{told}\n\n{end}{tail}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# --------------------------------------------------------------------------------------------------------- the tables


def pairs(size: int, rounds: int) -> str:
    """Ratio to the floor, a row for each source and a column for each target."""
    rows: list[list[str]] = []
    for source in SPELLINGS:
        data = body(source, size)
        base, *times = least([floor(data), *(conversion(data, source, target) for target in SPELLINGS)], rounds)
        rows.append([source, *(f"{seconds / base:.2f}" for seconds in times)])
    return table([f"{size:,} messages", *SPELLINGS], rows)


def growth(sizes: Sequence[int], rounds: int) -> str:
    """Microseconds a message, by length."""
    rows: list[list[str]] = []
    for source, target in (("openai-chat", "anthropic"), ("anthropic", "openai-chat")):
        given = [body(source, size) for size in sizes]
        for name, works in (
            (f"{source} → {target}", [conversion(data, source, target) for data in given]),
            (f"the floor of {source}", [floor(data) for data in given]),
        ):
            costs = zip(sizes, least(works, max(9, rounds // 2)), strict=True)
            rows.append([name, *(f"{seconds / size * 1e6:.2f}" for size, seconds in costs)])
    return table(["µs a message", *(f"{size:,}" for size in sizes)], rows)


def against_peers(size: int, rounds: int) -> str:
    data = body("openai-chat", size)
    own = conversion(data, "openai-chat", "anthropic")
    found = list(peers(size))
    works = [work for _, _, usual, quick in found for work in (usual, quick)]
    base, mine, *theirs = least([floor(data), own, *works], rounds)
    rows = [["segue", "openai-chat → anthropic", f"{mine / base:.1f}", "1", ""]]
    for (name, what, _, _), usual, quick in zip(found, theirs[::2], theirs[1::2], strict=True):
        rows.append([name, what, f"{usual / base:.1f}", f"{usual / mine:.1f}", f"{quick / mine:.1f}"])
    return table([f"{size:,} messages", "", "× the floor", "× segue", "× segue, if it wrote with msgspec"], rows)


def report_share(size: int, rounds: int) -> str:
    """What the report costs: the same conversion with and without one."""
    data = body("anthropic", size)
    told = segue.fast.build_report

    def without() -> None:
        segue.fast.build_report = lambda *_: Report()
        try:
            _ = segue.convert(data, source="anthropic", target="openai-chat").data
        finally:
            segue.fast.build_report = told

    whole, bare = least([conversion(data, "anthropic", "openai-chat"), without], rounds)
    return f"The report is {max(0.0, 1 - bare / whole):.1%} of a conversion of {size:,} messages."


def start_up(rounds: int) -> str:
    """What a process takes, less what a bare one takes."""

    def process(*arguments: str) -> Work:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    bare, theirs, ours, shown = least(
        [
            process("-c", "pass"),
            process("-c", "import msgspec"),
            process("-c", "import segue"),
            process("-m", "segue", "--help"),
        ],
        rounds,
    )
    rows = [
        ["`import msgspec`", f"{(theirs - bare) * 1e3:.1f}"],
        ["`import segue`", f"{(ours - bare) * 1e3:.1f}"],
        ["`segue --help`", f"{(shown - bare) * 1e3:.1f}"],
    ]
    return table(["ms more than bare Python", ""], rows)


def instructions(size: int) -> str:
    """Instructions by valgrind: the same whatever else the machine does, but a cache miss counts as nothing."""
    if shutil.which("valgrind") is None:
        return "(no valgrind here: instructions not counted)"
    rows: list[list[str]] = []
    for source, target in (("openai-chat", "anthropic"), ("anthropic", "openai-chat")):
        counts = [_counted(name, source, target, size) for name in ("floor", "convert")]
        rows.append(
            [f"{source} → {target}", *(f"{count / 1e6:.1f}" for count in counts), f"{counts[1] / counts[0]:.2f}"]
        )
    return table([f"million instructions, {size:,} messages", "floor", "segue", "ratio"], rows)


def _counted(name: str, source: str, target: str, size: int) -> int:
    def total(times: int) -> int:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
        command += ["--loop", name, source, target, str(size), str(times)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        return int(re.findall(r"Collected : (\d+)", said)[-1])

    return (total(4) - total(1)) // 3


def loop(name: str, source: str, target: str, size: str, times: str) -> None:
    data = body(source, int(size))
    work = floor(data) if name == "floor" else conversion(data, source, target)
    work()
    for _ in range(int(times)):
        work()


# ---------------------------------------------------------------------------------------------------------------- main


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures segue.convert against the floor and its peers.")
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 messages, few rounds, no peers")
    parser.add_argument("--rounds", type=int, default=25, help="rounds of each comparison (fewer for long bodies)")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind, too")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--loop", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.loop:
        loop(*asked.loop)
        return
    rounds = 7 if asked.quick else asked.rounds
    sizes = SIZES[:2] if asked.quick else SIZES
    parts: list[str] = []

    def show(title: str, text: str) -> None:
        parts.append(f"**{title}**\n\n{text}")
        print(f"\n{title}\n\n{text}", flush=True)

    show("The machine", f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}.")
    for size in sizes:
        show(
            f"Time as a multiple of the floor, {size:,} messages", pairs(size, max(5, rounds * 1000 // max(size, 1000)))
        )
    show("Growth", growth(sizes, rounds))
    if not asked.quick:
        for size in sizes[:2]:
            show(f"Peers, {size:,} messages", against_peers(size, 5))
    show("The report", report_share(1_000, rounds))
    show("Start", start_up(max(5, rounds // 2)))
    if asked.instructions:
        show("Instructions", instructions(100))
    if asked.write:
        put_into_page("\n\n".join(parts), "convert")


if __name__ == "__main__":
    main()
