"""`segue apis` and `segue formats`: list APIs, server profiles, item types and tool formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from segue.cli import options, streams
from segue.cli.table import Column, format_table, rows_to_ansi, write_table

if TYPE_CHECKING:
    from segue import Detected

_COLUMNS = {
    "name": "bold cyan",
    "kind": "",
    "on": "",
    "provider": "",
    "default_model": "",
    "tool_format": "",
    "title": "dim",
}


@options.command("apis")
@click.option("--model", metavar="NAME", help="Show the API, dialect and tool format of a model.")
@click.option("--profiles", is_flag=True, help="List server profiles: servers with rules of their own, and their API.")
@click.option("--types", is_flag=True, help="List all tool call and output types and their form on each API.")
def command(*, as_json: bool, model: str | None, profiles: bool, types: bool) -> None:
    """List APIs with their default models, or what is known of a model.

    \b
      segue apis --model moonshotai/Kimi-K2-Instruct
      segue apis --profiles
      segue apis --types
    """
    import segue

    flags = [flag for flag, value in (("--model", model), ("--profiles", profiles), ("--types", types)) if value]
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)} can't be combined", click.get_current_context())
    if types:
        _show_types(as_json=as_json)
        return
    if profiles:
        _show_profiles(as_json=as_json)
        return
    if model is not None:
        _show_model(segue.detect(model), as_json=as_json)
        return
    rows: list[dict[str, str | None]] = [{name: getattr(row, name) for name in _COLUMNS} for row in segue.formats()]
    rows = [row for row in rows if row["kind"] != "text"]
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(rows), b"\n")
        return
    columns = [Column(name.replace("_", " "), style) for name, style in _COLUMNS.items()]
    write_table(columns, [[value or "-" for value in row.values()] for row in rows])


def _show_profiles(*, as_json: bool) -> None:
    from segue.wire.registry import SERVERS

    rows = [(name, server.name) for name, server in sorted(SERVERS.items())]
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode([{"name": name, "api": api} for name, api in rows]), b"\n")
        return
    write_table([Column("name"), Column("API")], rows)


def _show_types(*, as_json: bool) -> None:
    from segue.wire.catalog.registry import type_rows

    rows = type_rows()
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(rows), b"\n")
        return
    fixed = ("provider", "wire_type", "role", "family", "identity")
    columns = [Column(name.replace("_", " ")) for name in (*fixed, *rows[0].by_wire)]
    cells = [[*(getattr(row, name) for name in fixed), *row.by_wire.values()] for row in rows]
    streams.write(rows_to_ansi(format_table(columns, cells)))


def _show_model(detected: Detected, *, as_json: bool) -> None:
    model = detected.model
    version = ".".join(map(str, model.version))
    row = {"wire": detected.wire, "dialect": detected.dialect, "tool_format": detected.tool_format}
    row |= {"family": model.family or None, "line": model.line or None, "version": version or None}
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode({"model": model.name, **row}), b"\n")
        return
    width = max(map(len, row)) + 2
    streams.write("".join(f"{key.replace('_', ' '):{width}}{value or '-'}\n" for key, value in row.items()))
