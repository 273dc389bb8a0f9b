"""`segue assemble`: assembles a recorded stream into one reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from segue._literals import Api, ToolFormat
from segue.cli import config, findings, options, streams

if TYPE_CHECKING:
    from segue import Reply, Report


@options.command("assemble")
@options.api_option("--api", required=True, help="The API the stream comes from.")
@options.api_option("--to", "target", help="Convert the reply to this API's format (default: the same API).")
@options.tool_format_option
@options.verbose_option
@options.file_argument
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    *,
    api: Api,
    target: Api | None,
    tool_format: ToolFormat | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """Assemble a recorded stream (FILE or stdin) into one reply.

    Input: raw server-sent events, JSON lines, a JSON list, an AWS event stream, or the output of curl -i. The result
    is the reply as the API would have sent it without streaming. Exit code 1: the stream is incomplete; the partial
    reply is printed.

    \b
      curl -i … | segue assemble --api openai-chat
      segue assemble --api anthropic --to openai-chat stream.txt
    """
    import msgspec

    from segue._stream import assemble, render_reply_body
    from segue.errors import InputError, RemoteProtocolError

    data = streams.read(file, text=False, expected="a recorded stream")
    try:
        reply = assemble(data, api, tool_format=cast("ToolFormat", config.choose_tool_format(tool_format, api)))
    except RemoteProtocolError as error:
        if error.kind is not None:
            raise
        raise InputError(str(error), path=streams.format_name(file)) from None
    body, report = render_reply_body(reply, target or api)
    if as_json:
        streams.write(msgspec.json.encode({"body": body, **_reply_fields(reply, report)}), b"\n")
    else:
        streams.write(msgspec.json.encode(body), b"\n")
        findings.print_findings(report, verbose=verbose)
    if reply.finish == "error":
        streams.print_message(f"the reply is incomplete: {reply.raw_finish}")
        ctx.exit(1)


def _reply_fields(reply: Reply, report: Report) -> dict[str, Any]:
    import msgspec

    calls = [
        {
            "id": call.id,
            "raw_id": call.raw_id,
            "name": call.name,
            "arguments": call.arguments,
            "arguments_text": call.arguments_text,
            "broken": call.broken,
        }
        for call in reply.calls
    ]
    usage = None if reply.usage is None else msgspec.to_builtins(reply.usage)
    texts = {"text": reply.text, "thinking": reply.thinking}
    return {**texts, "calls": calls, "finish": reply.finish, "usage": usage, "report": report.to_dict()}
