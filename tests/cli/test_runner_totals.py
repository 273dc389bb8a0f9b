"""Tests that passed and failed, from the output of test runners."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from segue.cli.chat_ui.runner_totals import find_totals, format_totals
from tests.cli.project import Project

CASES = """
import unittest
class T(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): assert {first}
    @unittest.skip("x")
    def test_c(self): pass
"""

OUTPUTS = {
    "==== 1 failed, 2 passed, 1 skipped in 0.12s ====": (2, 1),
    "2 passed, 3 warnings in 75.31s (0:01:15)": (2, 0),
    "\x1b[32m\x1b[1m12 passed\x1b[0m\x1b[32m in 0.03s\x1b[0m": (12, 0),
    "1 error in 0.05s": (0, 1),
    "1 passed in 0.01s\nand again\n3 passed in 0.02s": (3, 0),
    "no tests ran in 0.01s": None,
    "3 deselected in 0.01s": None,
    "I ran them: 2 passed in 1.0s or so": None,
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s": (4, 2),
    "Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\nSnapshots:   0 total": (2, 1),
    " Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n   Duration  300ms": (2, 1),
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL": (1, 1),
    "--- FAIL: TestB (0.00s)\nFAIL\texample.com/x\t0.002s": None,
    "ok  \texample.com/x\t0.002s": None,
    "test result: ok. 3 passed; 0 failed;\n\n[… 9 characters left out …]\n\ntest result: ok. 1 passed; 1 failed;": None,
    "bread\n": None,
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_summary_of_a_runner(output: str) -> None:
    assert find_totals(output) == OUTPUTS[output]
    assert find_totals(output.replace("\n", "\r\n")) == OUTPUTS[output]


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize(
    "flags", [["pytest", "-p", "no:cacheprovider"], ["pytest", "-q", "--color=yes"], ["unittest", "-v"]]
)
def test_summary_of_runners_themselves(flags: list[str], passes: bool, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CASES.format(first=passes))
    line = [sys.executable, "-m", *flags]
    ended = subprocess.run(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    assert find_totals(ended.stdout) == ((2, 0) if passes else (1, 1)), ended.stdout


def test_line_after_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    monkeypatch.chdir(project.folder)
    (project.folder / "lines").write_text("a\nb\nc\nd\ne\nf\ng\n1 failed, 2 passed in 0.02s\n")
    asked = b"Run `cat lines`\n"
    flags, allow = ("chat", "--emulated"), '[tools]\nallow = ["shell(cat *)"]\n'
    project.write_user_config(allow)
    output = project.run(*flags, stdin=asked).out.decode()
    assert "\n  tests: 1 failed, 2 passed\n" in output
    assert "\n    c\n    … 3 more lines, Ctrl-O shows all\n    g\n" in output
    project.write_user_config(f"{allow}first_lines = 1\nlast_lines = 0\n")
    assert "\n    a\n    … 7 more lines, Ctrl-O shows all\n\n" in project.run(*flags, stdin=asked).out.decode()
    project.write_user_config("[tools]\nfirst_lines = -1\n")
    ended = project.run(*flags, stdin=asked)
    assert (ended.code, "tools.first_lines" in ended.err) == (2, True)


def test_failures_come_first() -> None:
    assert format_totals(2, 1) == "tests: 1 failed, 2 passed"
    assert format_totals(1_000, 0) == "tests: 1,000 passed"
