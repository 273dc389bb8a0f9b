"""`segue extract`: extracts tool calls from a model's text."""

from __future__ import annotations

import click

from segue._literals import TextFormat
from segue.cli import findings, options, streams


@options.command("extract")
@click.option("--format", "form", default="auto", show_default=True, metavar="F", help="The text tool format, or auto.")
@click.option("--tools", metavar="FILE", help="Tool declarations of any API, which give the types of the arguments.")
@options.file_argument
def command(file: str, *, form: TextFormat, tools: str | None, as_json: bool) -> None:
    """Extract tool calls from a model's text (FILE or stdin).

    Prints one JSON object: the format, the remaining text, the reasoning at the start of the text, and the calls. A
    call that can't be parsed stays in the text and is reported on stderr.

    \b
      echo '<tool_call>{"name": "f", "arguments": {}}</tool_call>' | segue extract
      segue extract --format xml --tools tools.json answer.txt
    """
    import msgspec

    import segue
    from segue.canonical.json import parse_json

    data = streams.read(file, expected="the text of a model's answer", allow_nul=True)
    with streams.name_input(file):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise segue.InputError(f"not UTF-8 at byte {error.start}") from None
    with streams.name_input(tools or streams.STDIO):
        declared = None if tools is None else parse_json(streams.read(tools, expected="a list of tool declarations"))[0]
        extracted = segue.extract(text, form, tools=declared)
    calls = [
        {"id": call.id, "raw_id": call.raw_id, "name": call.name, "arguments": call.arguments}
        | ({} if call.arguments_text is None else {"arguments_text": call.arguments_text})
        for call in extracted.calls
    ]
    fields = {"format": extracted.format, "text": extracted.text, "thinking": extracted.thinking, "calls": calls}
    if as_json:
        streams.write(msgspec.json.encode({**fields, "report": extracted.report.to_dict()}), b"\n")
        return
    streams.write(msgspec.json.format(msgspec.json.encode(fields), indent=2), b"\n")
    findings.print_findings(extracted.report, verbose=True)
