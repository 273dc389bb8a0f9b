"""`segue undo`: restores files that the tools of a conversation changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from segue.cli import completers, options, streams, user_store
from segue.errors import InputError, format_count

if TYPE_CHECKING:
    from segue.runtime.checkpoints import Checkpoints, UndoPlan, UndoResult
    from segue.store.base import ConversationStore

_MAX_SCANNED = 50


@options.command("undo")
@click.argument("id", metavar="[ID]", required=False, shell_complete=completers.ids)
@click.option("--redo", is_flag=True, help="Bring back the files that the last undo replaced.")
@click.option("--dry-run", is_flag=True, help="Only print what would be restored.")
@click.option("--yes", is_flag=True, help="Also overwrite files that changed since.")
@click.pass_context
def command(ctx: click.Context, id: str | None, *, redo: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Restore the files that the tools of the last exchange changed in this folder.

    ID is a conversation; by default it is the latest one of this folder whose tools changed files. The messages stay:
    the model is informed with the next message. Git is not used and not changed. A file that changed since is
    overwritten only after confirmation. Exit code 1: a file was not restored.

    \b
      segue undo --dry-run
      segue undo
      segue undo --redo
    """
    checkpoints, plan = _find_plan(id, redo=redo)
    conflicts = plan.of("conflict")
    overwrite = yes
    if dry_run:
        _write_plan(plan, as_json=as_json)
        return
    if conflicts and not yes and streams.is_terminal(sys.stdin):
        for file in conflicts:
            click.echo(f"changed since: {streams.format_line_for(file.display, sys.stderr)}", err=True)
        overwrite = click.confirm("Overwrite?", default=False, err=True)
        if not overwrite:
            streams.print_message("nothing was changed")
            ctx.exit(1)
    result = checkpoints.apply(plan, overwrite=overwrite)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(result), b"\n")
    else:
        streams.write("".join(f"{streams.format_line_for(path, sys.stdout)}\n" for path in result.restored))
        for line, is_problem in format_undo(result):
            if is_problem:
                streams.print_message(line)
        if result.restored:
            reverts = "segue undo" if redo else "segue undo --redo"
            streams.print_message(f"{format_count(len(result.restored), 'file')} restored; {reverts} reverts it")
    ctx.exit(1 if result.kept or result.lost or result.failed else 0)


def _find_plan(id: str | None, *, redo: bool) -> tuple[Checkpoints, UndoPlan]:
    """Return the checkpoints and the plan of a conversation, or of the latest one in this folder that has any."""
    from pathlib import Path

    from segue.runtime.checkpoints import Checkpoints

    if not streams.has_working_folder():
        raise streams.BadInputError(streams.FOLDER_GONE)
    nothing = InputError(f"nothing to {'redo' if redo else 'undo'}: no file in this folder was changed by tools")
    with user_store.connect() as store:
        for conversation in [store.find_id(id)] if id is not None else _list_ids(store):
            checkpoints = Checkpoints(user_store.checkpoint_folder(), Path.cwd(), conversation)
            if store.lease(conversation) is None:
                # A command that still runs is not recorded as ended.
                checkpoints.recover()
            try:
                plan = checkpoints.plan_redo() if redo else checkpoints.plan_undo()
            except InputError as error:
                nothing = nothing if id is None else error
                continue
            if plan.files:
                return checkpoints, plan
    raise nothing


def _list_ids(store: ConversationStore) -> Iterator[str]:
    yield from (row.id for row in store.list(_MAX_SCANNED))


def _write_plan(plan: UndoPlan, *, as_json: bool) -> None:
    words = {"restore": "restore", "same": "unchanged", "conflict": "changed since", "lost": "can't be restored"}
    if as_json:
        import msgspec

        rows = [{"path": file.display, "outcome": file.outcome} for file in plan.files]
        streams.write(msgspec.json.encode({"files": rows, "commands": [each.command for each in plan.commands]}), b"\n")
        return
    for file in plan.files:
        streams.write(f"{words[file.outcome]}: {streams.format_line_for(file.display, sys.stdout)}\n")
    for each in plan.commands:
        streams.print_message(f"changes not known: {each.command} ({each.reason})")


def format_undo(result: UndoResult) -> Iterator[tuple[str, bool]]:
    """Yield lines on what was restored, and with True on what was not."""

    if result.restored:
        yield f"{format_count(len(result.restored), 'file')} restored: {', '.join(result.restored)}", False
    for paths, reason in (
        (result.reduced, "restored without its setuid or setgid bit; an undo never sets these bits"),
        (result.kept, "kept, because it changed since"),
        (result.lost, "can't be restored: its earlier content was not stored, or a pipe or device is in its place"),
    ):
        yield from ((f"{path}: {reason}", True) for path in paths)
    yield from ((f"not restored: {error}", True) for error in result.failed)
    yield from (
        (f"what this command changed is not known and can't be restored: {each}", True) for each in result.commands
    )
