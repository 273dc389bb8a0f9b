"""Clients that compact a conversation behind the gateway, which is then switched to other providers and home again.

The model's first call reads a fact that only its result has. Every later request must have it, whatever stands for it:
the messages, or a summary. The emulator's summaries have what the summarised request has, and nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from segue.canonical.envelope import ENVELOPE_PREFIX
from segue.canonical.request import Request
from segue.emulator import RecordedRequest, start
from segue.emulator.steps import CallStep, ReplySteps, TextStep
from segue.sessions.launch import Launch, LaunchContext
from segue.sessions.registry import PROGRAMS
from tests.clients.history import all_text
from tests.clients.move_rows import MOVE_ROWS
from tests.clients.processes import Gateway, Process
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import CONFIG, Installation, client_variables, write_settings
from tests.clients.task import RAN_FILE

_SECONDS = 150
_FACTS = ("KESTREL-7", "OSPREY-9")
_FILE = "fact.txt"
# So long that a compaction is worth it.
_FILLER = "All is quiet at the river.\n" * 600
_SUMMARY = "SUMMARY-TEXT"
# Claude Code asks for a summary with all of its tools, others without tools.
_CLAUDES_PROMPT = "create a detailed summary"
_HOME = "openai-responses"
# The number of the run in which a client only compacts.
_COMPACTS = 0
# Above this number of tokens Codex compacts after each call; all of its requests are above it.
_CODEX_LIMIT = ("-c", "model_auto_compact_token_limit=500")


class Compaction(Struct, frozen=True):
    """A client, and how it is set up. `is_built_in`: Codex with its own provider, at another address."""

    client: str
    title: str
    is_built_in: bool = False


COMPACTIONS: Mapping[str, Compaction] = {
    "compact.codex-url": Compaction("codex", "in mid-task, with `openai_base_url`", is_built_in=True),
    "compact.codex": Compaction("codex", "in mid-task"),
    "compact.claude": Compaction("claude", "`/compact`"),
    "compact.opencode": Compaction("opencode", "above its limit"),
}
WAYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("anthropic", "kimi", _HOME),
    "kimi": ("kimi", "anthropic", _HOME),
    "home": (_HOME, "kimi", "anthropic", _HOME),
}
"""The providers of the prompts; the first one's model compacts."""


class CompactionResult(Struct, frozen=True):
    name: str
    version: str
    way: str
    problems: list[str]
    compactions: int
    seconds: float


def list_compactions() -> list[tuple[str, str]]:
    return [(name, way) for name in COMPACTIONS for way in WAYS]


class _Script:
    """Replies to the client's requests, and keeps what is wrong with them."""

    def __init__(self, client: str, work: Path) -> None:
        self._row, self._work = CLIENT_ROWS[client], work
        self.prompt = self._number = 0
        self.compactions = 0
        self.problems: list[str] = []

    def begin(self, prompt: int) -> None:
        self.prompt, self._number = prompt, 0

    def reply(self, request: Request) -> ReplySteps:
        text = all_text(request)
        last = all_text(Request(tuple(each for each in request.messages if each.speaker != "system")[-1:]))
        is_own = any(tool.name == self._row.only_tool for tool in request.tools)
        if not is_own or _CLAUDES_PROMPT in last:
            facts = [fact for fact in _FACTS if fact in text]
            self.compactions += len(facts) == len(_FACTS)
            return (TextStep(f"{_SUMMARY} {' '.join(facts)}"),)
        self._number += 1
        if self.prompt > 1 or self._number > 1:
            missing = [fact for fact in _FACTS if fact not in text]
            self.problems += [f"prompt {self.prompt}, request {self._number}: {fact} is missing" for fact in missing]
        steps = [*self._calls(), TextStep(f"Done with prompt {self.prompt}.")]
        return (steps[self._number - 1],) if self._number <= len(steps) else (steps[-1],)

    def _calls(self) -> list[CallStep]:
        if self.prompt == _COMPACTS:
            return []
        run = CallStep(self._row.shell_tool, self._row.build_command(f"echo {self.prompt} >> {RAN_FILE}"))
        read = CallStep(self._row.read_tool, self._row.build_read(self._work / _FILE))
        return [read, run] if self.prompt == 1 else [run]

    def add_record(self, record: RecordedRequest) -> None:
        body = json.dumps(record.body)
        if record.refused is not None:
            self.problems.append(f"refused by {record.api}: {record.refused}")
        if record.api != _HOME and "encrypted_content" in body:
            self.problems.append(f"{record.api} got an encrypted item")
        if ENVELOPE_PREFIX in body:
            self.problems.append(f"{record.api} got an item of segue")
        if record.api == _HOME and "compaction_trigger" in body:
            self.compactions += 1


