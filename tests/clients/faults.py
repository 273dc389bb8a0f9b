"""Clients whose provider fails: what the client shows, and how many requests reach the provider.

A fault is run with `segue serve`, so that the gateway outlives the client.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from segue.emulator import start
from segue.sessions.launch import LaunchContext
from segue.sessions.registry import PROGRAMS
from tests.clients.processes import Gateway, Process
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import CONFIG, FIRST_PROVIDER, Installation, client_variables

_SECONDS = 150
_PROMPTS = ("TASK-ONE: say hello.", "TASK-TWO: say goodbye.")
# Longer than the gateway waits before it writes to a silent stream.
_SILENCE = 17.0


class Fault(Struct, frozen=True):
    """The faults of the emulator, the prompts, the requests that reach it, and the texts that the client shows.

    `requests` are those of all prompts; the client's own ones, such as those for a title, are not counted.
    """

    client: str
    title: str
    faults: tuple[str, ...]
    requests: int
    texts: tuple[str, ...]
    prompts: int = 1


FAULTS: Mapping[str, Fault] = {
    "codex.overflow": Fault(
        "codex",
        "the context is too long at the first request; Codex compacts before the second prompt",
        ("context-length@1",),
        3,
        ("ran out of room", "context compacted", "Done with task two."),
        prompts=2,
    ),
    "codex.quota": Fault("codex", "the credit is used up", ("no-credit",), 1, ("Quota exceeded",)),
    "codex.late-quota": Fault(
        "codex",
        "the credit is used up, after a silence of 17 seconds",
        ("slow-start", "no-credit"),
        1,
        ("Quota exceeded",),
    ),
    # The gateway itself repeats the first request once.
    "codex.late-overload": Fault(
        "codex",
        "overloaded twice, after a silence of 17 seconds",
        ("slow-start@1,2", "overloaded@1,2"),
        3,
        ("Reconnecting... 1/5", "Done with task one."),
    ),
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
        config.write_text(CONFIG.format(name=FIRST_PROVIDER, api=upstream, base_url=emulator.base_url))
        variables = client_variables(row, installed, folder)
        model = f"{FIRST_PROVIDER}/{UPSTREAMS[upstream]}"
        url = stack.enter_context(Gateway(model, folder, variables)).url
        launch = PROGRAMS[fault.client].launch(LaunchContext(url, "any", model, folder, variables))
        for number, prompt in enumerate(_PROMPTS[: fault.prompts]):
            arguments = [*launch.arguments, *row.build_arguments(prompt, number > 0)]
            program = shutil.which(PROGRAMS[fault.client].program, path=installed.search_path)
            assert program is not None
            command = [program, *arguments]
            with Process(command, folder, folder / "project", {**variables, **launch.variables}) as process:
                if process.wait(_SECONDS) is None:
                    problems.append(f"prompt {number + 1} did not end in {_SECONDS} seconds")
        requests = len(emulator.requests)
    output = (folder / "output.txt").read_text()
    problems += [f"the client does not show {text!r}" for text in fault.texts if text not in output]
    if requests != fault.requests:
        problems.append(f"{requests} requests reached the provider, expected {fault.requests}")
    if not problems:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - started, 1)
    return FaultResult(name, installed.version_of(fault.client), upstream, problems, requests, seconds)
