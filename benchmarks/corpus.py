"""Corpora: conversion of sessions as a multiple of the floor, with two processes, its memory, Ray and teich.

The floor is msgspec's decode and encode of every line. The sessions are those recorded from real clients, and the same
with outputs of tools as long as those of daily work: a file of source code. Ray and teich are measured where they are
installed.

    python benchmarks/corpus.py                 all of it, a file of 1 GB
    python benchmarks/corpus.py --quick         a file of 100 MB
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from _measure import ROOT, decode, encode, format_table, measure_all

from segue import corpora
from segue.corpora.run import Engine, run_here

MB = 2**20
SESSIONS = ROOT / "tests/data/sessions"
OUTPUT = (ROOT / "src/segue/canonical/pairing.py").read_text()[:5000]
MARK = "CONTENT-ALPHA"
REPEATS = 20


def sessions() -> Iterator[tuple[str, bytes]]:
    """Yield the recorded sessions, and each with outputs of about 5 kB."""
    for file in sorted(SESSIONS.iterdir()):
        if ".more." not in file.name:
            data = file.read_bytes()
            yield file.stem, data
            yield f"{file.stem}, longer outputs", data.replace(MARK.encode(), json.dumps(OUTPUT)[1:-1].encode())


def ratios(rounds: int) -> str:
    rows: list[list[str]] = []
    for name, data in sessions():
        lines = [line for line in data.split(b"\n") if line.strip()]
        works: list[Callable[[], object]] = [
            lambda lines=lines: [encode(decode(line)) for line in lines],
            lambda data=data: [encode(row) for row in corpora.convert_session(data, to="template")],
            lambda data=data: [encode(row) for row in corpora.convert_session(data, to="atif")],
        ]
        # A session is short for the clock.
        times = measure_all([lambda work=work: [work() for _ in range(REPEATS)] for work in works], rounds)
        rows.append([name, f"{len(data) / 1000:.0f} kB", *(f"{each / times[0]:.1f}" for each in times[1:])])
    return format_table(["session", "size", "× floor, to template", "to atif"], rows)


@contextmanager
def corpus(copies: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        found = [data for name, data in sessions() if "longer" in name]
        for number in range(copies):
            (folder / f"in/{number:05}.jsonl").write_bytes(found[number % len(found)])
        yield folder


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def engines(copies: int) -> str:
    """Compare one process with two, and with Ray, by the clock: nothing else may run."""
    with corpus(copies) as folder:
        size = sum(file.stat().st_size for file in (folder / "in").iterdir())

        def run(name: str, engine: Engine) -> float:
            shutil.rmtree(folder / name, ignore_errors=True)
            settings = corpora.Settings("template")
            return seconds(lambda: corpora.convert([str(folder / "in")], settings, folder / name, engine=engine))

        one, two = run("one", run_here(1)), run("two", run_here(2))
        rows = [
            ["one process", f"{size / MB / one:.1f}", "1.0"],
            ["two processes", f"{size / MB / two:.1f}", f"{one / two:.2f}"],
        ]
        if find_spec("ray"):
            import ray

            from segue.corpora.ray_engine import run_on_ray

            start = seconds(lambda: ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False))
            run("warm", run_on_ray(jobs=2))
            on_ray = run("ray", run_on_ray(jobs=2))
            ray.shutdown()
            rows.append(
                [f"Ray, two workers (start-up {start:.0f} s apart)", f"{size / MB / on_ray:.1f}", f"{one / on_ray:.2f}"]
            )
        return format_table([f"{copies} sessions, {size / MB:.0f} MB", "MB/s", "× one process"], rows)


def teich() -> str:
    """Compare with the library that `datasets` calls, by CPU time, in one process."""
    from teich import convert_traces_to_training_data

    rows: list[list[str]] = []
    for client in ("claude", "codex", "pi"):
        data = next(data for name, data in sessions() if name == f"{client}, longer outputs")
        with tempfile.TemporaryDirectory() as name:
            traces, out = Path(name, "in"), Path(name, "out")
            traces.mkdir()
            for number in range(50):
                (traces / f"{number}.jsonl").write_bytes(data)

            def ours(*, keep_secrets: bool, traces: Path = traces, out: Path = out) -> None:
                shutil.rmtree(out, ignore_errors=True)
                corpora.convert([str(traces)], corpora.Settings("template", keep_secrets=keep_secrets), out)

            lines = [line for line in data.split(b"\n") if line.strip()]
            times = measure_all(
                [
                    lambda lines=lines: [[encode(decode(line)) for line in lines] for _ in range(50)],
                    lambda ours=ours: ours(keep_secrets=False),
                    lambda ours=ours: ours(keep_secrets=True),
                    lambda traces=traces: convert_traces_to_training_data(traces),
                ],
                5,
            )
        rows.append([client, *(f"{each / times[0]:.1f}" for each in times[1:])])
    return format_table(["sessions of", "× floor, segue", "without redaction", "teich"], rows)


PEAK = """
import resource, sys
from segue import corpora
corpora.convert([sys.argv[1]], corpora.Settings("openai"), sys.argv[2])
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")))
"""


def memory(sizes: tuple[int, ...]) -> str:
    """Return the peak memory of a process that converts one file of rows."""
    rows: list[list[str]] = []
    row = {"messages": [{"role": "user", "content": OUTPUT}, {"role": "assistant", "content": "Done."}]}
    line = json.dumps(row).encode() + b"\n"
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            file = Path(name, "rows.jsonl")
            with file.open("wb") as stream:
                for _ in range(size * MB // len(line)):
                    stream.write(line)
            command = [sys.executable, "-c", PEAK, str(file), str(Path(name, "out"))]
            ended = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append([f"{size} MB", f"{int(ended.stdout) / 1024:.0f} MB"])
    return format_table(["file of rows", "peak memory"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    tables = [
        ratios(5 if given.quick else 20),
        *([teich()] if find_spec("teich") else []),
        engines(600 if given.quick else 4000),
        memory((10, 100) if given.quick else (10, 100, 1000)),
    ]
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
