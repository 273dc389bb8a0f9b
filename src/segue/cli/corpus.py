"""`segue corpus`: many transcripts converted to training rows, checked, and counted."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completers, options, streams, table
from segue.cli.table import Column
from segue.errors import format_count

if TYPE_CHECKING:
    from segue.corpora.run import Engine, Progress
    from segue.corpora.units import Counts

_CONTAINERS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
_FAILED = 1
_BAR = 24
_SECONDS_BETWEEN = 0.2
_MOST_SHOWN = 12


@click.group("corpus", cls=options.Subcommands)
def command() -> None:
    """Convert, check and count many transcripts.

    They are sessions of coding clients, trajectories (ATIF, ADP, STS), chat and ShareGPT rows, batch files and request
    bodies, in files and folders. Their formats are detected by content and may be mixed.

    \b
      segue corpus convert ~/.claude/projects --to template --out rows
      segue corpus check rows/data
    """


def _corpus_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for add in (
        click.option("--address", metavar="A", help="Address of the Ray cluster (default: a cluster on this machine)."),
        click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True),
        click.option("--jobs", type=options.COUNT, metavar="N", help="Number of processes (default: one a core)."),
        click.option("--from", "source", metavar="FORMAT", help="The format of all files (default: detected)."),
        click.argument("paths", nargs=-1, required=True, metavar="IN...", shell_complete=completers.files),
    ):
        function = add(function)
    return function


@options.command("convert", group=command, json_help="Print the counts as one JSON value.")
@_corpus_options
@click.option("--to", "target", required=True, metavar="FORMAT", help="Format of the rows.")
@click.option("--out", required=True, metavar="DIR", help="Folder for the rows; a second run continues in it.")
@click.option("--file-type", "container", type=click.Choice(_CONTAINERS), default="jsonl", show_default=True)
@click.option("--only-model", metavar="M", help="Give replies of other models the weight 0.")
@click.option("--keep-secrets", is_flag=True, help="Do not redact what looks like a secret.")
@click.option("--no-metadata", is_flag=True, help="Leave out where each row is from.")
def convert(paths: tuple[str, ...], *, target: str, out: str, as_json: bool, **given: Any) -> None:
    """Convert transcripts (IN: files and folders) to rows.

    Formats to write: openai, template, sharegpt, sts, atif, adp, openai-batch, anthropic-batch, gemini-batch, and the
    names of APIs. The rows are in DIR/data, what could not be read is in DIR/rejects.jsonl, the counts are in
    DIR/corpus.json.

    \b
      segue corpus convert sessions/ --to template --out rows
      segue corpus convert sessions/ --to atif --out trajectories --file-type jsonl.gz
    """
    from segue.corpora.output import Settings
    from segue.corpora.run import convert as run

    settings = Settings(
        target, given["container"], given["only_model"], given["keep_secrets"], metadata=not given["no_metadata"]
    )
    engine = _engine(given)
    with _progress() as progress:
        try:
            counts = run(paths, settings, out, source=given["source"], engine=engine, progress=progress)
        except OSError as error:
            reason = f"can't write {out}: {streams.format_os_error(error)}; run the command again to continue"
            raise streams.OutputPathError(reason) from error
    _print_counts(counts, as_json=as_json)
    if rejected := counts.files_rejected + counts.lines_rejected:
        first = counts.examples.get("unreadable", "")
        streams.print_message(f"rejected: {rejected:,}, see {out}/rejects.jsonl; the first: {first}")
    if not counts.rows:
        raise click.exceptions.Exit(_FAILED)


@options.command("check", group=command)
@_corpus_options
def check(paths: tuple[str, ...], *, as_json: bool, **given: Any) -> None:
    """Check transcripts (IN: files and folders) for what trainers reject, or learn by accident.

    Exit code 1 if an error was found; warnings alone are fine.
    """
    from segue.corpora.checks import RULES

    counts = _measure(paths, given)
    problems = counts.find("problem")
    found = [name for name in RULES if name in problems]
    if as_json:
        rules = {
            name: {"count": problems[name], "error": RULES[name].is_error, "first": counts.examples[name]}
            for name in found
        }
        _print_json({"rows": counts.rows, "files": counts.files, "rules": rules})
    else:
        rows = [
            (name, "error" if RULES[name].is_error else "warning", f"{problems[name]:,}", counts.examples[name])
            for name in found
        ]
        columns = (Column("rule"), Column("level"), Column("count", is_right=True), Column("first", style="dim"))
        table.write_table(columns, rows)
        streams.print_message(
            f"{format_count(counts.rows, 'row')} of {format_count(counts.files, 'file')}: {_sum_up(counts)}"
        )
    if any(RULES[name].is_error for name in found):
        raise click.exceptions.Exit(_FAILED)


@options.command("stats", group=command)
@_corpus_options
def stats(paths: tuple[str, ...], *, as_json: bool, **given: Any) -> None:
    """Count the files, rows, messages, calls, models and tools of transcripts (IN: files and folders)."""
    _print_counts(_measure(paths, given), as_json=as_json)


def _measure(paths: tuple[str, ...], given: Mapping[str, Any]) -> Counts:
    from segue.corpora.run import measure

    with _progress() as progress:
        return measure(paths, source=given["source"], engine=_engine(given), progress=progress)


def _engine(given: Mapping[str, Any]) -> Engine:
    from segue.corpora.run import run_here

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if given["engine"] == "ray":
        from segue.corpora.ray_engine import run_on_ray

        return run_on_ray(given["address"], given["jobs"])
    if given["address"] is not None:
        raise click.UsageError("--address is for --engine ray", click.get_current_context())
    return run_here(given["jobs"] or cores or 1)


def _sum_up(counts: Counts) -> str:
    from segue.corpora.checks import RULES

    problems = counts.find("problem")
    errors = sum(count for name, count in problems.items() if RULES[name].is_error)
    return f"{format_count(errors, 'error')}, {format_count(sum(problems.values()) - errors, 'warning')}"


def _print_json(value: object) -> None:
    import msgspec

    streams.write(msgspec.json.encode(value), b"\n")


def _print_counts(counts: Counts, *, as_json: bool) -> None:
    if as_json:
        _print_json(counts)
        return
    rows = [
        ("files", f"{counts.files:,}", f"{counts.files_rejected:,} rejected"),
        ("messages", f"{counts.messages:,}", f"{counts.messages_rejected:,} rejected"),
        ("rows", f"{counts.rows:,}", ""),
        ("calls", f"{counts.calls:,}", f"{counts.results_added:,} without a result, {counts.errors:,} failed"),
        ("images", f"{counts.images:,}", ""),
    ]
    for title, found in counts.groups.items():
        most = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        rows += [(title, f"{count:,}", name) for name, count in most[:_MOST_SHOWN]]
        if len(most) > _MOST_SHOWN:
            rows.append((title, "", f"and {len(most) - _MOST_SHOWN} more"))
    table.write_table((Column(), Column(is_right=True), Column(style="dim")), rows)


@contextmanager
def _progress() -> Generator[Progress]:
    """Give a function that draws a bar with the rate and the time left; nothing where stderr is no terminal."""
    if not streams.is_terminal(sys.stderr):
        yield lambda _done, _all: None
        return
    started = drawn = time.monotonic()
    begun: int | None = None

    def show(done: int, total: int) -> None:
        nonlocal begun, drawn
        begun = done if begun is None else begun
        now = time.monotonic()
        if done < total and now - drawn < _SECONDS_BETWEEN:
            return
        drawn = now
        rate = (done - begun) / max(now - started, 1e-3)
        left = f"{(total - done) / rate:,.0f} s left" if rate else ""
        filled = _BAR * done // max(total, 1)
        bar = "█" * filled + "░" * (_BAR - filled)
        click.echo(
            f"\r\x1b[K{bar} {done / 1e6:,.0f} of {total / 1e6:,.0f} MB  {rate / 1e6:,.1f} MB/s  {left}",
            err=True,
            nl=False,
        )

    try:
        yield show
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)
