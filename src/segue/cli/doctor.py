"""`segue doctor`: what is set up, what is missing, and with --online what can be reached."""

from __future__ import annotations

import sys
from typing import Any

import click

from segue.cli import options, streams

_MARKS = {"ok": "ok", "note": "--", "bad": "!!"}
_STYLES: dict[str, dict[str, Any]] = {"ok": {"fg": "green"}, "note": {"dim": True}, "bad": {"fg": "red", "bold": True}}


@options.command("doctor")
@click.option("--online", is_flag=True, help="Ask each provider whose key is set whether it takes it.")
@click.option("--trust", "trusting", is_flag=True, help="Trust the project's .segue.toml, this time.")
@click.pass_context
def command(ctx: click.Context, *, online: bool, trusting: bool, as_json: bool) -> None:
    """Say what is set up: configuration, store, keys, servers of tools, the terminal.

    Nothing is sent and no program is started, except with --online, which asks the providers whose keys are set for
    their lists of models. Keys are never shown. Exit code 1: something is wrong, marked with !!.
    """
    from segue.cli.examination import Examination

    examined = Examination(trusting=trusting)
    examined.all(online=online)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(examined.told), b"\n")
    else:
        streams.write(_page(examined.rows))
    ctx.exit(0 if examined.told["ok"] else 1)


def _page(rows: list[tuple[str, str, str]]) -> str:
    """A mark, what it is about, and what is to be said of it."""
    width = max(len(name) for _, name, _ in rows)
    colour = streams.coloured(sys.stdout)
    lines: list[str] = []
    for state, name, words in rows:
        mark = click.style(_MARKS[state], **_STYLES[state]) if colour else _MARKS[state]
        lines.append(f"{mark}  {name:{width}}  {streams.shown(words, sys.stdout)}")
    return "".join(f"{line}\n" for line in lines)
