"""Writes docs/suites.md from the results of all cells: counts for each suite and upstream, and why a test is red."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.clients.rows import UPSTREAMS
from tests.suites.rows import SUITES, Suite
from tests.suites.run import Result

_HEAD = """# Suites of other projects behind the gateway

Written by `make suites`. Each suite runs against `segue serve` with one emulated provider behind it; its client is not
told which one. A cell has the tests that passed, of those that ran; tests that a suite skips are not counted. The
emulated model is not a language model: it calls the declared tools with values that it finds in the prompt.
"""
_RED = """
## What is red

| suite | tests | upstreams | cause |
| --- | --- | --- | --- |"""
_NO_CAUSE = "**not known**"


class Cause(Struct, frozen=True):
    """Why tests fail: patterns for the suite, the upstream, and the test's name or the end of it."""

    suite: str
    test: str
    kind: str
    cause: str
    upstream: str = "*"

    def explains(self, suite: str, upstream: str, test: str) -> bool:
        pairs = ((suite, self.suite), (upstream, self.upstream), (test, self.test))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


def read_causes() -> list[Cause]:
    """Return the known causes; the first one that matches explains a test."""
    table = tomllib.loads((Path(__file__).parent / "causes.toml").read_text())
    return msgspec.convert(table["cause"], list[Cause])


def write_page(file: Path, results: Sequence[Result], npm: Path) -> None:
    file.write_text("\n".join([*_list_counts(results), *_list_versions(npm), *_list_red(results)]) + "\n")


def find_unexplained(results: Sequence[Result]) -> list[str]:
    """Return the tests that are red without a known cause."""
    causes = read_causes()
    return [
        f"{result.suite}.{result.upstream}: {failure.test}: {_first_line(failure.message)}"
        for result in results
        for failure in result.failures
        if _find_cause(causes, result, failure.test) is None
    ]


def _find_cause(causes: Sequence[Cause], result: Result, test: str) -> Cause | None:
    return next((each for each in causes if each.explains(result.suite, result.upstream, test)), None)


def _list_counts(results: Sequence[Result]) -> Iterator[str]:
    yield _HEAD
    yield _row("upstream", *(f"`{name}`" for name in SUITES))
    yield _row(*["---"] * (len(SUITES) + 1))
    found = {(each.suite, each.upstream): each for each in results}
    for upstream, model in UPSTREAMS.items():
        yield _row(f"`{upstream}`, {model}", *(_format(found.get((name, upstream))) for name in SUITES))
    totals = [[each for each in results if each.suite == name] for name in SUITES]
    yield _row("all", *(_count(sum(each.passed for each in some), sum(map(_total, some))) for some in totals))
    yield ""


def _format(result: Result | None) -> str:
    return "not run" if result is None else _count(result.passed, _total(result))


def _total(result: Result) -> int:
    return result.passed + len(result.failures)


def _count(passed: int, total: int) -> str:
    return f"{passed:,} of {total:,}"


def _list_versions(npm: Path) -> Iterator[str]:
    yield _row("suite", "what it is", "versions")
    yield _row(*["---"] * 3)
    for name, suite in SUITES.items():
        versions = ", ".join(f"{package} {_find_version(suite, package, npm)}" for package in suite.packages)
        yield _row(f"`{name}`", suite.title, versions)


def _find_version(suite: Suite, package: str, npm: Path) -> str:
    try:
        if suite.is_node:
            return json.loads((npm / "node_modules" / package / "package.json").read_text())["version"]
        return version(package)
    except (OSError, PackageNotFoundError):
        return "unknown"


def _list_red(results: Sequence[Result]) -> Iterator[str]:
    causes = read_causes()
    red: dict[tuple[str, str], dict[str, set[str]]] = {}
    for result in results:
        for failure in result.failures:
            cause = _find_cause(causes, result, failure.test)
            text = f"{_NO_CAUSE}: {_first_line(failure.message)}" if cause is None else f"{cause.kind}: {cause.cause}"
            tests = red.setdefault((result.suite, text), {"tests": set(), "upstreams": set()})
            tests["tests"].add(failure.test)
            tests["upstreams"].add(result.upstream)
    if red:
        yield _RED
        for (suite, cause), found in sorted(red.items(), key=lambda one: (list(SUITES).index(one[0][0]), one[0][1])):
            yield _row(f"`{suite}`", _join_tests(found["tests"]), _join_upstreams(found["upstreams"]), cause)


def _join_tests(tests: set[str]) -> str:
    """Return the tests by name, with the groups that they fail in."""
    groups: dict[str, list[str]] = {}
    for test in sorted(tests):
        *before, name = test.split(": ")
        groups.setdefault(name, []).extend(before[-1:])
    names = {name: ", ".join(dict.fromkeys(found)) for name, found in groups.items()}
    return "<br>".join(f"{name} ({found})" if found else name for name, found in names.items())


def _join_upstreams(upstreams: set[str]) -> str:
    if upstreams == set(UPSTREAMS):
        return "all"
    return ", ".join(f"`{upstream}`" for upstream in UPSTREAMS if upstream in upstreams)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:160].replace("|", "\\|")


def _row(*values: str) -> str:
    return f"| {' | '.join(values)} |"
