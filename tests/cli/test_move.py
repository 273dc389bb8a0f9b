"""`segue move` as a command, in a home with recorded sessions."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from segue.cli import app
from segue.sessions.claude import encode_folder
from segue.sessions.files import is_locked
from segue.sessions.mover import Mover
from tests.cli.process import ProcessResult, is_one_line_error, run
from tests.sessions.record import FOLDER, WORK


class Home:
    """A home with the recorded session of Claude Code in a project folder; commands run in that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        text = (FOLDER / "claude.jsonl").read_text().replace(WORK, str(self.project))
        self.session = self.folder / ".claude" / "projects" / encode_folder(str(self.project)) / "a.jsonl"
        self.session.parent.mkdir(parents=True)
        self.session.write_text(text)

    def run(self, *arguments: str, path: str = "/nowhere") -> ProcessResult:
        return run("move", *arguments, HOME=str(self.folder), SEGUE_STORE=str(self.folder / "history.db"), PATH=path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path)
    monkeypatch.chdir(home.project)
    return home


def test_the_newest_session_of_the_folder_is_moved(home: Home):
    ended = home.run("--to", "codex")
    assert ended.code == 0, ended.err
    assert ended.lines[0].startswith("codex resume ")
    assert "segue: carried: 11 messages, 5 tool calls, 4 results, 1 picture or file\n" in ended.err
    assert "segue: changed: tool Bash became exec_command (2)\n" in ended.err
    assert ended.err.count("not moved: system prompts and tool declarations") == 1
    (written,) = (home.folder / ".codex" / "sessions").glob("*/*/*/*.jsonl")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    again = home.run("--to", "codex")
    assert (again.code, again.out) == (0, ended.out)
    assert "nothing new to move" in again.err


def test_no_other_move_runs_meanwhile(home: Home, monkeypatch: pytest.MonkeyPatch):
    lock = home.folder / ".local" / "share" / "segue" / "moves.lock"
    seen: list[bool] = []

    def observe(name: str) -> None:
        method = getattr(Mover, name)

        def call(*arguments: Any, **options: Any) -> Any:
            seen.append(is_locked(lock))
            return method(*arguments, **options)

        monkeypatch.setattr(Mover, name, call)

    observe("plan")
    observe("write")
    monkeypatch.setenv("HOME", str(home.folder))
    monkeypatch.setenv("SEGUE_STORE", str(home.folder / "history.db"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert app.run(["move", "--to", "codex"]) == 0
    assert seen == [True, True]
    assert not is_locked(lock)


def test_the_list_has_all_clients(home: Home):
    home.run("--to", "codex")
    ended = home.run("--list")
    assert [line.split()[0] for line in ended.lines] == ["client", "codex", "claude"]
    assert all("TASK-ONE" in line for line in ended.lines[1:])
    fields = home.run("--list", "--from", "claude", "--json").json
    assert [each["client"] for each in fields] == ["claude"]
    assert fields[0]["path"] == str(home.session)


def test_the_list_has_stored_conversations_with_their_number_of_messages(home: Home):
    home.run("--to", "segue")
    ended = home.run("--list", "--from", "segue")
    assert ended.lines[0].split()[:5] == ["client", "id", "updated", "messages", "kB"]
    assert ended.lines[1].split()[4] == "11"


def test_a_dry_run_writes_nothing(home: Home):
    ended = home.run("--to", "codex", "--dry-run", "--json")
    report = ended.json["report"]
    assert (ended.code, report["action"]) == (0, "created")
    assert {line["text"]: line["count"] for line in report["carried"]}["tool calls"] == 5
    assert sorted(path.name for path in home.folder.iterdir()) == [".claude"]


def test_json_has_both_sessions_the_command_and_the_report(home: Home):
    value = home.run("--from", "claude", "--to", "segue", "--json").json
    assert (value["from"]["client"], value["to"]["client"]) == ("claude", "segue")
    assert value["command"] == ["segue", "chat", "-s", value["to"]["id"]]
    again = home.run("--from", "claude", "--to", "segue", "--json").json
    assert (again["report"]["action"], again["to"]["title"]) == ("unchanged", value["to"]["title"])
    listed = run("log", "--json", HOME=str(home.folder), SEGUE_STORE=str(home.folder / "history.db")).json
    assert [each["id"] for each in listed] == [value["to"]["id"]]


def test_a_session_named_by_its_path_is_resumed_in_its_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    ended = home.run("--to", "codex", str(home.session))
    assert ended.code == 0, ended.err
    assert ended.lines[0].startswith(f"cd {home.project} && codex resume ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--to CLIENT is missing"),
        (["--to", "nano"], "unknown client 'nano'"),
        (["--to", "codex", "--from", "codex"], "the same client"),
        (["--to", "claude"], "no session of"),
        (["--to", "codex", "no such words"], "no session of"),
        (["--to", "codex", "--run"], "codex is not installed"),
        (["--to", "codex", ""], "SESSION is empty"),
        (["--to", "codex", "x" * 5000], "no session of"),
        (["--to", "codex", "~nobody/x"], "no session of"),
        (["--to", "codex", "--all"], "--all is an option of --list"),
        (["--to", "codex", "--list"], "--list takes no SESSION"),
        (["--to", "codex", "--run", "--json"], "--run can't be combined"),
    ],
)
def test_bad_input_is_one_line(home: Home, arguments: list[str], expected: str):
    ended = home.run(*arguments)
    assert is_one_line_error(ended)
    assert expected in ended.err


@pytest.mark.parametrize(
    ("version", "kind", "prefix", "risk"),
    [
        ("2.1.99", "warnings", "", ": messages may be missing"),
        ("2.1.327", "notes", "note: ", ""),
        ("2.9.0", "notes", "note: ", ""),
        ("10.0.0-beta.1", "notes", "note: ", ""),
    ],
)
def test_an_older_version_is_a_warning_and_a_newer_one_a_note(
    home: Home, version: str, kind: str, prefix: str, risk: str
):
    home.session.write_text(home.session.read_text().replace('"version": "2.1.326"', f'"version": "{version}"'))
    ended = home.run("--to", "codex", "--dry-run")
    assert ended.code == 0
    message = f"Claude Code {version} was not tested (tested: 2.1.326){risk}"
    assert f"segue: {prefix}{message}\n" in ended.err
    as_json = home.run("--to", "codex", "--dry-run", "--json")
    report = as_json.json["report"]
    assert (report["warnings"] + report["notes"], report[kind], as_json.err) == ([message], [message], "")


def test_a_damaged_session_is_an_error_with_its_line(home: Home):
    data = home.session.read_text().splitlines()
    home.session.write_text("\n".join([*data[:3], "{broken", *data[3:]]) + "\n")
    ended = home.run("--to", "codex")
    assert is_one_line_error(ended)
    assert f"{home.session}: line 4" in ended.err


def test_the_client_is_started_with_the_session(home: Home, tmp_path: Path):
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo codex-cli 0.1.0; else echo "STARTED $* in $(pwd)"; fi\n'
    )
    program.chmod(0o755)
    ended = home.run("--to", "codex", "--run", path=f"{program.parent}:/bin:/usr/bin")
    assert ended.code == 0, ended.err
    command, started = ended.lines
    assert started == f"STARTED {command.removeprefix('codex ')} in {home.project}"
    assert "Codex 0.1.0 was not tested (tested: 0.169.0): it may not list or resume the session\n" in ended.err
