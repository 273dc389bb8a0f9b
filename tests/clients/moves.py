"""Moves a session between two real clients and back: made in the first, resumed in the second, then in the first again.

The first client reads a file and a picture in parallel, thinks, edits a file, runs a command, and is killed during a
command of its second prompt. A leg is right if the resumed client's first request is accepted, has every prompt, and
every call with its own result, and if the client then runs the next command.

A damage is done to the first client's file before it is moved; then only the second client resumes it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from segue.canonical.blocks import Media, ToolCall, ToolResponse, text_of
from segue.canonical.request import Request
from segue.emulator import start
from segue.emulator.steps import CallStep, TextStep, ThinkStep
from segue.sessions.client import Place
from segue.sessions.registry import CLIENTS
from segue.sessions.session import parse_session
from tests.clients.judge import Script
from tests.clients.processes import end_processes_in, end_session
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import CONFIG, FIRST_PROVIDER, Installation, client_variables, write_settings
from tests.clients.task import FILES, PICTURE_FILE, RAN_FILE, Round, write_files

_SECONDS = 120
_PROMPTS = ("TASK-ONE: read the files, change one, run the command.", "TASK-TWO: run the endless command.")
_EDITED = "EDITED-GAMMA"
_ENDLESS = f"echo endless >> {RAN_FILE}; tail -f /dev/null"


class MoveRow(Struct, frozen=True):
    """What a client adds to its row: its API here, an edit with its own tool, and the arguments that resume an id.

    `records_open_calls`: the client records a call when it begins, not when it ends. `has_picture_in_result`: it sends
    the picture of a result in that result, not beside or after it. `has_file`: a session is a file of its own.
    `settings` replace those of its row, by their names below the home.
    """

    upstream: str
    build_edit: Callable[[Path, str, str], tuple[str, Any]]
    resume: Callable[[str, str], tuple[str, ...]]
    more_tools: tuple[str, ...] = ()
    records_open_calls: bool = True
    has_picture_in_result: bool = True
    has_file: bool = True
    settings: Mapping[str, str] = {}


def _patch(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "apply_patch", f"*** Begin Patch\n*** Update File: {path.name}\n@@\n-{old}\n+{new}\n*** End Patch\n"


def _claude_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "Edit", {"file_path": str(path), "old_string": old, "new_string": new}


def _resume_claude(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--resume", id, "--allowedTools", "Read", "Edit", "Bash")


def _resume_codex(prompt: str, id: str) -> tuple[str, ...]:
    flags = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', "-m", "gpt-5.5")
    return ("exec", "resume", id, *flags, prompt)


def _gemini_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "replace", {"file_path": str(path), "instruction": "Edit it", "old_string": old, "new_string": new}


def _resume_gemini(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro", "--resume", id)


def _qwen_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"file_path": str(path), "old_string": old, "new_string": new}


def _resume_qwen(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", prompt, "--approval-mode", "yolo", "--resume", id)


def _pi_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}


def _resume_pi(prompt: str, id: str) -> tuple[str, ...]:
    return ("-p", "--session", id, "--offline", "--thinking", "medium", "--tools", "read,bash,edit", prompt)


def _opencode_edit(path: Path, old: str, new: str) -> tuple[str, Any]:
    return "edit", {"filePath": str(path), "oldString": old, "newString": new}


def _resume_opencode(prompt: str, id: str) -> tuple[str, ...]:
    return ("run", "--session", id, "--pure", "--auto", prompt)


def _opencode_settings() -> dict[str, str]:
    """Return settings that name the default model, which a moved session names."""
    ((name, content),) = CLIENT_ROWS["opencode"].settings.items()
    return {name: json.dumps({**json.loads(content), "model": f"segue/up/{UPSTREAMS['anthropic']}"})}


MOVE_ROWS: Mapping[str, MoveRow] = {
    "claude": MoveRow("anthropic", _claude_edit, _resume_claude, ("Edit",)),
    "codex": MoveRow("openai-responses", _patch, _resume_codex),
    "gemini": MoveRow("gemini", _gemini_edit, _resume_gemini, records_open_calls=False, has_picture_in_result=False),
    "qwen": MoveRow("qwen", _qwen_edit, _resume_qwen, has_picture_in_result=False),
    "pi": MoveRow("anthropic", _pi_edit, _resume_pi, ("--tools", "read,bash,edit")),
    "opencode": MoveRow(
        "anthropic",
        _opencode_edit,
        _resume_opencode,
        has_picture_in_result=False,
        has_file=False,
        settings=_opencode_settings(),
    ),
}


PLAIN = "plain"
CUT_OFF = "cut-off"
"""The last line of a file is not complete."""
DIVERGED = "diverged"
"""Both clients continue the session: what comes home goes into a new session."""


def _replace_ids(make_id: Callable[[int, str], str]) -> Callable[[bytes, list[ToolCall]], bytes]:
    """Return a damage that replaces the ids of calls in a file, by their number and tool."""

    def damage(data: bytes, calls: list[ToolCall]) -> bytes:
        for number, call in enumerate(calls):
            data = data.replace(f'"{call.raw_id}"'.encode(), f'"{make_id(number, call.name)}"'.encode())
        return data

    return damage


DAMAGES: Mapping[str, Callable[[bytes, list[ToolCall]], bytes]] = {
    PLAIN: lambda data, _: data,
    DIVERGED: lambda data, _: data,
    "long-ids": _replace_ids(lambda number, _: f"{number}".rjust(96, "x")),
    "k2-ids": _replace_ids(lambda number, name: f"functions.{name}:{number}"),
    # Two parallel calls keep ids of their own: no client tells them apart otherwise.
    "repeated-ids": _replace_ids(lambda number, _: f"call_{number % 2}"),
    CUT_OFF: lambda data, _: data + data[:100],
}


class MoveResult(Struct, frozen=True):
    source: str
    target: str
    damage: str
    versions: tuple[str, str]
    problems: list[str]
    seconds: float


class MoveRun:
    """One pair of clients, in a fresh home and work folder."""

    def __init__(self, source: str, target: str, installed: Installation, folder: Path, damage: str = PLAIN) -> None:
        self._clients = source, target
        self._damage = damage
        self._installed = installed
        self._folder = folder
        self._work = folder / "project"
        self._words: list[tuple[str, str | None]] = []
        self._prompts: list[str] = []
        self._legs = 0
        self._home_id = ""
        self.written = 0
        """The size of the session that was last written by a move."""

    def run(self) -> MoveResult:
        """Run all legs. The folder keeps the clients' files if one is wrong."""
        started = time.monotonic()
        source, target = self._clients
        problems = [*self.make_session(source)]
        if not problems:
            self._damage_session(source)
        legs = [(source, target), (target, source)][: 2 if self._damage in (PLAIN, DIVERGED) else 1]
        for leaving, entering in [] if problems else legs:
            if self._damage == DIVERGED and self._legs == 1:
                self._continue_at_home(source)
            problems += [f"{leaving} to {entering}: {problem}" for problem in self.move(leaving, entering)]
            if problems:
                break
        end_processes_in(self._work)
        if not problems:
            shutil.rmtree(self._folder)
        versions = self._installed.version_of(source), self._installed.version_of(target)
        seconds = round(time.monotonic() - started, 1)
        return MoveResult(source, target, self._damage, versions, problems, seconds)

    # ------------------------------------------------------------------------------------------------------------ legs

    def make_session(self, client: str) -> Iterator[str]:
        """Make a session with the first client, and yield what is wrong with it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "home" / ".codex").mkdir(parents=True)
        self._work.mkdir()
        subprocess.run(["git", "init", "-q", str(self._work)], check=True)
        write_files(self._work)
        row, move_row = CLIENT_ROWS[client], MOVE_ROWS[client]
        for name in self._clients:
            write_settings({**CLIENT_ROWS[name].settings, **MOVE_ROWS[name].settings}, self._folder / "home")
        picture_tool, picture = row.build_picture_call(self._work / PICTURE_FILE)
        edit_tool, edit = move_row.build_edit(self._work / "alpha.txt", FILES["alpha.txt"].strip(), _EDITED)
        command = f"echo one >> {RAN_FILE} && echo RESULT-one | tr a-z A-Z; sleep 0.5"
        rounds = [
            Round(
                1,
                (),
                (
                    ThinkStep("First thought."),
                    TextStep("First answer."),
                    CallStep(row.read_tool, row.build_read(self._work / "alpha.txt")),
                    CallStep(picture_tool, picture),
                ),
            ),
            Round(1, (), (ThinkStep("Second thought."), _call(edit_tool, edit))),
            Round(1, (), (CallStep(row.shell_tool, row.build_command(command)),)),
            Round(1, (), (TextStep("Third answer."),)),
            Round(2, (), (CallStep(row.shell_tool, row.build_command(_ENDLESS)),)),
        ]
        arguments = [row.build_arguments(prompt, number > 0) for number, prompt in enumerate(_PROMPTS)]
        script = Script(rounds, row.only_tool)
        extra = move_row.more_tools
        self._run_client(client, script, (*arguments[0], *extra), until=None)
        self._run_client(client, script, (*arguments[1], *extra), until="endless")
        yield from _judge_script(script, len(rounds))
        if (self._work / "alpha.txt").read_text().strip() != _EDITED:
            yield "the file was not edited"
        self._prompts = list(_PROMPTS)
        self._words = [
            ("alpha.txt", "CONTENT-ALPHA"),
            (PICTURE_FILE, None),
            (_EDITED, ""),
            ("RESULT-one", "RESULT-ONE"),
        ]
        if move_row.records_open_calls:
            self._words.append(("endless", ""))

    def _damage_session(self, name: str) -> None:
        client, place = CLIENTS[name], Place(self._folder / "home", {})
        file = next(client.find(place, self._work))
        session = parse_session(client, file, client.load(place, file))
        calls = [block for entry in session.entries for block in entry.message.blocks if isinstance(block, ToolCall)]
        damaged = DAMAGES[self._damage](session.data, calls)
        if damaged != session.data and MOVE_ROWS[name].has_file:
            file.path.write_bytes(damaged)
        elif damaged != session.data:
            _write_parts(file.path, damaged)
        self._home_id = file.id

    def _continue_at_home(self, client: str) -> None:
        """Let the first client continue the session that was moved."""
        script = Script([Round(1, (), (TextStep("Home answer."),))], CLIENT_ROWS[client].only_tool)
        self._run_client(client, script, MOVE_ROWS[client].resume("TASK-HOME: answer.", self._home_id), until=None)

    def move(self, leaving: str, entering: str) -> Iterator[str]:
        """Move the session, and yield what is wrong with the move or with the resumed session."""
        self._legs += 1
        command = [sys.executable, "-m", "segue", "move", "--from", leaving, "--to", entering, "--json"]
        moved = subprocess.run(
            command, cwd=self._work, env=self._variables(entering), capture_output=True, text=True, check=False
        )
        (self._folder / f"move{self._legs}.txt").write_text(moved.stdout + moved.stderr)
        if moved.returncode:
            yield f"segue move: {moved.stderr.strip()[-300:]}"
            return
        result = json.loads(moved.stdout)
        self.written = Path(result["to"]["path"]).stat().st_size
        expected = "created" if self._legs == 1 else "copied" if self._damage == DIVERGED else "extended"
        if result["report"]["action"] != expected:
            yield f"the session was {result['report']['action']}, expected {expected}"
        again = subprocess.run(command, cwd=self._work, env=self._variables(entering), capture_output=True, check=False)
        if json.loads(again.stdout or b"{}").get("report", {}).get("action") != "unchanged":
            yield "moved twice, something changed"
        row, word = CLIENT_ROWS[entering], f"leg{self._legs}"
        prompt = f"TASK-{word}: run the next command."
        call = CallStep(
            row.shell_tool, row.build_command(f"echo {word} >> {RAN_FILE}; echo RESULT-{word} | tr a-z A-Z")
        )
        rounds = [Round(1, (), (ThinkStep(f"{word} thought."), call)), Round(1, (), (TextStep(f"{word} answer."),))]
        script = Script(rounds, row.only_tool)
        self._run_client(entering, script, MOVE_ROWS[entering].resume(prompt, result["to"]["id"]), until=None)
        self._prompts.append(prompt)
        yield from _judge_script(script, len(rounds))
        yield from self._judge_history(script, MOVE_ROWS[entering])
        self._words.append((f"RESULT-{word}", f"RESULT-{word.upper()}"))
        if word not in (self._work / RAN_FILE).read_text().split():
            yield "the resumed client did not run the command"

    def _judge_history(self, script: Script, row: MoveRow) -> Iterator[str]:
        if not script.exchanges:
            yield "no request reached the provider"
            return
        request = script.exchanges[0].request
        text = request_text(request)
        yield from (f"the prompt {prompt!r} is missing" for prompt in self._prompts if prompt not in text)
        calls = list(pair_calls(request))
        if len(calls) != len(self._words):
            yield f"{len(calls)} calls, expected {len(self._words)}"
        for (call, response), (word, result) in zip(calls, self._words, strict=False):
            if word not in str(call.arguments):
                yield f"the call {call.name} does not have {word!r}"
            if response is None:
                yield f"the call {call.name} has no result"
            elif result is None:
                blocks = list(response.content or ())
                if not row.has_picture_in_result:
                    blocks += [block for message in request.messages for block in message.blocks]
                if not any(isinstance(block, Media) for block in blocks):
                    yield f"the result of {call.name} has no picture"
            elif result not in text_of(response.content) + str(response.structured):
                yield f"the result of {call.name} does not have {result!r}"

    # --------------------------------------------------------------------------------------------------------- clients

    def _variables(self, client: str) -> dict[str, str]:
        return client_variables(CLIENT_ROWS[client], self._installed, self._folder)

    def _run_client(self, client: str, script: Script, arguments: tuple[str, ...], until: str | None) -> None:
        """Run a prompt to its end, or kill the client when a word is in the file of the commands that ran."""
        upstream = MOVE_ROWS[client].upstream
        with (
            start(upstream, script=script.reply, on_request=script.add_record) as emulator,
            (self._folder / "output.txt").open("ab") as output,
        ):
            config = self._folder / "home" / ".config" / "segue" / "config.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(CONFIG.format(name=FIRST_PROVIDER, api=upstream, base_url=emulator.base_url))
            program = CLIENT_ROWS[client].program or client
            command = [sys.executable, "-m", "segue", "with", program, "-m", f"up/{UPSTREAMS[upstream]}"]
            if client == "codex":
                command[-1] = "up/gpt-5.5"
            process = subprocess.Popen(
                [*command, "--log", str(self._folder / "gateway.log"), "--", *arguments],
                cwd=self._work,
                env=self._variables(client),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            deadline = time.monotonic() + _SECONDS
            try:
                while process.poll() is None and time.monotonic() < deadline and not self._has_run(until):
                    time.sleep(0.1)
                if until is not None:
                    # The session file is written after the command starts.
                    time.sleep(1)
            finally:
                end_session(process.pid)
                process.wait()

    def _has_run(self, word: str | None) -> bool:
        ran = self._work / RAN_FILE
        return word is not None and ran.exists() and word in ran.read_text().split()


def _write_parts(path: Path, data: bytes) -> None:
    """Replace the parts of a session in the database of opencode."""
    with closing(sqlite3.connect(path)) as database, database:
        for message in json.loads(data)["messages"]:
            for part in message["parts"]:
                content = {key: part[key] for key in part if key not in ("id", "sessionID", "messageID")}
                database.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(content), part["id"]))


def _call(tool: str, arguments: Any) -> CallStep:
    return CallStep(tool, text=arguments) if isinstance(arguments, str) else CallStep(tool, arguments)


def _judge_script(script: Script, rounds: int) -> Iterator[str]:
    for record in script.records:
        if record.refused:
            yield f"rejected with {record.status} {record.rule or ''}: {record.refused[:200]}"
    if len(script.exchanges) < rounds:
        yield f"{len(script.exchanges)} requests reached the provider, expected {rounds}"


def request_text(request: Request) -> str:
    """Return all text of the messages of a request."""
    return "\n".join(text_of(message.blocks) for message in request.messages)


def pair_calls(request: Request) -> Iterator[tuple[ToolCall, ToolResponse | None]]:
    """Yield each call of a request with its result."""
    blocks = [block for message in request.messages for block in message.blocks]
    results = {block.call_id: block for block in blocks if isinstance(block, ToolResponse)}
    for block in blocks:
        if isinstance(block, ToolCall):
            yield block, results.get(block.id)
