"""`segue check`: whether a provider would accept a body, with the rulebook's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue import Verdict

_COLOURS = {"reject": "red", "risk": "yellow"}


@options.command("check")
@options.api_option("--api", required=True, help="The API the body is for.")
@options.model_option
@options.profile_option
@options.file_argument
@click.pass_context
def command(ctx: click.Context, file: str, *, api: str, model: str | None, profile: str | None, as_json: bool) -> None:
    """Check a request body (FILE or stdin) against the provider's rules: one line for each violation.

    reject: the provider answers with an error. risk: it accepts the body, but may misbehave. Exit code 0: the body
    would be accepted; 1: it would be rejected.

    \b
      segue check --api anthropic < body.json
    """
    import segue

    verdict = segue.check(streams.read(file), api, model=model, profile=profile)
    if as_json:
        import msgspec

        streams.write(msgspec.json.encode(verdict.to_dict()), b"\n")
    else:
        streams.write("".join(f"{line}\n" for line in _format_verdict(verdict)))
    ctx.exit(0 if verdict else 1)


def _format_verdict(verdict: Verdict) -> list[str]:
    """A line for each violation and one for the verdict, which never starts with `reject`."""
    colour = streams.supports_colour()
    lines: list[str] = []
    counts = {"reject": 0, "risk": 0}
    for violation in verdict:
        counts[violation.severity] += 1
        severity = click.style(violation.severity, fg=_COLOURS[violation.severity]) if colour else violation.severity
        text = streams.one_line(f"{violation.rule} {violation.path or 'the body'}: {violation.message}")
        lines.append(f"{severity} {text}")
    summary = ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count)
    result = "accepted" if verdict else "refused"
    if colour:
        result = click.style(result, fg="green" if verdict else "red", bold=True)
    return [*lines, f"{result} ({summary})" if summary else result]
