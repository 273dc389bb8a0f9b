"""`segue usage`: the tokens and costs of a gateway, by route, model, client, group or day."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from segue.cli import completers, options, streams
from segue.cli.streams import BadInputError
from segue.cli.table import Column, format_table, rows_to_ansi
from segue.errors import format_count

if TYPE_CHECKING:
    from segue.gateway.usage import UsageKey, UsageReport, UsageTotal

_NUMBERS = ("requests", "errors", "input", "cached", "output", "cost")
_KEYS = ("route", "model", "client", "group", "day")
_AGE = re.compile(r"(\d{1,6})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


@options.command("usage")
@click.argument("file", required=False, metavar="[FILE]", shell_complete=completers.files)
@click.option("--by", default="route,model", metavar="KEYS", help="Of route, model, client, group, day, with commas.")
@click.option("--since", metavar="TIME", help="Leave out older requests: 12h, 30d, 4w, or a date in UTC.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
def command(file: str | None, *, by: str, since: str | None, as_csv: bool, as_json: bool) -> None:
    """Print the tokens and costs of a gateway by route and model, or by other keys.

    FILE is the one of `segue serve --usage`; without it, that of the configuration. Costs are in dollars, where the
    price is known, as for `segue run`. A line that can't be read is counted and left out.

    \b
      segue usage usage.jsonl
      segue usage --by client,model --since 30d --csv
    """
    from segue.cli.gateway_settings import load_settings
    from segue.cli.providers import Providers
    from segue.gateway.usage import read_usage

    keys, begin = _parse_keys(by), _parse_since(since)
    if as_csv and as_json:
        raise BadInputError("--csv and --json exclude each other")
    _, loaded = load_settings()
    with open_lines(find_usage_file(file)) as lines:
        report = read_usage(lines, Providers(loaded).cost, keys, begin)
    rows = [_encode_total(total, keys) for total in report.totals]
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode({"totals": rows, "bad_lines": report.bad_lines}), b"\n")
        return
    streams.write(_format_csv(rows) if as_csv else _format_report(report, keys))
    if report.bad_lines:
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


def _parse_keys(by: str) -> tuple[UsageKey, ...]:
    names = [name.strip() for name in by.split(",")]
    unknown = next((name for name in names if name not in _KEYS), None)
    if unknown is not None:
        raise BadInputError(f"{unknown!r} is not a key of --by; expected some of {', '.join(_KEYS)}")
    return tuple(dict.fromkeys(cast("list[UsageKey]", names)))


def _parse_since(since: str | None) -> str:
    """Return the time in ISO format from which requests count."""
    if since is None:
        return ""
    if (age := _AGE.fullmatch(since)) is not None:
        try:
            return (datetime.now(UTC) - timedelta(hours=int(age[1]) * _HOURS[age[2]])).isoformat()
        except OverflowError:
            return ""
    try:
        return datetime.strptime(since, "%Y-%m-%d").strftime("%Y-%m-%d")
    except ValueError:
        raise BadInputError(
            f"{since!r} is not a time of --since: write 12h, 30d, 4w, or a date as 2026-11-01"
        ) from None


def _format_csv(rows: list[dict[str, Any]]) -> str:
    lines = io.StringIO()
    if rows:
        writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return lines.getvalue()


def _encode_total(total: UsageTotal, keys: Sequence[UsageKey]) -> dict[str, Any]:
    usage = total.sum.usage
    return {
        **dict(zip(keys, total.key, strict=True)),
        **{name: getattr(total, name) for name in ("requests", "errors")},
        **{name: getattr(usage, name) for name in ("input", "cache_read", "cache_write", "output")},
        "cost": total.sum.known_cost,
    }


def _format_report(report: UsageReport, keys: Sequence[UsageKey]) -> str:
    """Return a row for each key, and one for all of them if there are several."""
    if not report.totals:
        return "no requests\n"
    totals = [*report.totals, report.whole] if len(report.totals) > 1 else report.totals
    columns = [*map(Column, keys), *(Column(title, is_right=True) for title in _NUMBERS)]
    return rows_to_ansi(format_table(columns, [_format_row(total) for total in totals]))


def _format_row(total: UsageTotal) -> tuple[str, ...]:
    from segue.view.format import format_money

    usage, cost = total.sum.usage, total.sum.known_cost
    price = "-" if cost is None else format_money(cost)
    return (
        *(text or ("" if total.key[0] == "total" else "-") for text in total.key),
        *(f"{number:,}" for number in (total.requests, total.errors, usage.input, usage.cache_read, usage.output)),
        price if total.sum.has_all_prices or cost is None else f"≥ {price}",
    )
