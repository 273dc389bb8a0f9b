"""`segue run`: one prompt, its tool calls, one answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.reporters import Reporter


@options.command(
    "run", json_help="Print one JSON value at the end: text, how (the outcome), model, conversation, usage, cost."
)
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.option("--jsonl", is_flag=True, help="Print every event as a JSON line, as it happens.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors to stderr.")
@click.pass_context
def command(
    ctx: click.Context, prompt: tuple[str, ...], *, jsonl: bool, quiet: bool, as_json: bool, **flags: Any
) -> None:
    """Send a prompt to a model with tools and print its answer.

    Text on stdin is appended to PROMPT; without PROMPT, or with -, stdin is the prompt. There is no permission prompt:
    a tool call that needs permission is denied unless a rule allows it, and the model gets the denial as its result.
    The answer is streamed to stdout, everything else goes to stderr.

    Exit codes: 0 answered, 1 failed, 2 bad input or usage, 75 temporary failure (try again), 130 cancelled (Ctrl-C; a
    second one exits at once).

    \b
      git diff | segue run "Write a commit message"
      segue run -m anthropic/claude-sonnet-5 -m openai/gpt-4.1 "What does this project do?"
      segue run -c --allow "write_file(docs/**)" "Put that into docs/about.md"
    """
    from segue.cli.exchange import run_exchange
    from segue.cli.reporters import JsonLinesReporter, JsonReporter, TextReporter
    from segue.cli.run_options import RunOptions

    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl can't be combined", ctx)
    if getattr(sys, "stdout", None) is None:
        raise streams.WriteError("can't write to stdout: it is closed")
    text = _build_prompt(prompt)
    reporter: Reporter = JsonReporter() if as_json else JsonLinesReporter() if jsonl else TextReporter(quiet=quiet)
    ctx.exit(run_exchange(text, RunOptions.from_flags(ctx, flags), reporter))


def _build_prompt(words: tuple[str, ...]) -> str:
    """The prompt followed by stdin. A `-` as first or last word requires stdin; elsewhere it is a word."""
    reads_stdin = streams.STDIO in (*words[:1], *words[-1:])
    if reads_stdin:
        words = words[1:] if words[0] == streams.STDIO else words[:-1]
    prompt = " ".join(words)
    if not prompt.strip():
        return _decode_stdin(streams.read(streams.STDIO, expected="a prompt"))
    stdin = getattr(sys, "stdin", None)
    if not reads_stdin and (stdin is None or stdin.isatty()):
        return prompt
    text = _decode_stdin(streams.read(streams.STDIO, expected="text", required=reads_stdin))
    return f"{prompt}\n\n{text}" if text.strip() else prompt


def _decode_stdin(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise streams.BadInputError(f"stdin is not UTF-8: {error.reason} at byte {error.start:,}") from None
