"""Clients whose provider fails, or whose budget is used up: what the client shows, and how many requests it sends.

A fault is run with `segue serve`, so that the gateway outlives the client.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from segue.emulator import start
from segue.gateway.budgets import open_lines
from segue.gateway.shared_entries import open_entries
from segue.sessions.launch import LaunchContext
from segue.sessions.registry import PROGRAMS
from tests.clients.processes import Gateway, Process
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import CONFIG, FIRST_PROVIDER, Installation, client_variables

_SECONDS = 150
_PROMPTS = ("TASK-ONE: say hello.", "TASK-TWO: say goodbye.")
# Longer than the gateway waits before it writes to a silent stream.
_SILENCE = 17.0
_BUDGET = "50/total"
_USED_UP = "the budget of ada, $50.00 in total, is used up"
_PRICE = '[prices."{model}"]\ninput = 1\noutput = 1\n'


class Fault(Struct, frozen=True):
    """The faults of the emulator, the prompts, the requests that reach it, and the texts that the client shows.

    `requests` are those of all prompts; the client's own ones, such as those for a title, are not counted. With
    `has_spent`, the client's budget is used up, and they are all that the gateway refuses.
    """

    client: str
    title: str
    faults: tuple[str, ...]
    requests: int
    texts: tuple[str, ...]
    prompts: int = 1
    has_spent: bool = False


FAULTS: Mapping[str, Fault] = {
    "codex.overflow": Fault(
        "codex",
        "the context is too long at the first request; Codex compacts before the second prompt",
        ("context-length@1",),
        3,
        ("ran out of room", "context compacted", "Done with task two."),
        prompts=2,
    ),
    "codex.quota": Fault("codex", "the credit is used up", ("no-credit",), 1, ("has no credit left",)),
    "codex.late-quota": Fault(
        "codex",
        "the credit is used up, after a silence of 17 seconds",
        ("slow-start", "no-credit"),
        1,
        ("has no credit left",),
    ),
    # The gateway itself repeats the first request once.
    "codex.late-overload": Fault(
        "codex",
        "overloaded twice, after a silence of 17 seconds",
        ("slow-start@1,2", "overloaded@1,2"),
        3,
        ("Reconnecting... 1/5", "Done with task one."),
    ),
    **{
        f"{client}.budget": Fault(
            # opencode requests a title beside the reply.
            client,
            "the budget of its key is used up",
            (),
            2 if client == "opencode" else 1,
            (_USED_UP,),
            has_spent=True,
        )
        for client in CLIENT_ROWS
    },
}


class FaultResult(Struct, frozen=True):
    name: str
    version: str
    upstream: str
    problems: list[str]
    requests: int
    seconds: float


def list_faults() -> list[tuple[str, str]]:
    """Return the faults, each with two providers."""
    return [(name, upstream) for name in FAULTS for upstream in ("anthropic", "kimi")]


def run_fault(name: str, upstream: str, installed: Installation, folder: Path) -> FaultResult:
    """Run the client's prompts, and judge its output. The folder keeps it if the run is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    fault, row = FAULTS[name], CLIENT_ROWS[FAULTS[name].client]
    (folder / "home" / ".codex").mkdir(parents=True)
    (folder / "project").mkdir()
    subprocess.run(["git", "init", "-q", str(folder / "project")], check=True)
    started = time.monotonic()
    problems: list[str] = []
    with ExitStack() as stack:
        script = "\n".join(("say Done with the summary.", "---", "say Done with task two."))
        script = script if fault.prompts > 1 else "say Done with task one."
        emulator = stack.enter_context(start(upstream, script=script, faults=fault.faults, patience=_SILENCE))
        config = folder / "home" / ".config" / "segue" / "config.toml"
        config.parent.mkdir(parents=True)
        model = f"{FIRST_PROVIDER}/{UPSTREAMS[upstream]}"
        provider = CONFIG.format(name=FIRST_PROVIDER, api=upstream, base_url=emulator.base_url)
        config.write_text(provider + _PRICE.format(model=model))
        variables = client_variables(row, installed, folder)
        key, options = _spend_budget(folder, variables) if fault.has_spent else ("any", ())
        url = stack.enter_context(Gateway(model, folder, variables, *options)).url
        program_row = PROGRAMS[row.program or fault.client]
        launch = program_row.launch(LaunchContext(url, key, model, folder, variables))
        for each in launch.folders:
            each.mkdir(parents=True, exist_ok=True)
        for number, prompt in enumerate(_PROMPTS[: fault.prompts]):
            arguments = [*launch.arguments, *row.build_arguments(prompt, number > 0)]
            program = shutil.which(program_row.program, path=installed.search_path)
            assert program is not None
            command = [program, *arguments]
            with Process(command, folder, folder / "project", {**variables, **launch.variables}) as process:
                if process.wait(_SECONDS) is None:
                    problems.append(f"prompt {number + 1} did not end in {_SECONDS} seconds")
        requests = len(emulator.requests) + (folder / "gateway.log").read_text().count(_USED_UP)
    output = (folder / "output.txt").read_text()
    problems += [f"the client does not show {text!r}" for text in fault.texts if text not in output]
    if requests != fault.requests:
        problems.append(f"{requests} requests, expected {fault.requests}")
    if not problems:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - started, 1)
    return FaultResult(name, installed.version_of(fault.client), upstream, problems, requests, seconds)


def _spend_budget(folder: Path, variables: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Make a client key whose budget is used up; return it, and the options of its gateway."""
    command = [sys.executable, "-m", "segue", "keys", "client", "add", "ada", "--budget", _BUDGET]
    made = subprocess.run(command, env=dict(variables), cwd=folder, capture_output=True, check=True, text=True)
    file = folder / "store" / "entries.db"
    store = open_entries(str(file))
    lines = open_lines("ada", "ada", (_BUDGET,), datetime.now(UTC))
    store.settle("earlier", lines, 0, lines[0].budget.amount)
    store.close()
    return made.stdout.strip(), ("--store", str(file))
