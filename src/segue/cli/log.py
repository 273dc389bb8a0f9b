"""`segue log`: lists, shows, searches and deletes stored conversations. Each command reads only what it shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completing, options, stored, streams
from segue.cli.table import table, when

if TYPE_CHECKING:
    from segue.store.base import HistoryStore, Hit, Record, Summary

_LIST = 50
_HITS = 20
_LAST = 20
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

    An ID can be shortened to its first characters.

    \b
      segue log
      segue log show 1nfm --last 5
      segue log search readme port
    """


# -------------------------------------------------------------------------------------------------------------- list


@options.command("list", of=command)
@options.limit_option(_LIST)
@click.option(
    "--before", metavar="ID", shell_complete=completing.ids, help="Continue the list after this conversation."
)
def list_command(*, limit: int, before: str | None, as_json: bool) -> None:
    """List conversations, most recently updated first."""
    rows: Sequence[Summary] = ()
    if before is not None or stored.is_there():
        with stored.opened() as store:
            start = store.get(store.find(before)) if before is not None else None
            rows = store.list(limit + 1, start)
    if as_json:
        _write_json([_summary(row) for row in rows[:limit]])
        return
    if not rows:
        streams.say("no more conversations" if before else "no stored conversations")
    streams.write(table(rows[:limit]))
    if len(rows) > limit:
        streams.say(f"more: segue log --limit {limit} --before {rows[limit - 1].id}")


def _summary(row: Summary) -> dict[str, Any]:
    import msgspec

    from segue.store.base import iso

    return {**msgspec.to_builtins(row), "created": iso(row.created), "updated": iso(row.updated)}


# -------------------------------------------------------------------------------------------------------------- show


@options.command("show", of=command)
@options.id_argument
@click.option("--last", metavar="N", type=options.COUNT, help=f"Show the last N messages (default {_LAST}).")
@click.option("--all", "whole", is_flag=True, help="Show everything from the beginning.")
@click.option("--full", is_flag=True, help="Show results and arguments in full.")
def show_command(id: str, *, last: int | None, whole: bool, full: bool, as_json: bool) -> None:
    """Show messages and other events in order."""
    if whole and last is not None:
        raise click.UsageError("--all and --last can't be combined", click.get_current_context())
    with stored.opened() as store:
        summary = store.get(store.find(id))
        records = store.events(summary.id) if whole else iter(_tail(store, summary, last or _LAST))
        if as_json:
            _show_json(summary, records)
        else:
            _show_lines(summary, records, full=full)


def _tail(store: HistoryStore, summary: Summary, count: int) -> list[Record]:
    """The last `count` messages and the events between them, read backwards page by page."""
    from segue.view.lines import is_message

    found = list(store.tail(summary.id, count))
    pages = [found]
    while found and pages[-1][0].seq > 1 and sum(is_message(r.event) for page in pages for r in page) < count:
        first = pages[-1][0].seq
        pages.append(list(store.events(summary.id, max(0, first - 1 - _PAGE), first - 1)))
    records = [record for page in reversed(pages) for record in page]
    places = [place for place, record in enumerate(records) if is_message(record.event)]
    return records[places[-count] :] if len(places) > count else records


def _show_json(summary: Summary, records: Iterator[Record]) -> None:
    import msgspec

    from segue.store.base import iso
    from segue.store.events import dump_event

    head = msgspec.json.encode(_summary(summary))
    streams.write(head[:-1], b',"events":[')
    for number, record in enumerate(records):
        head_fields = msgspec.json.encode({"seq": record.seq, "at": iso(record.at)})
        streams.write(b"," if number else b"", head_fields[:-1], b",", dump_event(record.event)[1:])
    streams.write(b"]}\n")


