"""`segue move`: a coding client's session, moved to another coding client."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams, user_store
from segue.cli.conversation_table import format_local_time
from segue.cli.streams import BadInputError
from segue.cli.table import Column, write_table
from segue.view.fit import truncate

if TYPE_CHECKING:
    from segue.sessions.client import Client, ClientHome, SessionFile
    from segue.sessions.move_report import MoveReport
    from segue.sessions.mover import MovePlan, Mover, MoveResult

_SINGULARS = {
    "messages": "message",
    "tool calls": "tool call",
    "results": "result",
    "pictures and files": "picture or file",
}
_MAX_TITLE = 80
_MAX_MODEL = 24
_HEADERS = ("client", "id", "updated", "messages", "kB", "model", "title")
_DROPS = {"folder": 1, "kB": 2, "model": 3, "messages": 4, "updated": 5}
_NUMBERS = ("messages", "kB")
_ACTIONS = {
    "created": "a new session",
    "extended": "appended to its session there",
    "copied": "a new session",
    "unchanged": "nothing new to move",
}


def _list_clients() -> str:
    from segue.sessions.registry import CLIENTS

    return f"CLIENT: {', '.join(CLIENTS)}."


@options.command("move", epilog=_list_clients)
@click.argument("words", nargs=-1, metavar="[SESSION]")
@click.option("--from", "source", metavar="CLIENT", help="The client that has the session (default: any).")
@click.option("--to", "target", metavar="CLIENT", help="The client that gets the session.")
@click.option("--run", "runs", is_flag=True, help="Start the client with the moved session.")
@click.option("--dry-run", is_flag=True, help="Print the report, and write nothing.")
@click.option("--list", "lists", is_flag=True, help="List the sessions of this folder, newest first.")
@click.option("--all", "everywhere", is_flag=True, help="With --list: of all folders.")
def command(
    words: tuple[str, ...],
    *,
    source: str | None,
    target: str | None,
    runs: bool,
    dry_run: bool,
    lists: bool,
    everywhere: bool,
    as_json: bool,
) -> None:
    """Move a coding client's session to another coding client, and print the command that resumes it.

    SESSION is an id, a path or words to search for (default: the newest session of this folder). When it is
    moved back, the work of the other client is appended to the first session, which still has its reasoning.

    \b
      segue move --to codex
      segue move --from codex --to claude --run
      segue move --list
    """
    from segue.sessions.registry import CLIENTS, find_client

    context = click.get_current_context()
    if lists and (words or target is not None or runs or dry_run):
        raise click.UsageError("--list takes no SESSION, and only the options --from, --all and --json", context)
    if everywhere and not lists:
        raise click.UsageError("--all is an option of --list", context)
    if runs and (dry_run or as_json):
        raise click.UsageError("--run can't be combined with --dry-run or --json", context)
    mover = _build_mover()
    if lists:
        _list(mover.home, None if everywhere else _folder(), source, as_json=as_json)
        return
    if target is None:
        raise click.UsageError(f"--to CLIENT is missing; clients: {', '.join(CLIENTS)}", context)
    to = find_client(target, "--to")
    if source == target:
        raise click.UsageError("--from and --to are the same client", context)
    clients = [find_client(source, "--from")] if source else [each for each in CLIENTS.values() if each is not to]
    session = " ".join(words) if words else None
    if dry_run:
        _print_plan(_plan(mover, clients, to, session, is_dry=True), as_json=as_json)
        return
    with mover.record.lock():
        moved = _move(mover, _plan(mover, clients, to, session), to, runs=runs, as_json=as_json)
    program = shutil.which(to.program)
    if runs and program is not None:
        sys.stdout.flush()
        os.chdir(moved.session.cwd or _folder())
        os.execv(program, [program, *moved.command[1:]])


def _build_mover() -> Mover:
    from platformdirs import user_data_path

    from segue.sessions.client import ClientHome
    from segue.sessions.move_record import MoveRecord
    from segue.sessions.mover import Mover

    home = ClientHome(Path.home(), os.environ, sys.platform, user_store.locate())
    record = MoveRecord(user_data_path("segue", appauthor=False) / "moves.db")
    return Mover(home, record, time.time_ns() // 1000)


def _folder() -> Path:
    if not streams.has_working_folder():
        raise BadInputError(streams.FOLDER_GONE)
    return Path.cwd()


def _plan(mover: Mover, clients: list[Client], to: Client, wanted: str | None, *, is_dry: bool = False) -> MovePlan:
    from segue.sessions.registry import CLIENTS
    from segue.sessions.session_search import find_session

    folder = _folder()
    found = find_session(clients, mover.home, folder, wanted)
    # A session that was named may be of another folder: it is resumed there.
    cwd = found.cwd if wanted is not None and found.cwd and Path(found.cwd).is_dir() else str(folder)
    plan = mover.plan(CLIENTS[found.client], found, to, cwd, is_dry=is_dry)
    return _with_version(plan, CLIENTS[found.client], plan.source.log.facts.version, "messages may be missing")


def _with_version(plan: MovePlan, client: Client, version: str | None, risk: str) -> MovePlan:
    """Return a plan whose report says that moves were not tested with this version of a client.

    A newer version is a note: most work.
    """
    from msgspec.structs import replace

    tested = client.tested_versions
    if version is None or not tested or version in tested:
        return plan
    message = f"{client.title} {version} was not tested (tested: {', '.join(tested)})"
    report = plan.report
    if _version_key(version) > max(map(_version_key, tested)):
        return replace(plan, report=replace(report, notes=(*report.notes, message)))
    return replace(plan, report=replace(report, warnings=(*report.warnings, f"{message}: {risk}")))


def _version_key(version: str) -> tuple[int, ...]:
    """Return what orders versions: their numbers."""
    return tuple(map(int, re.findall(r"\d+", version)))


def _installed_version(program: str) -> str | None:
    """Return the version that a client prints, or None."""
    try:
        result = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    words = result.stdout.replace("(", " ").split()
    return next((word for word in words if word[0].isdigit() and "." in word), None)


def _move(mover: Mover, plan: MovePlan, to: Client, *, runs: bool, as_json: bool) -> MoveResult:
    import msgspec

    program = shutil.which(to.program)
    if program is None and runs:
        raise BadInputError(f"{to.program} is not installed")
    folder = plan.base.file.cwd if plan.base is not None and plan.action != "copied" else plan.draft.cwd
    if runs and folder is not None and not Path(folder).is_dir():
        raise BadInputError(f"the folder of the session does not exist: {folder}")
    if program is not None and to.tested_versions:
        plan = _with_version(plan, to, _installed_version(program), "it may not list or resume the session")
    moved = mover.write(plan)
    line = shlex.join(moved.command)
    folder = moved.session.cwd or str(_folder())
    if folder != str(_folder()):
        line = f"cd {shlex.quote(folder)} && {line}"
    if as_json:
        value = {
            "from": _describe(plan.source.file),
            "to": _describe(_refresh(to, mover.home, moved.session)),
            "command": moved.command,
            "report": moved.report.to_dict(),
        }
        streams.write(msgspec.json.encode(value), b"\n")
    else:
        _print_report(plan.source.file, to, moved.report)
        with streams.report_if_unwritten("moved", str(moved.session.path)):
            streams.write(f"{line}\n")
    return moved


def _print_plan(plan: MovePlan, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        value = {"from": _describe(plan.source.file), "report": plan.report.to_dict()}
        streams.write(msgspec.json.encode(value), b"\n")
    else:
        _print_report(plan.source.file, plan.target, plan.report)


def _print_report(file: SessionFile, to: Client, report: MoveReport) -> None:
    from segue.sessions.registry import CLIENTS

    for warning in report.warnings:
        streams.print_message(warning)
    title = f" ({truncate(file.title, _MAX_TITLE)})" if file.title else ""
    source = CLIENTS[file.client].title
    reason = f", because {report.original}" if report.original else ""
    streams.print_message(f"{source} {file.id}{title} to {to.title}: {_ACTIONS[report.action]}{reason}")
    if report.action == "unchanged":
        return
    counts = [f"{line.count:,} {_SINGULARS[line.text] if line.count == 1 else line.text}" for line in report.carried]
    if counts:
        streams.print_message(f"carried: {', '.join(counts)}")
    for what in ("changed", "lost"):
        for line in getattr(report, what):
            streams.print_message(f"{what}: {line.text} ({line.count:,})")
    streams.print_message(f"not moved: {report.not_moved}")
    for note in report.notes:
        streams.print_message(f"note: {note}")


def _refresh(client: Client, home: ClientHome, file: SessionFile) -> SessionFile:
    """Return a session as it is now: the record of moves has neither its title nor its time."""
    return next((each for each in client.find(home, None) if each.id == file.id), file)


def _describe(file: SessionFile) -> dict[str, Any]:
    import msgspec

    from segue.store.base import format_time

    return {**msgspec.structs.asdict(file), "path": str(file.path), "updated": format_time(file.updated)}


def _list(home: ClientHome, folder: Path | None, source: str | None, *, as_json: bool) -> None:
    import msgspec

    from segue.sessions.registry import CLIENTS, find_client
    from segue.sessions.session_search import list_sessions

    clients = [find_client(source, "--from")] if source else list(CLIENTS.values())
    sessions = list_sessions(clients, home, folder)
    if as_json:
        streams.write(msgspec.json.encode([_describe(each) for each in sessions]), b"\n")
        return
    if not sessions:
        streams.print_message("no sessions" if folder is None else "no sessions in this folder; try --all")
        return
    titles = _HEADERS if folder is not None else (*_HEADERS[:-1], "folder", _HEADERS[-1])
    columns = [
        Column(title, "", title in _NUMBERS, narrows=title in ("model", "folder"), drops=_DROPS.get(title, 0))
        for title in titles
    ]
    rows = [
        (
            each.client,
            each.id,
            format_local_time(each.updated),
            "-" if each.messages is None else f"{each.messages:,}",
            f"{max(1, each.size // 1000):,}",
            truncate(each.model or "-", _MAX_MODEL),
            *((each.cwd or "-",) if folder is None else ()),
            truncate(each.title or "-", _MAX_TITLE),
        )
        for each in sessions
    ]
    write_table(columns, rows)
