"""`segue run`: one question, the tools it takes, one answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams

if TYPE_CHECKING:
    from segue.cli.telling import Teller


@options.command("run", json_help="One JSON value at the end: text, model, conversation, usage, cost, how it ended.")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.option("--jsonl", is_flag=True, help="Every event as a line of JSON, as it happens.")
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but what goes wrong.")
@click.pass_context
def command(
    ctx: click.Context, prompt: tuple[str, ...], *, jsonl: bool, quiet: bool, as_json: bool, **wishes: Any
) -> None:
    """Ask a model, let it use tools, and print its answer.

    What stdin holds is put after the PROMPT; without one, or with -, it is the question. Nobody is asked whether a tool
    may change something: what no rule allows is denied, and the model is told. The answer goes to stdout as it comes,
    everything else to stderr.

    Exit codes: 0 answered, 1 failed, 2 bad input or usage, 75 worth retrying, 130 cancelled (Ctrl-C; a second
    one leaves at once).

    \b
      git diff | segue run "Write a commit message"
      segue run -m anthropic/claude-sonnet-5 -m openai/gpt-4.1 "What does this project do?"
      segue run -c --allow "write_file(docs/**)" "Put that into docs/about.md"
    """
    from segue.cli.running import run
    from segue.cli.telling import Lines, Plain, Value
    from segue.cli.wishes import Wishes

    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl are different forms", ctx)
    if getattr(sys, "stdout", None) is None:
        raise streams.Unwritable("can't write to stdout: it is closed")
    asked = _asked(prompt)
    teller: Teller = Value() if as_json else Lines() if jsonl else Plain(quiet=quiet)
    ctx.exit(run(asked, Wishes.given(ctx, wishes), teller))


def _asked(words: tuple[str, ...]) -> str:
    """The prompt, and what stdin says to it. A - before or behind the words asks for it; between them it is a word."""
    wanted = streams.STDIO in (*words[:1], *words[-1:])
    if wanted:
        words = words[1:] if words[0] == streams.STDIO else words[:-1]
    prompt = " ".join(words)
    if not prompt.strip():
        return _text(streams.read(streams.STDIO, wanted="a question"))
    stdin = getattr(sys, "stdin", None)
    if not wanted and (stdin is None or stdin.isatty()):
        return prompt
    given = _text(streams.read(streams.STDIO, wanted="text", needed=wanted))
    return f"{prompt}\n\n{given}" if given.strip() else prompt


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise streams.Unreadable(f"stdin is not UTF-8: {error.reason} at byte {error.start:,}") from None
