"""Every script in `examples/` is run as a program; its docstring has the output that it must print."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.process import environment

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
MAX_LINES = 40
_MARK = "Expected output:\n\n"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_prints_what_its_docstring_shows(script: Path, tmp_path: Path):
    docstring = ast.get_docstring(ast.parse(script.read_text())) or ""
    assert _MARK in docstring
    expected = textwrap.dedent(docstring.partition(_MARK)[2])
    ended = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.stdout.rstrip("\n"), ended.stderr, ended.returncode) == (expected, "", 0)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_is_short(script: Path):
    assert len(script.read_text().splitlines()) <= MAX_LINES
