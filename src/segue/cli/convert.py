"""`segue convert`: one request body, from one API's form to another's.

Nothing is written before the whole conversion has succeeded.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from segue.cli import config, options, streams

if TYPE_CHECKING:
    from segue import Converted

# Policy → its values, the default first, and what it decides.
POLICIES: dict[str, tuple[tuple[str, ...], str]] = {
    "ids": (("auto", "canonical", "native"), "Ids of calls: the provider's own at home, or canonical everywhere."),
    "reasoning": (("native", "text", "none"), "Reasoning that the target did not make: drop it, or tell it as text."),
    "hosted": (("pair", "text", "drop"), "Tools that a provider ran itself: call and result, text, or nothing."),
    "pending": (("complete", "keep"), "Open calls at the end: complete them, or leave them open."),
    "orphans": (("text", "drop"), "Results without a call: tell them as text, or drop them."),
}


def _policies(function: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each policy, in the order of the table."""
    for name, (values, text) in reversed(POLICIES.items()):
        kind = click.Choice(values)
        function = click.option(f"--{name}", type=kind, default=values[0], show_default=True, help=text)(function)
    return function


@options.command("convert")
@options.option("--from", "source", help="The API the body is made for; told by its shape where not given.")
@options.option("--to", "target", required=True, help="The API that shall take it.")
@options.model_option
@options.profile_option
@options.tool_format_option
@_policies
@click.option("--report", metavar="F", help="Write what was decided as JSON to this file; - is stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Sum up on stderr what was repaired, terminal or not.")
@options.file_argument
def command(file: str, *, as_json: bool, report: str | None, verbose: bool, **wishes: Any) -> None:
    """Convert a request body (FILE or stdin) for another API.

    \b
      segue convert --to anthropic < chat.json
      segue convert --from kimi --to openai-chat --report report.json chat.json
    """
    import segue

    _spare_the_input(file, report)
    wishes["tool_format"] = config.tool_format(wishes["tool_format"], wishes["target"])
    converted = segue.convert(streams.read(file), **wishes)
    chunks = [converted.data]
    if report is not None or as_json:
        import msgspec

        told = msgspec.json.encode(converted.report.to_dict())
        if report is not None:
            _write_report(report, msgspec.json.format(told, indent=2) + b"\n")
        if as_json:
            chunks = [b'{"body":', converted.data, b',"report":', told, b"}"]
    if verbose or (report is None and streams.on_terminal(sys.stderr)):
        _sum_up(converted, wishes["target"], verbose=verbose)
    streams.write(*chunks, b"\n")


def _spare_the_input(file: str, report: str | None) -> None:
    """A report must not replace the body that it tells of."""
    if report and streams.STDIO not in (file, report) and Path(report).exists() and Path(report).samefile(file):
        raise click.UsageError(f"--report {report} is the input file", click.get_current_context())


def _write_report(file: str, data: bytes) -> None:
    if file == streams.STDIO:
        click.echo(data, err=True, nl=False)
    else:
        streams.replace_file(file, data)


def _sum_up(converted: Converted, target: str, *, verbose: bool) -> None:
    """One line: how many findings of each kind."""
    counted = Counter(finding.kind for finding in converted.report.findings)
    if counted or verbose:
        told = ", ".join(f"{count} × {kind}" for kind, count in counted.items()) or "nothing to repair"
        hint = " (--report tells each)" if counted else ""
        streams.say(f"{converted.source} → {target}: {told}{hint}")
