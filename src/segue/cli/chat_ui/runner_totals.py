"""How many tests passed and failed, by the summary that a test runner prints; None where it is not sure."""

from __future__ import annotations

import re

from segue.canonical.placeholders import CUT_NOTE

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_PYTEST = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in \d[\d.]*s(?: \(\d[\d:]*\))?(?: =+)?$", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in \d[\d.]*s\n\n(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_PART = re.compile(r"([a-z][a-z ]*)=(\d+)")
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
_JEST = re.compile(r"^Tests: +((?:\d+ [a-z]+, )+)\d+ total$", re.MULTILINE)
_VITEST = re.compile(r"^ *Tests  ((?:\d+ [a-z]+(?: \| )?)+) \(\d+\)$", re.MULTILINE)
_GO_VERBOSE = re.compile(r"^=== RUN ", re.MULTILINE)
_GO = re.compile(r"^--- (PASS|FAIL): ", re.MULTILINE)
_PART = re.compile(r"(\d+) ([a-z]+)")
_CUT = CUT_NOTE.partition("{")[0].strip()


def find_totals(output: str) -> tuple[int, int] | None:
    """Return the tests that passed and failed, of the last summary in an output."""
    text = _COLOR.sub("", output.replace("\r\n", "\n"))
    for summary in (_PYTEST, _JEST, _VITEST):
        if found := summary.findall(text):
            parts = {name: int(number) for number, name in _PART.findall(found[-1])}
            if parts.keys() & {"passed", "failed", "error", "errors"}:
                return parts.get("passed", 0), parts.get("failed", 0) + parts.get("error", 0) + parts.get("errors", 0)
    if found := _UNITTEST.findall(text):
        count, more = found[-1]
        parts = {name: int(number) for name, number in _UNITTEST_PART.findall(more)}
        failed = sum(parts.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
        return int(count) - failed - parts.get("skipped", 0) - parts.get("expected failures", 0), failed
    if _CUT in text:
        # The others have to be added up.
        return None
    if found := _CARGO.findall(text):
        return sum(int(passed) for passed, _ in found), sum(int(failed) for _, failed in found)
    if _GO_VERBOSE.search(text) and (results := _GO.findall(text)):
        return results.count("PASS"), results.count("FAIL")
    return None


def format_totals(passed: int, failed: int) -> str:
    parts = [f"{failed:,} failed"] if failed else []
    return f"tests: {', '.join([*parts, f'{passed:,} passed'])}"
