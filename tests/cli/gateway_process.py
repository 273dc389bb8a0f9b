"""`segue serve` and `segue with` as processes, with files of their own."""

from __future__ import annotations

import json
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.cli.process import SEGUE, environment
from tests.cli.project import Project
from tests.interrupts import default_interrupt

PATIENCE = 100.0
HELLO = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}


class Serving:
    """A process that serves, and the lines of its stderr as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line.decode())

    def line(self) -> str:
        return self._lines.get(timeout=PATIENCE)

    def wait_for_line(self, pattern: str) -> re.Match[str]:
        while True:
            if found := re.search(pattern, self.line()):
                return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Return the exit code after a signal, and the rest of stderr."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code, "".join(self._lines.queue)

    def post(self, body: Any = None, path: str = "/v1/chat/completions", **headers: str) -> httpx2.Response:
        return httpx2.post(self.url + path, json=body or HELLO, headers=headers, timeout=PATIENCE)


@contextmanager
def start_segue(project: Project, *arguments: str, **variables: str) -> Generator[Serving]:
    """Start a command in the project's folder; it is killed at the end."""
    with default_interrupt():
        process = subprocess.Popen(
            [*SEGUE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=project.folder,
            env=environment(**{**project.variables, **variables}),
        )
    serving = Serving(process)
    try:
        yield serving
    finally:
        process.kill()
        process.wait()
        serving._reader.join(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()


@contextmanager
def serving(project: Project, *arguments: str, **variables: str) -> Generator[Serving]:
    """Run `segue serve` on a free port."""
    with start_segue(project, "serve", "--port", "0", *arguments, **variables) as started:
        started.url = started.wait_for_line(r"serving .* on (\S+);")[1]
        yield started


def record_files(project: Project) -> list[Path]:
    return sorted((project.home / ".local/state/segue/gateways").glob("*"))


def write_record(project: Project, name: str, **fields: Any) -> Path:
    folder = project.home / ".local/state/segue/gateways"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"gateway-{name}.json"
    file.write_text(json.dumps(fields))
    return file
