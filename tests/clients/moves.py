"""Moves a session between two real clients and back: made in the first, resumed in the second, then in the first again.

The first client reads a file and a picture in parallel, thinks, edits a file, runs a command, and is killed during a
command of its second prompt. A leg is right if the resumed client's first request is accepted, has every prompt, and
every call with its own result, and if the client then runs the next command. Before that, the second client must list
the session.

A damage is done to the first client's session before it is moved; then only the second client resumes it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from segue.canonical.request import Request
from segue.emulator import start
from segue.emulator.steps import CallStep, ReplySteps, TextStep, ThinkStep
from segue.sessions.client import ClientHome
from segue.sessions.registry import CLIENTS
from segue.sessions.session import parse_session
from tests.clients.damages import (
    CALL_WORD,
    COMPACTION,
    COPIES,
    DAMAGES,
    DIVERGED,
    MANY,
    MANY_CALL,
    MANY_PROMPT,
    MANY_RESULT,
    ORPHAN,
    PLAIN,
    RESULT_WORD,
    number_word,
    store,
)
from tests.clients.history import ExpectedHistory
from tests.clients.judge import Script
from tests.clients.move_rows import COMPACTION_PROMPT, MOVE_ROWS
from tests.clients.picker import is_listed
from tests.clients.processes import Process, end_processes_in
from tests.clients.rows import CLIENT_ROWS, UPSTREAMS
from tests.clients.run import CONFIG, FIRST_PROVIDER, Installation, client_variables, write_settings
from tests.clients.task import FILES, PICTURE_FILE, RAN_FILE, Round, write_files

_SECONDS = 300
_PROMPTS = ("TASK-ONE: read the files, change one, run the command.", "TASK-TWO: run the endless command.")
_EDITED = "EDITED-GAMMA"
_ENDLESS = f"echo endless >> {RAN_FILE}; tail -f /dev/null"
# So long that a compaction is worth it.
_LONG_ANSWER = "First answer." + " And more." * 1500
# The tags are those in which clients look for the summary.
_SUMMARY_WORD = "SUMMARY-WORD"
_SUMMARY = (
    f"<analysis>Short.</analysis>\n<summary><state_snapshot>{_SUMMARY_WORD} of the work.</state_snapshot></summary>"
)


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
        self._expected = ExpectedHistory()
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
            problems += self._damage_session(source)
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

    # ------------------------------------------------------------------------------------------------- the first client

    def make_session(self, client: str) -> Iterator[str]:
        """Make a session with the first client, and yield what is wrong with it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "home" / ".codex").mkdir(parents=True)
        self._work.mkdir()
        subprocess.run(["git", "init", "-q", str(self._work)], check=True)
        write_files(self._work)
        for name in self._clients:
            self._write_settings(name)
        yield from self._run_first_prompt(client)
        if self._damage == COMPACTION:
            self._compact(client)
        if self._damage == MANY:
            yield from self._run_repeated_prompt(client)
        else:
            yield from self._run_endless_prompt(client)

    def _run_first_prompt(self, client: str) -> Iterator[str]:
        row, move_row = CLIENT_ROWS[client], MOVE_ROWS[client]
        picture_tool, picture = row.build_picture_call(self._work / PICTURE_FILE)
        edit_tool, edit = move_row.build_edit(self._work / "alpha.txt", FILES["alpha.txt"].strip(), _EDITED)
        command = f"echo one >> {RAN_FILE} && echo {CALL_WORD} | tr a-z A-Z; sleep 0.5"
        yield from self._run_prompt(
            client,
            _PROMPTS[0],
            (
                ThinkStep("First thought."),
                TextStep("First answer." if self._damage != COMPACTION else _LONG_ANSWER),
                CallStep(row.read_tool, row.build_read(self._work / "alpha.txt")),
                CallStep(picture_tool, picture),
            ),
            (ThinkStep("Second thought."), _call(edit_tool, edit)),
            (CallStep(row.shell_tool, row.build_command(command)),),
            (TextStep("Third answer."),),
        )
        if (self._work / "alpha.txt").read_text().strip() != _EDITED:
            yield "the file was not edited"
        self._expected.calls += [
            ("alpha.txt", "CONTENT-ALPHA"),
            (PICTURE_FILE, None),
            (_EDITED, ""),
            (CALL_WORD, RESULT_WORD),
        ]

    def _run_endless_prompt(self, client: str) -> Iterator[str]:
        row = CLIENT_ROWS[client]
        step = CallStep(row.shell_tool, row.build_command(_ENDLESS))
        yield from self._run_prompt(client, _PROMPTS[1], (step,), until="endless")
        if MOVE_ROWS[client].records_open_calls:
            self._expected.calls.append(("endless", ""))

    def _run_repeated_prompt(self, client: str) -> Iterator[str]:
        row = CLIENT_ROWS[client]
        step = CallStep(row.shell_tool, row.build_command(f"echo {MANY_CALL} | tr a-z A-Z; sleep 0.5"))
        yield from self._run_prompt(client, MANY_PROMPT, (step,), (TextStep("Done."),))
        self._expected.prompts[1:] = [number_word(MANY_PROMPT, number) for number in range(COPIES)]
        words = [(number_word(MANY_CALL, number), number_word(MANY_RESULT, number)) for number in range(COPIES)]
        self._expected.calls += words

    def _run_prompt(self, client: str, prompt: str, *replies: Any, until: str | None = None) -> Iterator[str]:
        """Run a prompt of the first client, in a new session or its last one, and yield what is wrong."""
        row = CLIENT_ROWS[client]
        arguments = row.build_arguments(prompt, bool(self._expected.prompts))
        script = Script([Round(1, (), steps) for steps in replies], row.only_tool)
        self._run_client(client, script, (*arguments, *MOVE_ROWS[client].more_tools), until=until)
        yield from _judge_script(script, len(replies))
        if self._damage == COMPACTION and self._expected.prompts and script.exchanges:
            yield from self._expected.compact(script.exchanges[0].request, _SUMMARY_WORD)
        self._expected.prompts.append(prompt)

    def _compact(self, client: str) -> None:
        """Let the client compact its session. Every request is answered with a summary."""
        row, home = MOVE_ROWS[client].compaction, self._folder / "home"
        for name, values in row.settings.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(json.dumps(values))
        self._run_client(client, _Summarizer([], CLIENT_ROWS[client].only_tool), row.arguments, until=None)
        for name in row.settings:
            (home / name).unlink()
        self._write_settings(client)
        if COMPACTION_PROMPT in row.arguments:
            self._expected.prompts.append(COMPACTION_PROMPT)

    def _damage_session(self, name: str) -> Iterator[str]:
        client, home = CLIENTS[name], ClientHome(self._folder / "home", {})
        file = next(client.find(home, self._work), None)
        if file is None:
            yield "there is no session of this folder"
            return
        session = parse_session(client, file, client.load(home, file))
        change = DAMAGES[self._damage].change
        if change is not None:
            damaged = change(session)
            store(session, damaged)
            if damaged == session.data:
                yield "the session was not damaged"
        if self._damage == ORPHAN:
            self._expected.calls.remove((CALL_WORD, RESULT_WORD))
            self._expected.texts.append(RESULT_WORD)
        self._home_id = file.id

    def _continue_at_home(self, client: str) -> None:
        """Let the first client continue the session that was moved."""
        script = Script([Round(1, (), (TextStep("Home answer."),))], CLIENT_ROWS[client].only_tool)
        self._run_client(client, script, MOVE_ROWS[client].resume("TASK-HOME: answer.", self._home_id), until=None)

    # ------------------------------------------------------------------------------------------------------------ legs

    def move(self, leaving: str, entering: str) -> Iterator[str]:
        """Move the session, and yield what is wrong with the move or with the resumed session."""
        self._legs += 1
        move = [sys.executable, "-m", "segue", "move", "--from", leaving, "--to", entering, "--json"]
        variables = self._variables(entering)
        moved = subprocess.run(move, cwd=self._work, env=variables, capture_output=True, text=True, check=False)
        (self._folder / f"move{self._legs}.txt").write_text(moved.stdout + moved.stderr)
        if moved.returncode:
            yield f"segue move: {moved.stderr.strip()[-300:]}"
            return
        result = json.loads(moved.stdout)
        self.written = Path(result["to"]["path"]).stat().st_size
        expected = "created" if self._legs == 1 else "copied" if self._damage == DIVERGED else "extended"
        if result["report"]["action"] != expected:
            yield f"the session was {result['report']['action']}, expected {expected}"
        again = subprocess.run(move, cwd=self._work, env=variables, capture_output=True, check=False)
        if json.loads(again.stdout or b"{}").get("report", {}).get("action") != "unchanged":
            yield "moved twice, something changed"
        if self._damage == PLAIN and self._legs == 1 and not self._is_listed(entering, result["to"]["title"]):
            yield f"the client does not list the session {result['to']['title']!r}"
        row, word = CLIENT_ROWS[entering], f"leg{self._legs}"
        prompt = f"TASK-{word}: run the next command."
        # Qwen Code loses the output of a command that ends at once.
        command = f"echo {word} >> {RAN_FILE}; echo RESULT-{word} | tr a-z A-Z; sleep 0.5"
        call = CallStep(row.shell_tool, row.build_command(command))
        rounds = [Round(1, (), (ThinkStep(f"{word} thought."), call)), Round(1, (), (TextStep(f"{word} answer."),))]
        script = Script(rounds, row.only_tool)
        self._run_client(entering, script, MOVE_ROWS[entering].resume(prompt, result["to"]["id"]), until=None)
        self._expected.prompts.append(prompt)
        yield from _judge_script(script, len(rounds))
        if script.exchanges:
            in_result = MOVE_ROWS[entering].has_picture_in_result
            yield from self._expected.judge(script.exchanges[0].request, picture_in_result=in_result)
        self._expected.calls.append((f"RESULT-{word}", f"RESULT-{word.upper()}"))
        if word not in (self._work / RAN_FILE).read_text().split():
            yield "the resumed client did not run the command"

    # --------------------------------------------------------------------------------------------------------- clients

    def _write_settings(self, client: str) -> None:
        write_settings(CLIENT_ROWS[client].settings, self._folder / "home")

    def _variables(self, client: str) -> dict[str, str]:
        return client_variables(CLIENT_ROWS[client], self._installed, self._folder)

    def _run_client(self, client: str, script: Script, arguments: tuple[str, ...], until: str | None) -> None:
        """Run a prompt to its end, or kill the client when a word is in the file of the commands that ran."""
        upstream = MOVE_ROWS[client].upstream
        with start(upstream, script=script.reply, on_request=script.add_record) as emulator:
            config = self._folder / "home" / ".config" / "segue" / "config.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(CONFIG.format(name=FIRST_PROVIDER, api=upstream, base_url=emulator.base_url))
            program = CLIENT_ROWS[client].program or client
            command = [sys.executable, "-m", "segue", "with", program, "-m", f"up/{UPSTREAMS[upstream]}"]
            if client == "codex":
                command[-1] = "up/gpt-5.5"
            command += ["--log", str(self._folder / "gateway.log"), "--", *arguments]
            with Process(command, self._folder, self._work, self._variables(client)) as process:
                deadline = time.monotonic() + _SECONDS
                while process.wait(0.1) is None and time.monotonic() < deadline and not self._has_run(until):
                    continue
                if until is not None:
                    # The session file is written after the command starts.
                    time.sleep(1)

    def _is_listed(self, client: str, title: str) -> bool:
        """Return whether a client lists a session, by the first word of its title or, as Codex, of its first prompt."""
        command = [sys.executable, "-m", "segue", "with", client, "--emulated", "--"]
        words = [text.split(maxsplit=1)[0] for text in (title, _PROMPTS[0])]
        return is_listed(client, command, self._folder, self._variables(client), *words)

    def _has_run(self, word: str | None) -> bool:
        ran = self._work / RAN_FILE
        return word is not None and ran.exists() and word in ran.read_text().split()


class _Summarizer(Script):
    """Replies to every request with a summary."""

    def reply(self, request: Request) -> ReplySteps:
        return (TextStep(_SUMMARY),)


def _call(tool: str, arguments: Any) -> CallStep:
    return CallStep(tool, text=arguments) if isinstance(arguments, str) else CallStep(tool, arguments)


def _judge_script(script: Script, rounds: int) -> Iterator[str]:
    for record in script.records:
        if record.refused:
            yield f"rejected with {record.status} {record.rule or ''}: {record.refused[:200]}"
    if len(script.exchanges) < rounds:
        yield f"{len(script.exchanges)} requests reached the provider, expected {rounds}"
