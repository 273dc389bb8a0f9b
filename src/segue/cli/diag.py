"""`segue diag`: the request at any turn for any target, its findings, and the layer that caused each.

The output is meant for bug reports: secrets are redacted, and of the conversation only what findings quote is printed,
unless `--body` is given.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams, user_store

if TYPE_CHECKING:
    from segue.cli.diagnosis import Diagnosis

REQUEST_PREFIX = "req_"
"""The ids that a gateway gives to requests begin with this."""
_COLOURS = {"accepted": "green", "refused": "red"}


@options.command("diag")
@options.id_argument
@click.argument("turn", required=False)
@options.api_option("--to", "target", help="Target API (default: the one used last).")
@options.model_option
@click.option("--body", "with_body", is_flag=True, help="Also print the body, with secrets redacted.")
@options.verbose_option
@click.pass_context
def command(
    ctx: click.Context,
    id: str,
    turn: str | None,
    *,
    target: str | None,
    model: str | None,
    with_body: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show the request after a turn and the cause of each finding; or one request of a gateway.

    TURN is a turn key or a number: 1 is the first turn, 0 the state before it; the default is the latest state. Each
    finding is listed under the layer that caused it: canonical state (what happened), rendering (what this target
    accepts), projection (how its API encodes it). Exit code 1: the provider would reject the body.

    With the id of a gateway's request, which begins with req_, its line in the usage file is shown; TURN can be another
    file of `segue serve`: usage, or a log as text or JSON.

    \b
      segue diag 1nfm
      segue diag req_8c1f0d6a52b7e394 gateway.log
      segue diag 1nfm 3 --to anthropic --model claude-sonnet-4-5
    """
    if id.startswith(REQUEST_PREFIX):
        from segue.cli.request_lines import print_request

        print_request(id, turn, as_json=as_json)
        return
    from segue.cli.diagnosis import diagnose
    from segue.redaction import redact, redact_values

    with user_store.connect() as store:
        diagnosis = diagnose(store, store.find_id(id), turn, target, model, with_body=with_body)
    if as_json:
        import msgspec

        fields: Any = diagnosis.to_dict()
        streams.write(msgspec.json.encode(redact_values(fields)), b"\n")
    else:
        streams.write("".join(f"{_colour(_one_line(redact(line)))}\n" for line in diagnosis.lines(verbose=verbose)))
        if with_body:
            streams.write("\n", _format_body(diagnosis))
    ctx.exit(0 if diagnosis.verdict else 1)


def _one_line(line: str) -> str:
    """Remove line ends and control characters, but keep the indent."""
    return " " * (len(line) - len(line.lstrip(" "))) + streams.format_line_for(line, sys.stdout)


def _format_body(diagnosis: Diagnosis) -> bytes:
    import msgspec

    from segue.redaction import redact_values

    return msgspec.json.format(msgspec.json.encode(redact_values(diagnosis.body)), indent=2) + b"\n"


def _colour(line: str) -> str:
    if not streams.supports_colour():
        return line
    if line.endswith(":") and not line.startswith(" "):
        return click.style(line, bold=True)
    first = line.split(" ", 1)[0]
    return click.style(line, fg=_COLOURS[first], bold=True) if first in _COLOURS else line
