"""Compares what segue reads from a session with what the client itself sends when it resumes the session.

A scenario makes a session in the real client, on an emulated provider without a gateway in between. Then segue reads
the session, and the client resumes it with another prompt. The history in that request, without the client's own
context and without the prompt, must be what segue read: the same blocks in the same order.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from segue.emulator import Emulator, start
from segue.emulator.steps import ReplySteps, TextStep
from segue.sessions.client import ClientHome, SessionFile
from segue.sessions.launch import LaunchContext
from segue.sessions.registry import CLIENTS, PROGRAMS
from segue.sessions.session import parse_session
from tests.clients.judge import Script
from tests.clients.move_rows import MOVE_ROWS
from tests.clients.processes import end_processes_in, end_session
from tests.clients.reading_judge import compare_histories
from tests.clients.rows import CLIENT_ROWS
from tests.clients.run import Installation, client_variables
from tests.clients.task import Round, write_files
from tests.clients.terminals import Terminal

LAST_PROMPT = "TASK-LAST: say that you are done."
_SECONDS = 90
_POLL_SECONDS = 0.05


class ReadingResult(Struct, frozen=True):
    client: str
    scenario: str
    version: str
    problems: list[str]
    blocks: int
    seconds: float


class Reading:
    """A scenario's client in a fresh home and work folder, with the provider's replies in their order."""

    def __init__(self, client: str, installed: Installation, folder: Path) -> None:
        self.client = client
        self.home, self.work = folder / "home", folder / "project"
        self.arguments: tuple[str, ...] = ()
        """More arguments of every run of the client."""
        self.variables: dict[str, str] = {}
        """More variables of every run of the client."""
        self.session: str | None = None
        """The id of the session that is compared; without it, the newest."""
        self.resume = MOVE_ROWS[client].resume
        self._folder = folder
        self._installed = installed
        self.script = Script([], CLIENT_ROWS[client].only_tool)
        self._emulator: Emulator | None = None

    # ---------------------------------------------------------------------------------------------------------- replies

    def add(self, *steps: Any) -> None:
        """Add a reply of the provider."""
        self.script.rounds = [*self.script.rounds, Round(1, (), steps)]

    def run(self, *arguments: str, replies: Sequence[ReplySteps] = (), until: str | None = None) -> None:
        """Run the client to its end; or kill it when a file of this name is in the work folder."""
        for steps in replies:
            self.add(*steps)
        with Program(self.command(*arguments), self._folder, self.work, self.environ()) as program:
            program.close_input()
            program.wait(lambda: until is not None and (self.work / until).exists())
            if until is not None:
                # The session is written after the command starts.
                time.sleep(1)

    def start(self, *arguments: str) -> Program:
        """Start the client; its input and output are lines of JSON."""
        return Program(self.command(*arguments), self._folder, self.work, self.environ())

    def open(self, *arguments: str) -> Terminal:
        """Start the client on a terminal."""
        return Terminal(self.command(*arguments), self._folder, self.work, self.environ())

    def has_written(self, *texts: str) -> bool:
        """Return whether the newest session has all these texts."""
        found = list(CLIENTS[self.client].find(self._place(), self.work))
        data = max(found, key=lambda file: file.updated).path.read_text() if found else ""
        return all(text in data for text in texts)

    def command(self, *arguments: str) -> list[str]:
        return [PROGRAMS[self.client].program, *self._launch().arguments, *arguments, *self.arguments]

    def environ(self) -> dict[str, str]:
        row = CLIENT_ROWS[self.client]
        return {**client_variables(row, self._installed, self._folder), **self._launch().variables, **self.variables}

    def _launch(self) -> Any:
        assert self._emulator is not None
        url = self._emulator.base_url.removesuffix("/v1")
        return PROGRAMS[self.client].launch(LaunchContext(url, "sk-emulated", "", self._folder, {}))

    # ---------------------------------------------------------------------------------------------------------- compare

    def __enter__(self) -> Self:
        shutil.rmtree(self._folder, ignore_errors=True)
        (self.home / ".codex").mkdir(parents=True)
        self.work.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        write_files(self.work)
        upstream = MOVE_ROWS[self.client].upstream
        self._emulator = start(upstream, script=self.script.reply, on_request=self.script.add_record)
        return self

    def __exit__(self, *_: object) -> None:
        end_processes_in(self.work)
        if self._emulator is not None:
            self._emulator.stop()
        records = [record.body for record in self.script.records]
        (self._folder / "requests.json").write_text(json.dumps(records, indent=1, default=str))

    def find(self) -> SessionFile:
        """Return the session of the scenario."""
        found = list(CLIENTS[self.client].find(self._place(), self.work))
        if self.session is not None:
            found = [file for file in found if file.id == self.session]
        return max(found, key=lambda file: file.updated)

    def _place(self) -> ClientHome:
        return ClientHome(self.home, {})

    def compare(self) -> tuple[list[str], int]:
        """Return the differences between what segue reads and what the client sends, and the number of blocks."""
        client, file = CLIENTS[self.client], self.find()
        data = client.load(self._place(), file)
        (self._folder / "session.jsonl").write_bytes(data)
        session = parse_session(client, file, data)
        answered, before = len(self.script.exchanges), len(self.script.records)
        self.script.rounds = [*self.script.rounds[:answered], Round(1, (), (TextStep("Done."),))]
        self.run(*self.resume(LAST_PROMPT, file.id))
        bodies = [record.body for record in self.script.records[before:] if LAST_PROMPT in str(record.body)]
        # The first one: a client changes the history after an error.
        body = next((body for body in bodies if body is not None and _has_tools(body)), None)
        if body is None:
            return ["no request reached the provider"], 0
        (self._folder / "resumed.json").write_text(json.dumps(body, indent=1, default=str))
        return compare_histories(client.api, [entry.message for entry in session.entries], body, LAST_PROMPT)


def _has_tools(body: Mapping[str, Any]) -> bool:
    """Return whether a request is of the conversation, and not for a title."""
    return bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in body.get("input", ()))


class Program:
    """A client whose input and output are pipes; all that it prints is kept in a file."""

    def __init__(self, command: Sequence[str], folder: Path, work: Path, variables: Mapping[str, str]) -> None:
        self._output = (folder / "output.txt").open("ab")
        self._process = subprocess.Popen(
            command,
            cwd=work,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            start_new_session=True,
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._output.write(line)
            self._output.flush()
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    self._lines.put(value)

    def send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def receive(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next line that is wanted; others are skipped. `TimeoutError` without one."""
        end = time.monotonic() + _SECONDS
        while (left := end - time.monotonic()) > 0:
            with suppress(queue.Empty):
                value = self._lines.get(timeout=min(left, 1))
                if is_wanted(value):
                    return value
            if self._process.poll() is not None and self._lines.empty():
                break
        raise TimeoutError("the client did not print what was expected")

    def wait(self, is_done: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end of the client, or for a condition."""
        end = time.monotonic() + _SECONDS
        while self._process.poll() is None and time.monotonic() < end and not is_done():
            time.sleep(_POLL_SECONDS)

    def interrupt(self) -> None:
        """Send the signal of Ctrl-C."""
        os.killpg(self._process.pid, signal.SIGINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_session(self._process.pid)
        self._process.wait()
        self._thread.join()
        self._output.close()


Scenario = Callable[[Reading], None]


def run_reading(client: str, name: str, scenario: Scenario, installed: Installation, folder: Path) -> ReadingResult:
    """Run a scenario and compare. The folder keeps the client's files if there are differences."""
    started = time.monotonic()
    blocks = 0
    try:
        with Reading(client, installed, folder) as reading:
            scenario(reading)
            problems, blocks = reading.compare()
    except (TimeoutError, ValueError) as error:
        problems = [f"{type(error).__name__}: {error}"]
    if not problems:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - started, 1)
    return ReadingResult(client, name, installed.version_of(client), problems, blocks, seconds)
