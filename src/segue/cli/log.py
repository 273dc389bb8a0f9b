"""`segue log`: lists, shows, searches and deletes stored conversations. Each command reads only what it shows."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completers, options, streams, user_store
from segue.cli.conversation_table import format_conversations, format_local_time
from segue.errors import InputError

if TYPE_CHECKING:
    from segue.store.base import ConversationStore, ConversationSummary, SearchHit, StoredEvent

_DEFAULT_LIST = 50
_DEFAULT_HITS = 20
_DEFAULT_LAST = 20
_PAGE = 200
_STYLES: dict[str, dict[str, Any]] = {
    "head": {"bold": True},
    "text": {},
    "call": {"fg": "cyan"},
    "result": {"fg": "green"},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
}


@click.command("log", cls=options.Subcommands)
@click.version_option(package_name="segue", message="segue %(version)s")
def command() -> None:
    """List, show, search and delete stored conversations.

    An ID can be shortened to its first or last characters, or be the number in the list.

    \b
      segue log --here
      segue log show 1nfm --last 5
      segue log search readme port
    """


# -------------------------------------------------------------------------------------------------------------- list


@options.command("list", group=command)
@options.limit_option(_DEFAULT_LIST)
@click.option(
    "--before", metavar="ID", shell_complete=completers.ids, help="List conversations updated before this one."
)
@click.option("--here", is_flag=True, help="List only conversations of this folder.")
@click.option(
    "--folder", metavar="PATH", shell_complete=completers.files, help="List only conversations of this folder."
)
@click.pass_context
def list_command(
    ctx: click.Context, *, limit: int, before: str | None, here: bool, folder: str | None, as_json: bool
) -> None:
    """List conversations, most recently updated first.

    The number in the second column selects a conversation: segue chat -s 2.
    """
    if here and folder is not None:
        raise click.UsageError("--here and --folder can't be combined", ctx)
    place = os.path.realpath(Path(folder).expanduser()) if folder is not None else None
    place = os.path.realpath(Path.cwd()) if here else place
    rows: Sequence[ConversationSummary] = ()
    numbers: Sequence[int] = ()
    if before is not None or user_store.exists():
        with user_store.connect() as store:
            start = store.get(store.find_id(before)) if before is not None else None
            rows = store.list(limit + 1, start, folder=place)
            numbers = _list_numbers(store, rows, start, has_gaps=place is not None)
    if as_json:
        _write_json(
            [{"number": number, **_summary_fields(row)} for number, row in zip(numbers, rows[:limit], strict=False)]
        )
        return
    if not rows:
        where = f" in {place}" if place is not None else ""
        streams.print_message(f"{'no more' if before else 'no stored'} conversations{where}")
    streams.write(format_conversations(rows[:limit], numbers, with_folder=place is None))
    if len(rows) > limit:
        filtered = " --here" if here else f" --folder {shlex.quote(folder)}" if folder is not None else ""
        streams.print_message(f"more: segue log{filtered} --limit {limit} --before {rows[limit - 1].id}")


def _list_numbers(
    store: ConversationStore, rows: Sequence[ConversationSummary], before: ConversationSummary | None, *, has_gaps: bool
) -> Sequence[int]:
    """Return the number of each conversation in the list of all. Without gaps they follow that of `before`."""
    if has_gaps:
        return [store.number_of(row) for row in rows]
    last = store.number_of(before) if before is not None else 0
    return range(last + 1, last + 1 + len(rows))


def _summary_fields(row: ConversationSummary) -> dict[str, Any]:
    import msgspec

    from segue.store.base import format_time

    return {**msgspec.to_builtins(row), "created": format_time(row.created), "updated": format_time(row.updated)}


# -------------------------------------------------------------------------------------------------------------- show


@options.command("show", group=command)
@options.id_argument
@click.option("--last", metavar="N", type=options.COUNT, help=f"Show the last N messages (default {_DEFAULT_LAST}).")
@click.option("--all", "whole", is_flag=True, help="Show everything from the beginning.")
@click.option("--full", is_flag=True, help="Show results and arguments in full.")
def show_command(id: str, *, last: int | None, whole: bool, full: bool, as_json: bool) -> None:
    """Show messages and other events in order."""
    if whole and last is not None:
        raise click.UsageError("--all and --last can't be combined", click.get_current_context())
    with user_store.connect() as store:
        summary = store.get(store.find_id(id))
        records = store.events(summary.id) if whole else iter(_tail(store, summary, last or _DEFAULT_LAST))
        if as_json:
            _show_json(summary, records)
        else:
            _show_lines(summary, records, full=full)


def _tail(store: ConversationStore, summary: ConversationSummary, count: int) -> list[StoredEvent]:
    """Return the last `count` messages and the events between them, read backwards page by page."""
    from segue.view.lines import is_message

    pages = [list(store.tail(summary.id, count))]
    while pages[0] and pages[-1][0].seq > 1 and sum(is_message(r.event) for page in pages for r in page) < count:
        first = pages[-1][0].seq
        pages.append(list(store.events(summary.id, max(0, first - 1 - _PAGE), first - 1)))
    records = [record for page in reversed(pages) for record in page]
    places = [place for place, record in enumerate(records) if is_message(record.event)]
    return records[places[-count] :] if len(places) > count else records


def _show_json(summary: ConversationSummary, records: Iterator[StoredEvent]) -> None:
    import msgspec

    from segue.store.base import format_time
    from segue.store.events import dump_event

    head = msgspec.json.encode(_summary_fields(summary))
    streams.write(head[:-1], b',"events":[')
    for number, record in enumerate(records):
        head_fields = msgspec.json.encode({"seq": record.seq, "at": format_time(record.at)})
        streams.write(b"," if number else b"", head_fields[:-1], b",", dump_event(record.event)[1:])
    streams.write(b"]}\n")


def _show_lines(summary: ConversationSummary, records: Iterator[StoredEvent], *, full: bool) -> None:
    from segue.view.lines import CallLabels, format_event

    colour = streams.supports_colour()
    calls = CallLabels()
    first = True
    for record in records:
        if first and record.seq > 1:
            streams.print_message(f"events {record.seq:,} to {summary.seq:,}; --all shows earlier ones")
        lines = [
            click.style(line.text, **_STYLES[line.style]) if colour else line.text
            for line in format_event(record, calls, full=full)
        ]
        separator = "" if first or not lines or not _starts_message(record) else "\n"
        streams.write(separator, "".join(f"{line}\n" for line in lines))
        first = False
    if first:
        streams.print_message("no messages yet")


def _starts_message(record: StoredEvent) -> bool:
    """Return whether a user or assistant message starts here."""
    from segue.store.events import MessageAdded

    return isinstance(record.event, MessageAdded) and record.event.message.speaker != "tool"


# ------------------------------------------------------------------------------------------------------------ search


@options.command("search", group=command)
@click.argument("words", nargs=-1, required=True)
@options.limit_option(_DEFAULT_HITS)
def search_command(words: tuple[str, ...], *, limit: int, as_json: bool) -> None:
    """Search stored conversations; most recent matches first.

    Finds entries with all of these words, or words that start with them, in titles, messages, tool calls and results,
    but not system text and reasoning.
    """
    hits: Sequence[SearchHit] = ()
    more = False
    if user_store.exists():
        with user_store.connect() as store:
            hits = store.search(" ".join(words), limit + 1)
            hits, more = hits[:limit], len(hits) > limit
    if as_json:
        import msgspec

        from segue.store.base import format_time

        fields = [{**msgspec.to_builtins(hit), "at": format_time(hit.at)} for hit in hits]
        _write_json({"version": 1, "matches": fields, "more": more})
        return
    if not hits:
        streams.print_message("nothing found")
    streams.write("".join(f"{_format_hit(hit)}\n" for hit in hits))
    if more:
        streams.print_message(f"more than {limit:,} matches: add a word or raise --limit")


def _format_hit(hit: SearchHit) -> str:
    from segue.view.format import shorten
    from segue.view.sanitize import sanitize_line

    text, colour = hit.snippet.text, streams.supports_colour()
    for start, end in reversed(hit.snippet.marks if colour else ()):
        text = text[:start] + click.style(text[start:end], bold=True, fg="yellow") + text[end:]
    suffix = f"  {shorten(sanitize_line(hit.title), 40)}" if hit.title else ""
    head = f"{hit.conversation}  {hit.seq:>5}  {format_local_time(hit.at)}{suffix}"
    return f"{click.style(head, dim=True) if colour else head}\n    {text}"


# --------------------------------------------------------------------------------------------------- path and delete


@options.command("path", group=command)
def path_command(*, as_json: bool) -> None:
    """Print where conversations are stored."""
    from segue.store import display_location

    where = display_location(user_store.locate())
    if as_json:
        _write_json({"path": where, "exists": user_store.exists()})
    else:
        streams.write(f"{where}\n")


@options.command("delete", group=command)
@click.argument("ids", metavar="ID…", nargs=-1, required=True, shell_complete=completers.ids)
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
def delete_command(ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Delete conversations permanently. If an id is not found, none is deleted."""
    from segue.errors import format_count
    from segue.runtime.checkpoint_journal import delete_journals
    from segue.view.format import shorten
    from segue.view.sanitize import sanitize_line

    with user_store.connect() as store:
        rows = [store.get(id) for id in dict.fromkeys(_find_to_delete(store, name) for name in ids)]
        if not yes:
            if not streams.is_terminal(sys.stdin):
                raise click.UsageError(
                    "can't ask for confirmation without a terminal; use --yes", click.get_current_context()
                )
            for row in rows:
                title = shorten(sanitize_line(row.title or row.opening or ""), 50)
                click.echo(f"{row.id}  {format_count(row.messages, 'message')}  {title}", err=True)
            if not _confirm(f"Delete {'it' if len(rows) == 1 else f'these {len(rows)}'} permanently? [y/N]: "):
                raise click.ClickException("nothing was deleted")
        store.delete(*(row.id for row in rows))
    for row in rows:
        delete_journals(user_store.checkpoint_folder(), row.id)
    with streams.report_if_unwritten("deleted", *(row.id for row in rows)):
        if as_json:
            _write_json([row.id for row in rows])
        else:
            streams.write("".join(f"{row.id}\n" for row in rows))


def _find_to_delete(store: ConversationStore, name: str) -> str:
    """Return the id of a conversation to delete. Numbers change with each new one, so none is deleted by its number."""
    if not name.isdigit():
        return store.find_id(name, by_number=False)
    try:
        meant = store.find_id(name)
    except InputError:
        meant = ""
    if meant == name:
        return meant
    hint = f"number {name} is {meant} now" if meant else "segue log lists them"
    raise click.UsageError(f"delete takes ids, because numbers change; {hint}", click.get_current_context())


def _confirm(question: str) -> bool:
    """Ask until the answer is yes or no; end of input and an empty line count as no."""
    try:
        while True:
            click.echo(question, nl=False, err=True)
            answer = sys.stdin.readline()
            match answer.strip().lower():
                case "y" | "yes":
                    return True
                case "" | "n" | "no":
                    return False
                case _:
                    click.echo("Please answer y or n.", err=True)
    except KeyboardInterrupt:
        click.echo(err=True)
        streams.print_message("nothing was deleted")
        raise


def _write_json(value: object) -> None:
    import msgspec

    streams.write(msgspec.json.encode(value), b"\n")
