"""`segue` as its users run it: a process with bytes in, bytes out and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import msgspec

from tests.cli.fork_server import run_forked

SEGUE = (sys.executable, "-m", "segue")
_QUIET = {"PYTHONUTF8": "1"}
_INHERITED = ("PATH", "HOME", "TMPDIR", "PYTHONPATH", "SYSTEMROOT")


class ProcessResult(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


def environment(**variables: str) -> dict[str, str]:
    """A minimal environment: NO_COLOR or FORCE_COLOR of the caller have no effect."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | _QUIET | variables


def run(*arguments: str, stdin: bytes = b"", **variables: str) -> ProcessResult:
    """Runs the command in a forked process with all modules loaded, on files."""
    if any(name.startswith("PYTHON") for name in variables):  # only a new interpreter reads them
        return run_new(*arguments, stdin=stdin, **variables)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        code = run_forked(arguments, environment(**variables), (given.fileno(), out.fileno(), err.fileno()))
        out.seek(0)
        err.seek(0)
        return ProcessResult(code, out.read(), err.read().decode())


def run_new(*arguments: str, stdin: bytes = b"", **variables: str) -> ProcessResult:
    """Runs the command in a new interpreter, on pipes."""
    ended = subprocess.run(
        [*SEGUE, *arguments], input=stdin, capture_output=True, env=environment(**variables), timeout=100, check=False
    )
    return ProcessResult(ended.returncode, ended.stdout, ended.stderr.decode())


def is_one_line_error(ended: ProcessResult, code: int = 2) -> bool:
    """Whether a command failed with this code, no stdout and one stderr line with the program name."""
    return ended.code == code and not ended.out and ended.err.startswith("segue: ") and ended.err.count("\n") == 1
