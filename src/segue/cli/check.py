"""`segue check`: whether a provider would accept a body, with the rulebook's numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from segue._literals import Api, Profile
from segue.cli import options, streams
from segue.errors import format_count

if TYPE_CHECKING:
    from segue import Verdict

_COLOURS = {"reject": "red", "risk": "yellow"}


@options.command("check")
@options.api_option("--api", required=True, help="The API the body is for.")
@options.model_option
@options.profile_option
@click.option("--explain", is_flag=True, help="Show each violated rule: error text, source, example, what segue does.")
@options.file_argument
@click.pass_context
def command(
    ctx: click.Context, file: str, *, api: Api, model: str | None, profile: Profile | None, explain: bool, as_json: bool
) -> None:
    """Check a request body (FILE or stdin) against the API's rules.

    Prints one line for each violation, with its severity: reject (the provider returns an error) or risk (worse
    replies, or an error on some deployments). Exit code 0: the body would be accepted; 1: it would be rejected.

    \b
      segue check --api anthropic < body.json
      segue check --api anthropic --explain body.json
    """
    import segue
    from segue.cli.rules import format_rules, rule_fields
    from segue.specs.rulebook import find_rule

    with streams.name_input(file):
        verdict = segue.check(streams.read(file), api, model=model, profile=profile)
    entries = [find_rule(number) for number in dict.fromkeys(violation.rule for violation in verdict)]
    if as_json:
        import msgspec

        explained = {"rules": [rule_fields(entry) for entry in entries]} if explain else {}
        streams.write(msgspec.json.encode({**verdict.to_dict(), **explained}), b"\n")
        ctx.exit(0 if verdict else 1)
    streams.write("".join(f"{line}\n" for line in _format_verdict(verdict)))
    if explain and entries:
        streams.write("\n", format_rules(entries))
    elif entries:
        streams.print_message(f"`segue rules {entries[0].id}` explains a rule, `segue check --explain` all of these")
    ctx.exit(0 if verdict else 1)


def _format_verdict(verdict: Verdict) -> list[str]:
    """Return a line for each violation and one for the verdict, which never starts with `reject`."""
    colour = streams.supports_colour()
    lines: list[str] = []
    counts = {"reject": 0, "risk": 0}
    for violation in verdict:
        counts[violation.severity] += 1
        severity = click.style(violation.severity, fg=_COLOURS[violation.severity]) if colour else violation.severity
        text = streams.format_line_for(
            f"{violation.rule} {violation.path or 'the body'}: {violation.message}", sys.stdout
        )
        lines.append(f"{severity} {text}")
    summary = ", ".join(format_count(count, severity) for severity, count in counts.items() if count)
    result = "accepted" if verdict else "refused"
    if colour:
        result = click.style(result, fg="green" if verdict else "red", bold=True)
    return [*lines, f"{result} ({summary})" if summary else result]
