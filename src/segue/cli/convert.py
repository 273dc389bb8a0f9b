"""`segue convert`: converts a request body from one API to another.

Nothing is written before the whole conversion has succeeded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import config, findings, options, streams

if TYPE_CHECKING:
    from segue import Converted

# Policy → its values (the default first) and its help text.
POLICIES: dict[str, tuple[tuple[str, ...], str]] = {
    "ids": (("auto", "canonical", "native"), "Tool call ids: the provider's own where possible, or canonical ones."),
    "reasoning": (("native", "text", "none"), "Reasoning: send only the target provider's own, all as text, or none."),
    "hosted": (("pair", "text", "drop"), "Calls of hosted tools: send them as call and result, as text, or drop them."),
    "pending": (
        ("complete", "keep"),
        "Tool calls at the end that have no result: add a synthetic one, or keep them pending.",
    ),
    "orphans": (("text", "drop"), "Tool results without a call: send them as text, or drop them."),
}


def _policy_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each policy, in the order of the table."""
    for name, (values, text) in reversed(POLICIES.items()):
        kind = click.Choice(values)
        function = click.option(f"--{name}", type=kind, default=values[0], show_default=True, help=text)(function)
    return function


@options.command("convert")
@options.api_option("--from", "source", help="The API the body is for (default: detected).")
@options.api_option("--to", "target", required=True, help="The API to convert to.")
@options.model_option
@options.profile_option
@options.tool_format_option
@_policy_options
@click.option("--report", metavar="FILE", help="Write the report as JSON to this file, or to stderr with -.")
@click.option("-v", "--verbose", is_flag=True, help="Print notes too, and print findings with --report and --json.")
@options.file_argument
def command(file: str, *, as_json: bool, report: str | None, verbose: bool, **arguments: Any) -> None:
    """Convert a request body (FILE or stdin) to another API.

    The converted body goes to stdout; the report lists what was lost or changed, and why.

    \b
      segue convert --to anthropic < chat.json
      segue convert --from kimi --to openai-chat --report report.json chat.json
    """
    import segue

    _check_report_path(file, report)
    arguments["tool_format"] = config.choose_tool_format(arguments["tool_format"], arguments["target"])
    with streams.name_input(file):
        converted = segue.convert(streams.read(file), **arguments)
    chunks = [converted.data]
    if report is not None or as_json:
        import msgspec

        report_data = msgspec.json.encode(converted.report.to_dict())
        if report is not None:
            _write_report(report, msgspec.json.format(report_data, indent=2) + b"\n")
        if as_json:
            chunks = [b'{"body":', converted.data, b',"report":', report_data, b"}"]
    streams.write(*chunks, b"\n")
    if verbose or not (report or as_json):
        _print_summary(converted, arguments["target"], verbose=verbose)


def _check_report_path(file: str, report: str | None) -> None:
    """Raise a usage error if the report would overwrite the input or the converted body."""
    if not report or report == streams.STDIO or not Path(report).is_file():
        return
    source = sys.stdin if file == streams.STDIO else file
    for role, other in (("input", source), ("output", sys.stdout)):
        if streams.is_same_file(report, other):
            raise click.UsageError(f"--report {report} is the {role} file", click.get_current_context())


def _write_report(file: str, data: bytes) -> None:
    if file == streams.STDIO:
        click.echo(streams.escape_json_for(data, sys.stderr), err=True, nl=False)
    else:
        streams.replace_file(file, data)


def _print_summary(converted: Converted, target: str, *, verbose: bool) -> None:
    """Print the findings and the number of each level; without `verbose` no notes."""
    findings.print_findings(converted.report, verbose=verbose)
    levels = [finding.level for finding in converted.report.findings]
    if verbose or {*levels} - {"note"}:
        hint = " (-v prints the notes)" if "note" in levels and not verbose else ""
        streams.print_message(f"{converted.source} → {target}: {findings.format_levels(levels)}{hint}")
