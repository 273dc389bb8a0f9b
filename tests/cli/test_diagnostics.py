"""What libraries log and warn does not reach the user's terminal, unless `SEGUE_DEBUG` is set."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.process import environment

NOISY = """
import asyncio, gc, logging, os, sys, warnings
import click
from segue.cli import app

class Unraisable:
    def __del__(self):
        raise ValueError("in a finalizer")

async def fail():
    raise ValueError("in a task")

async def main():
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task
    gc.collect()

@click.command()
def noisy():
    for name in (None, "asyncio", "httpx", "httpcore", "aiosqlite", "psycopg.pool", "mcp", "urllib3", "segue"):
        logging.getLogger(name).error("error of %s", name)
        logging.getLogger(name).warning("warning of %s", name)
    for kind in (ResourceWarning, DeprecationWarning, UserWarning, RuntimeWarning, FutureWarning):
        warnings.warn(f"a {kind.__name__}", kind)
    open(os.devnull)
    Unraisable()
    asyncio.run(main())
    print("result")

app.COMMANDS = {"noisy": app.CommandRow("", "")}
app.Commands.get_command = lambda *_: noisy
sys.argv = ["segue", "noisy"]
app.main()
"""
SHOWN = (
    *("error of psycopg.pool", "warning of None", "a ResourceWarning", "a DeprecationWarning", "a FutureWarning"),
    *("unclosed file", "in a finalizer", "Task exception was never retrieved"),
)


def run_noisy(**variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", NOISY],
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=100,
        check=True,
    )


@pytest.mark.parametrize(
    "variables", [{}, {"PYTHONWARNINGS": "always", "PYTHONASYNCIODEBUG": "1"}, {"PYTHONDEVMODE": "1"}]
)
def test_libraries_print_nothing(variables: dict[str, str]) -> None:
    ended = run_noisy(**variables)
    assert (ended.stdout, ended.stderr) == ("result\n", "")


def test_debug_prints_what_libraries_print() -> None:
    ended = run_noisy(SEGUE_DEBUG="1")
    assert ended.stdout == "result\n"
    assert [text for text in SHOWN if text not in ended.stderr] == []


def test_the_library_leaves_the_root_logger_alone() -> None:
    script = (
        "import logging, pkgutil, importlib, segue\n"
        "for module in pkgutil.walk_packages(segue.__path__, 'segue.'):\n"
        "    module.name == 'segue.__main__' or importlib.import_module(module.name)\n"
        "print(logging.getLogger().handlers, logging.getLogger('segue').handlers)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), check=True
    )
    assert ended.stdout == "[] [<NullHandler (NOTSET)>]\n"
