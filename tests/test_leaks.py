"""The leak check, in a pytest of its own: each test that leaves something behind fails, and the one after it passes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import environment

CONFTEST = """
import pytest
from tests.leaks import LeakCheck

def pytest_configure(config):
    config.pluginmanager.register(LeakCheck(config, grace=0.2))
"""
LEAKS = {
    "in_the_working_folder": 'Path("a").mkdir()',
    "through_the_working_folder": 'Path("/proc/self/cwd/link").symlink_to("/")',
    "in_the_checkout": '(Path(__file__).parent / "b").write_text("")',
    "in_the_temporary_folder": "tempfile.mkdtemp()",
    "beside_the_tests_own_folder": '(tmp_path.parent / "other").mkdir()',
    "a_process": 'HELD.append(subprocess.Popen(["sleep", "3600"]))',
    "an_open_file": "cycle = [open(__file__)]; cycle.append(cycle)",
    "an_old_open_file": "cycle = [open(__file__)]; cycle.append(cycle); gc.collect()",
    "an_event_loop": "cycle = [asyncio.new_event_loop()]; cycle.append(cycle)",
    "a_process_that_ended": 'cycle = [subprocess.Popen(["true"])]; cycle.append(cycle)',
    "a_process_of_a_thread": 'run_in_thread(lambda: HELD.append(subprocess.Popen(["sleep", "3600"])))',
}
HEAD = """
import asyncio, gc, subprocess, tempfile, threading
from pathlib import Path

HELD = [open(__file__) for _ in range(3)]

def test_that_leaves_fewer_files_open():
    for file in HELD:
        file.close()

def run_in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
PAIR = """
def test_{name}(tmp_path):
    {leak}

def test_after_{name}(tmp_path):
    (tmp_path / "mine").write_text("")
    subprocess.run(["true"], check=True)
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
"""
BELOW = """
from pathlib import Path

def test_leaks_below():
    (Path(__file__).parent / "below" / "new").write_text("")

def test_neighbour():
    (Path(__file__).parent / "build").mkdir()
"""


@pytest.fixture
def run_pytest(tmp_path: Path):
    checkout = tmp_path / "checkout"
    checkout.mkdir()

    def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (checkout / "conftest.py").write_text(CONFTEST)
        (checkout / "pytest.ini").write_text("[pytest]\nfilterwarnings = error::ResourceWarning\n")
        (checkout / "test_theirs.py").write_text(text)
        (checkout / "below").mkdir()
        command = [sys.executable, "-B", "-m", "pytest", "-v", "-p", "xdist", "-p", "no:cacheprovider", *arguments]
        variables = environment(
            TMPDIR=str(tmp_path), PYTHONPATH=os.pathsep.join(filter(None, sys.path)), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"
        )
        return subprocess.run(
            command, cwd=checkout, env=variables, capture_output=True, text=True, timeout=100, check=False
        )

    return run


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed by Linux")
def test_a_test_that_leaks_fails_and_its_neighbour_passes(run_pytest, tmp_path):
    text = HEAD + "".join(PAIR.format(name=name, leak=leak) for name, leak in LEAKS.items())
    done = run_pytest(text)
    lines = [line for line in done.stdout.splitlines() if line.startswith("test_theirs.py::") and "ERROR" in line]
    assert [line.split()[0] for line in lines] == [f"test_theirs.py::test_{name}" for name in LEAKS], done.stdout
    count = len(LEAKS)
    assert f" {2 * count + 1} passed, {count} errors in " in done.stdout
    assert done.stdout.count("\nthe test left behind: ") == count
    assert "(sleep 3600)" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if "pytest-of" not in path.name) == ["checkout"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_file_that_appears_in_the_checkout_fails_the_run(run_pytest, workers):
    done = run_pytest(BELOW, "-n", workers)
    assert done.returncode == 1, done.stdout
    assert " 2 passed in " in done.stdout
    section = done.stdout.partition("new files in the checkout")[2].splitlines()
    assert section[1] == "below/new"
    assert "    created during test_theirs.py::test_leaks_below" in section
    assert not any(line.startswith("build") for line in section)
