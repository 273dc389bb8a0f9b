"""`segue repair`: makes a request body valid with minimal changes, and prints the changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from segue._literals import Api, Profile
from segue.cli import options, streams
from segue.errors import format_count

if TYPE_CHECKING:
    from segue import Repaired

_COLOURS = {"+": "green", "-": "red", "~": "yellow", ">": "cyan", "#": "bright_black"}


@options.command("repair")
@options.api_option("--api", required=True, help="The API the body is for.")
@options.model_option
@options.profile_option
@click.option("-q", "--quiet", is_flag=True, help="Do not print the changes to stderr.")
@options.file_argument
def command(file: str, *, api: Api, model: str | None, profile: Profile | None, as_json: bool, quiet: bool) -> None:
    """Repair a request body (FILE or stdin) for its own API.

    Changes only what makes the body invalid; a valid body is returned unchanged. The repaired body goes to stdout, one
    line for each change to stderr (+ added, - removed, ~ changed, > moved, # reason).

    \b
      segue repair --api anthropic body.json > repaired.json
    """
    import segue

    with streams.name_input(file):
        repaired = segue.repair(streams.read(file), api, model=model, profile=profile)
    chunks = [repaired.data]
    if as_json:
        import msgspec

        fields = {"changes": repaired.changes, "report": repaired.report.to_dict()}
        chunks = [b'{"body":', repaired.data, b",", msgspec.json.encode(fields)[1:]]
    if not quiet and not as_json:
        _print_changes(repaired)
    streams.write(*chunks, b"" if repaired.data.endswith(b"\n") and not as_json else b"\n")


def _print_changes(repaired: Repaired) -> None:
    colour = streams.supports_colour(sys.stderr)
    for line in str(repaired).splitlines():
        text = streams.format_line_for(line, sys.stderr)
        click.echo(click.style(text, fg=_COLOURS[text[0]]) if colour else text, err=True)
    count = len(repaired.changes)
    nothing = "nothing else to repair" if repaired.report.findings_of("surrogate") else "nothing to repair"
    streams.print_message(nothing if not count else format_count(count, "change"))
