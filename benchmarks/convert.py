"""The speed of `segue.convert`, bytes in to bytes out, as a multiple of the floor, and that of its peers.

The bodies are generated. The floor is msgspec's untyped decode and encode of the same bytes. All functions run in turns
in one process, and the least CPU time of several rounds counts. `--instructions` counts with valgrind as well, where it
is installed.

    make bench                                 all of it, with the peers
    python benchmarks/convert.py --quick       segue alone, small
    python benchmarks/convert.py --write       the tables also into docs/speed.md
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory

from _measure import PAGE, ROOT, Work, floor, format_table, measure_all, write_page
from _peers import peers
from _transcripts import RENDERERS, SIZES, body

import segue
from segue.conversion import sessions

FIRST_USE = """
import segue
call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
messages = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
]
segue.convert({"model": "gpt-5", "messages": messages}, source="openai-chat", target="anthropic").data
"""


def conversion(data: bytes, source: str, target: str) -> Work:
    """Return a conversion with an empty memory."""

    def convert() -> bytes:
        sessions.clear()
        return segue.convert(data, source=source, target=target).data

    return convert


# --------------------------------------------------------------------------------------------------------- the tables


def pairs(size: int, rounds: int) -> str:
    """Return the ratios to the floor, a row for each source and a column for each target."""
    rows: list[list[str]] = []
    for source in RENDERERS:
        data = body(source, size)
        base, *times = measure_all([floor(data), *(conversion(data, source, target) for target in RENDERERS)], rounds)
        rows.append([source, *(f"{seconds / base:.2f}" for seconds in times)])
    return format_table([f"{size:,} messages", *RENDERERS], rows)


def growth(sizes: Sequence[int], rounds: int) -> str:
    """Return the microseconds for each message, by length."""
    rows: list[list[str]] = []
    for source, target in (("openai-chat", "anthropic"), ("anthropic", "openai-chat")):
        given = [body(source, size) for size in sizes]
        for name, works in (
            (f"{source} → {target}", [conversion(data, source, target) for data in given]),
            (f"the floor of {source}", [floor(data) for data in given]),
        ):
            costs = zip(sizes, measure_all(works, max(9, rounds // 2)), strict=True)
            rows.append([name, *(f"{seconds / size * 1e6:.2f}" for size, seconds in costs)])
    return format_table(["µs a message", *(f"{size:,}" for size in sizes)], rows)


def against_peers(size: int, rounds: int) -> str:
    data = body("openai-chat", size)
    own = conversion(data, "openai-chat", "anthropic")
    found = list(peers(size))
    works = [work for _, _, usual, quick in found for work in (usual, quick)]
    base, mine, *theirs = measure_all([floor(data), own, *works], rounds)
    rows = [["segue", "openai-chat → anthropic", f"{mine / base:.1f}", "1", ""]]
    for (name, what, _, _), usual, quick in zip(found, theirs[::2], theirs[1::2], strict=True):
        rows.append([name, what, f"{usual / base:.1f}", f"{usual / mine:.1f}", f"{quick / mine:.1f}"])
    return format_table([f"{size:,} messages", "", "× the floor", "× segue", "× segue, if it wrote with msgspec"], rows)


def start_up(rounds: int) -> str:
    """Return the time of a process, less that of a bare interpreter. Modules are compiled already, as in a package."""
    works = {
        "": ("-c", "pass"),
        "`import msgspec`": ("-c", "import msgspec"),
        "`import segue`": ("-c", "import segue"),
        "`import segue`, and the first `segue.convert`": ("-c", FIRST_USE),
        "`segue --help`": ("-m", "segue", "--help"),
    }
    with TemporaryDirectory() as folder:
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}

        def process(arguments: Sequence[str]) -> Work:
            return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environ)

        bare, *others = measure_all([*map(process, works.values())], rounds)
    rows = [[name, f"{(cost - bare) * 1e3:.1f}"] for name, cost in zip([*works][1:], others, strict=True)]
    return format_table(["ms more than bare Python", ""], rows)


def instructions(size: int) -> str:
    """Count instructions by valgrind: independent of the load of the machine, but cache misses are not counted."""
    if shutil.which("valgrind") is None:
        return "(no valgrind here: instructions not counted)"
    rows: list[list[str]] = []
    for source, target in (("openai-chat", "anthropic"), ("anthropic", "openai-chat")):
        counts = [_count_instructions(name, source, target, size) for name in ("floor", "convert")]
        rows.append(
            [f"{source} → {target}", *(f"{count / 1e6:.1f}" for count in counts), f"{counts[1] / counts[0]:.2f}"]
        )
    return format_table([f"million instructions, {size:,} messages", "floor", "segue", "ratio"], rows)


def _count_instructions(name: str, source: str, target: str, size: int) -> int:
    def total(times: int) -> int:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
        command += ["--loop", name, source, target, str(size), str(times)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        return int(re.findall(r"Collected : (\d+)", output)[-1])

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
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--loop", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        loop(*options.loop)
        return
    rounds = 7 if options.quick else options.rounds
    sizes = SIZES[:2] if options.quick else SIZES
    parts: list[str] = []

    def show(title: str, text: str, *, on_page: bool = True) -> None:
        if on_page:
            parts.append(f"**{title}**\n\n{text}")
        print(f"\n{title}\n\n{text}", flush=True)

    machine = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    for size in sizes:
        title = f"Time as a multiple of the floor, {size:,} messages ({machine})"
        show(title, pairs(size, max(5, rounds * 1000 // max(size, 1000))), on_page=size == 1000)
    show("Growth", growth(sizes, rounds), on_page=False)
    if not options.quick:
        for size in sizes[:2]:
            show(f"Peers, {size:,} messages", against_peers(size, 5), on_page=size == 1000)
    show("Start", start_up(max(5, rounds // 2)))
    if options.instructions:
        show("Instructions", instructions(100))
    if options.write:
        write_page("\n\n".join(parts), "convert")


if __name__ == "__main__":
    main()
