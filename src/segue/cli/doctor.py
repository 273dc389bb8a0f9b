"""`segue doctor`: checks the setup, and with --online which providers accept their keys."""

from __future__ import annotations

import sys
from typing import Any

import click

from segue.cli import options, streams

_MARKS = {"ok": "ok", "note": "--", "bad": "!!"}
_STYLES: dict[str, dict[str, Any]] = {"ok": {"fg": "green"}, "note": {"dim": True}, "bad": {"fg": "red", "bold": True}}


@options.command("doctor")
@click.option("--online", is_flag=True, help="Verify the keys that are set with a request to each provider.")
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml for this run.")
@click.pass_context
def command(ctx: click.Context, *, online: bool, trusting: bool, as_json: bool) -> None:
    """Check configuration, store, keys, MCP servers and terminal.

    Nothing is sent and no program is started, except with --online, which requests the list of models from each
    provider whose key is set. Keys are never shown. Exit code 1: a problem was found, marked with !!.
    """
    from segue.cli.doctor_checks import DoctorChecks

    checks = DoctorChecks(trusting=trusting)
    checks.run(online=online)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(checks.results), b"\n")
    else:
        streams.write(_format_rows(checks.rows))
    ctx.exit(0 if checks.results["ok"] else 1)


def _format_rows(rows: list[tuple[str, str, str]]) -> str:
    """Format rows as mark, name and text."""
    width = max(len(name) for _, name, _ in rows)
    colour = streams.supports_colour(sys.stdout)
    lines: list[str] = []
    for state, name, text in rows:
        mark = click.style(_MARKS[state], **_STYLES[state]) if colour else _MARKS[state]
        lines.append(f"{mark}  {name:{width}}  {streams.format_line_for(text, sys.stdout)}")
    return "".join(f"{line}\n" for line in lines)
