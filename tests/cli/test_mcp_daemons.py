"""No process that an MCP server starts outlives segue, in whatever way it left the server and segue ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from tests.budget import sample
from tests.cli.process import SEGUE, environment
from tests.cli.project import Project
from tests.interrupts import default_interrupt
from tests.runtime.test_shell_processes import ESCAPES, START_ALL, WAIT_FOR_ALL, living

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs a subreaper")
SERVER = Path(__file__).parents[1] / "runtime" / "mcp_plain_server.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def start_segue(project: Project, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start segue with a server of this kind, and wait until the server has started all its processes."""
    script = project.home / "server.sh"
    script.write_text(f"{START_ALL}\n{WAIT_FOR_ALL}\necho $$ > server.pid\nexec '{sys.executable}' '{SERVER}' {kind}\n")
    project.write_user_config(f'[mcp.odd]\ncommand = ["bash", "{script}"]\nstart = 240\n')
    with default_interrupt():
        started = subprocess.Popen(
            [*SEGUE, *arguments],
            stdin=subprocess.PIPE if "chat" in arguments else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=project.folder,
            env=environment(**project.variables),
        )
    while not (project.folder / "server.pid").exists() and started.poll() is None:
        time.sleep(0.01)
    return started


def wait_for_the_end(project: Project) -> None:
    server = Path("/proc") / (project.folder / "server.pid").read_text().strip()
    while living(project.folder) or server.exists():
        time.sleep(0.01)


@pytest.mark.parametrize("arguments", [("run", "--emulated", "Hello"), ("chat", "--emulated")])
def test_processes_of_a_server_end_with_a_run(project: Project, arguments: tuple[str, ...]) -> None:
    with start_segue(project, "old", *arguments) as started:
        assert len(living(project.folder)) == len(ESCAPES) or started.poll() is not None
        started.communicate(b"")
        assert started.returncode == 0
        # Segue ends them before it ends itself.
        assert not living(project.folder)
        wait_for_the_end(project)


SIGNALS = product((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL), ("old", "silent"))


@pytest.mark.parametrize(("number", "kind"), [*sample(SIGNALS, 3)])
def test_processes_of_a_server_end_after_a_signal(project: Project, number: signal.Signals, kind: str) -> None:
    with start_segue(project, kind, "chat", "--emulated") as started:
        assert len(living(project.folder)) == len(ESCAPES)
        started.send_signal(number)
        started.wait()
        wait_for_the_end(project)


def test_processes_of_a_server_that_crashed_end_with_segue(project: Project) -> None:
    with start_segue(project, "broken", "chat", "--emulated") as started:
        started.kill()
        started.wait()
        wait_for_the_end(project)
