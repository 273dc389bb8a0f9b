"""`segue usage`: the tokens and costs of a gateway, by route and model."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completers, options, streams
from segue.cli.streams import BadInputError
from segue.cli.table import Column, format_table, rows_to_ansi

if TYPE_CHECKING:
    from segue.gateway.usage import UsageReport, UsageTotal

_HEADERS = ("route", "model", "requests", "errors", "input", "cached", "output", "cost")
_TEXT_COLUMNS = 2


@options.command("usage")
@click.argument("file", required=False, metavar="[FILE]", shell_complete=completers.files)
def command(file: str | None, *, as_json: bool) -> None:
    """Print the tokens and costs of a gateway by route and model.

    FILE is the one of `segue serve --usage`; without it, that of the configuration. Costs are in dollars, where the
    price is known, as for `segue run`. A line that can't be read is counted and left out.

    \b
      segue usage usage.jsonl
      segue usage --json
    """
    from segue.cli.gateway_settings import load_settings
    from segue.cli.providers import Providers
    from segue.gateway.usage import read_usage

    _, loaded = load_settings()
    with open_lines(find_usage_file(file)) as lines:
        report = read_usage(lines, Providers(loaded).cost)
    if as_json:
        import msgspec

        totals = [_encode_total(total) for total in report.totals]
        streams.write(msgspec.json.encode({"totals": totals, "bad_lines": report.bad_lines}), b"\n")
        return
    streams.write(_format_report(report))
    if report.bad_lines:
        from segue.view.format import format_count

        streams.print_message(f"left out {format_count(report.bad_lines, 'line')} that can't be read")


def find_usage_file(file: str | None) -> str:
    """Return this file, else that of the configuration."""
    from segue.cli.gateway_settings import load_settings

    name = file or load_settings()[0].usage
    if name is None:
        raise BadInputError("no usage file: name one, or set usage in [gateway]")
    return file or str(Path(name).expanduser())


@contextmanager
def open_lines(file: str) -> Generator[Iterable[bytes]]:
    if file == streams.STDIO:
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield lines
    except (OSError, ValueError) as error:
        raise BadInputError(f"can't read {file}: {streams.format_os_error(error)}") from None


def _encode_total(total: UsageTotal) -> dict[str, Any]:
    usage = total.sum.usage
    return {
        **{name: getattr(total, name) for name in ("route", "model", "requests", "errors")},
        **{name: getattr(usage, name) for name in ("input", "cache_read", "cache_write", "output")},
        "cost": total.sum.known_cost,
    }


def _format_report(report: UsageReport) -> str:
    """Return a row for each route and model, and one for all of them if there are several."""
    if not report.totals:
        return "no requests\n"
    totals = [*report.totals, report.whole] if len(report.totals) > 1 else report.totals
    columns = [Column(title, is_right=at >= _TEXT_COLUMNS) for at, title in enumerate(_HEADERS)]
    return rows_to_ansi(format_table(columns, [_format_row(total) for total in totals]))


def _format_row(total: UsageTotal) -> tuple[str, ...]:
    from segue.view.format import format_money

    usage, cost = total.sum.usage, total.sum.known_cost
    price = "-" if cost is None else format_money(cost)
    return (
        total.route or "-",
        total.model or ("" if total.route == "total" else "-"),
        *(f"{number:,}" for number in (total.requests, total.errors, usage.input, usage.cache_read, usage.output)),
        price if total.sum.has_all_prices or cost is None else f"≥ {price}",
    )
