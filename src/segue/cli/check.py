"""`segue check`: would this provider take this body, by the numbers of the rulebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue import Verdict

_COLOURS = {"reject": "red", "risk": "yellow"}


@options.command("check")
@options.option("--api", required=True, help="The API that shall take the body.")
@options.model_option
@options.profile_option
@options.file_argument
@click.pass_context
def command(ctx: click.Context, file: str, *, api: str, model: str | None, profile: str | None, as_json: bool) -> None:
    """Judge a request body (FILE or stdin): one line for each violation.

    A reject is what the provider answers with an error, a risk what it may take badly. Exit code 0: it would
    be accepted; 1: it would not.

    \b
      segue check --api anthropic < body.json
    """
    import segue

    verdict = segue.check(streams.read(file), api, model=model, profile=profile)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(verdict.to_dict()), b"\n")
    else:
        streams.write("".join(f"{line}\n" for line in _lines(verdict)))
    ctx.exit(0 if verdict else 1)


def _lines(verdict: Verdict) -> list[str]:
    """A line for each violation and one for the whole; the word `reject` begins no other line."""
    colour = streams.coloured()
    lines: list[str] = []
    counts = {"reject": 0, "risk": 0}
    for violation in verdict:
        counts[violation.severity] += 1
        word = click.style(violation.severity, fg=_COLOURS[violation.severity]) if colour else violation.severity
        told = streams.one_line(f"{violation.rule} {violation.path or 'the body'}: {violation.message}")
        lines.append(f"{word} {told}")
    counted = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count)
    whole = "accepted" if verdict else "refused"
    if colour:
        whole = click.style(whole, fg="green" if verdict else "red", bold=True)
    return [*lines, f"{whole} ({counted})" if counted else whole]
