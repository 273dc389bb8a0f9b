"""`segue diag`: what would be said at any turn to any target, what was decided on the way, and whose fault it is.

Made to be pasted into a bug report: secrets are taken out of every line, and of the conversation only what findings
quote is told, unless the body is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, stored, streams

if TYPE_CHECKING:
    from segue.cli.diagnosis import Diagnosis

_COLOURS = {"accepted": "green", "refused": "red"}


@options.command("diag")
@options.id_argument
@click.argument("turn", required=False)
@options.option("--to", "target", help="For which API; the one that was asked last where not given.")
@options.model_option
@click.option("--body", "with_body", is_flag=True, help="The body too, without secrets.")
@click.pass_context
def command(
    ctx: click.Context,
    id: str,
    turn: str | None,
    *,
    target: str | None,
    model: str | None,
    with_body: bool,
    as_json: bool,
) -> None:
    """Tell what is sent after a turn, and in which layer each oddity arose.

    TURN is a turn's key, or its number from 1; 0 is before the first reply, and without one it is now. Layers:
    the canonical state (what happened), the rendering (what may be said to this target), the projection (how its
    API spells it). Exit code 1: the body would be refused.

    \b
      segue diag 1nfm
      segue diag 1nfm 3 --to anthropic --model claude-sonnet-4-5
    """
    from segue.cli.diagnosis import diagnosed
    from segue.scrubbing import scrub, scrub_values

    with stored.opened() as store:
        found = diagnosed(store, store.find(id), turn, target, model)
    if as_json:
        import msgspec

        told: Any = found.to_dict(with_body=with_body)
        streams.write(msgspec.json.encode(scrub_values(told)), b"\n")
    else:
        streams.write("".join(f"{_coloured(_clean(scrub(line)))}\n" for line in found.lines()))
        if with_body:
            streams.write("\n", _body(found))
    ctx.exit(0 if found.verdict else 1)


def _clean(line: str) -> str:
    """One line, with the indent that it has."""
    return " " * (len(line) - len(line.lstrip(" "))) + streams.one_line(line)


def _body(found: Diagnosis) -> bytes:
    import msgspec

    from segue.scrubbing import scrub_values

    return msgspec.json.format(msgspec.json.encode(scrub_values(found.body)), indent=2) + b"\n"


def _coloured(line: str) -> str:
    if not streams.coloured():
        return line
    if line.endswith(":") and not line.startswith(" "):
        return click.style(line, bold=True)
    word = line.split(" ", 1)[0]
    return click.style(line, fg=_COLOURS[word], bold=True) if word in _COLOURS else line