def _show_lines(summary: Summary, records: Iterator[Record], *, full: bool) -> None:
    from segue.view.calls import Calls
    from segue.view.lines import lines_of

    colour = streams.coloured()
    calls = Calls()
    first = True
    for record in records:
        if first and record.seq > 1:
            streams.say(f"events {record.seq:,} to {summary.seq:,}; --all shows earlier ones")
        lines = [
            click.style(line.text, **_STYLES[line.style]) if colour else line.text
            for line in lines_of(record, calls, full=full)
        ]
        separator = "" if first or not lines or not _begins(record) else "\n"
        streams.write(separator, "".join(f"{line}\n" for line in lines))
        first = False
    if first:
        streams.say("no messages yet")


def _begins(record: Record) -> bool:
    """Whether a user or assistant message starts here."""
    from segue.store.events import Said

    return isinstance(record.event, Said) and record.event.message.speaker != "tool"


# ------------------------------------------------------------------------------------------------------------ search


@options.command("search", of=command)
@click.argument("words", nargs=-1, required=True)
@options.limit_option(_HITS)
def search_command(words: tuple[str, ...], *, limit: int, as_json: bool) -> None:
    """Find entries that contain all of these words, or words starting with them; most recent first.

    Searches titles, messages, tool calls and results, but not system text and reasoning.
    """
    hits: Sequence[Hit] = ()
    more = False
    if stored.is_there():
        with stored.opened() as store:
            hits = store.search(" ".join(words), limit + 1)
            hits, more = hits[:limit], len(hits) > limit
    if as_json:
        import msgspec

        from segue.store.base import iso

        fields = [{**msgspec.to_builtins(hit), "at": iso(hit.at)} for hit in hits]
        _write_json([{"id": hit.pop("conversation"), **hit} for hit in fields])
        return
    if not hits:
        streams.say("nothing found")
    streams.write("".join(f"{_found(hit)}\n" for hit in hits))
    if more:
        streams.say(f"more than {limit:,} matches: add a word or raise --limit")


def _found(hit: Hit) -> str:
    from segue.view.clean import harmless_line
    from segue.view.words import shortened

    text, colour = hit.shown.text, streams.coloured()
    for start, end in reversed(hit.shown.marks if colour else ()):
        text = text[:start] + click.style(text[start:end], bold=True, fg="yellow") + text[end:]
    suffix = f"  {shortened(harmless_line(hit.title), 40)}" if hit.title else ""
    head = f"{hit.conversation}  {hit.seq:>5}  {when(hit.at)}{suffix}"
    return f"{click.style(head, dim=True) if colour else head}\n    {text}"


# --------------------------------------------------------------------------------------------------- path and delete


@options.command("path", of=command)
def path_command(*, as_json: bool) -> None:
    """Print where conversations are stored."""
    from segue.store import shown

    where = shown(stored.place())
    if as_json:
        _write_json({"path": where, "exists": stored.is_there()})
    else:
        streams.write(f"{where}\n")


@options.command("delete", of=command)
@click.argument("ids", metavar="ID…", nargs=-1, required=True, shell_complete=completing.ids)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_command(ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Delete conversations permanently: all of these or none."""
    from segue.view.clean import harmless_line
    from segue.view.words import counted, shortened

    with stored.opened() as store:
        rows = [store.get(name) for name in dict.fromkeys(map(store.find, ids))]
        if not yes:
            if not streams.on_terminal(sys.stdin):
                raise click.UsageError(
                    "can't ask for confirmation without a terminal; use --yes", click.get_current_context()
                )
            for row in rows:
                title = shortened(harmless_line(row.title or row.opening or ""), 50)
                click.echo(f"{row.id}  {counted(row.messages, 'message')}  {title}", err=True)
            if not _agreed(f"Delete {'it' if len(rows) == 1 else f'these {len(rows)}'} permanently? [y/N]: "):
                raise click.ClickException("nothing was deleted")
        store.delete(*(row.id for row in rows))
    with streams.done("deleted", *(row.id for row in rows)):
        if as_json:
            _write_json([row.id for row in rows])
        else:
            streams.write("".join(f"{row.id}\n" for row in rows))


def _agreed(question: str) -> bool:
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
        streams.say("nothing was deleted")
        raise


def _write_json(value: object) -> None:
    import msgspec

    streams.write(msgspec.json.encode(value), b"\n")