def run_compaction(name: str, way: str, installed: Installation, folder: Path) -> CompactionResult:
    """Run the client's prompts, and judge what reached the providers. The folder keeps its output if that is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    client, upstreams = COMPACTIONS[name].client, WAYS[way]
    row, home, work = CLIENT_ROWS[client], folder / "home", folder / "project"
    (home / ".codex").mkdir(parents=True)
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / _FILE).write_text(f"{_FACTS[1]}\n{_FILLER}")
    write_settings(row.settings, home)
    started, script = time.monotonic(), _Script(client, work)
    with ExitStack() as stack:
        config = ""
        for upstream in dict.fromkeys(upstreams):
            emulator = stack.enter_context(start(upstream, script=script.reply, on_request=script.add_record))
            config += CONFIG.format(name=_name(upstream), api=upstream, base_url=emulator.base_url)
        write_settings({".config/segue/config.toml": config}, home)
        variables = client_variables(row, installed, folder)
        store = ("--store", str(folder / "entries.db"))
        gateway = stack.enter_context(Gateway(_model(upstreams[0]), folder, variables, *store))
        context = LaunchContext(gateway.url, "any", _model(upstreams[0]), folder, variables)
        launch = PROGRAMS[client].launch(context)
        if COMPACTIONS[name].is_built_in:
            url = ("-c", f'openai_base_url="{gateway.url}/v1"')
            launch = Launch(url, {"CODEX_API_KEY": "any", "OPENAI_API_KEY": "any"})
        for number, arguments, settings in _list_steps(client, len(upstreams)):
            if number > 1:
                route = [sys.executable, "-m", "segue", "route", _model(upstreams[number - 1])]
                subprocess.run(route, env=variables, cwd=work, check=True, capture_output=True)
            write_settings({**row.settings, **settings}, home)
            script.begin(number)
            program = shutil.which(PROGRAMS[client].program, path=installed.search_path) or client
            command = [program, *launch.arguments, *arguments]
            with Process(command, folder, work, {**variables, **launch.variables}) as process:
                code = process.wait(_SECONDS)
            if code != 0:
                script.problems.append(f"prompt {number}: {'no end' if code is None else f'exit code {code}'}")
                break
    problems = list(dict.fromkeys(script.problems))
    ran = (work / RAN_FILE).read_text().split() if (work / RAN_FILE).exists() else []
    if ran != [str(number) for number in range(1, len(upstreams) + 1)]:
        problems.append(f"the commands ran as {ran}")
    if not script.compactions:
        problems.append("nothing was compacted")
    if not problems:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - started, 1)
    return CompactionResult(name, installed.version_of(client), way, problems, script.compactions, seconds)


def _list_steps(client: str, count: int) -> Iterator[tuple[int, Sequence[str], Mapping[str, str]]]:
    """Yield the arguments of each run of the client, with the number of its prompt and the settings of the user.

    Codex compacts while it works on the first prompt, others after it.
    """
    row = CLIENT_ROWS[client]
    for number in range(1, count + 1):
        prompt = f"TASK-{number}: remember {_FACTS[0]}." if number == 1 else f"TASK-{number}: go on."
        limit = _CODEX_LIMIT if client == "codex" and number == 1 else ()
        yield number, [*row.build_arguments(prompt, number > 1), *limit], {}
        if number == 1 and client != "codex":
            own = MOVE_ROWS[client].compaction
            settings = {name: json.dumps(values) for name, values in own.settings.items()}
            yield _COMPACTS, own.arguments, settings


def _name(upstream: str) -> str:
    return f"up-{upstream}"


def _model(upstream: str) -> str:
    return f"{_name(upstream)}/{UPSTREAMS[upstream]}"
