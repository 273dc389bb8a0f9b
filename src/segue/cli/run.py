"""`segue run`: one prompt, its tool calls, one answer.

The exchange ends with its answer, a signal, or a failed write to stdout.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from segue.cli import completers, options, streams
from segue.cli.options import RunOptions
from segue.errors import InputError

if TYPE_CHECKING:
    from segue.canonical.blocks import Block
    from segue.cli.agent import Agent
    from segue.cli.reporters import Reporter
    from segue.cli.structured import AnswerSchema
    from segue.runtime.events import Event, ExchangeEnded

_ANSWERED, _FAILED, _RETRY, _SIGNALLED = 0, 1, 75, 128


@options.command("run", json_help="Print one JSON value at the end: text, outcome, model, conversation, usage, cost.")
@click.argument("prompt", nargs=-1, metavar="[PROMPT]")
@options.agent_options
@click.option("--jsonl", is_flag=True, help="Print every event as a JSON line, as it happens.")
@click.option(
    "--schema",
    "schema_file",
    metavar="FILE",
    shell_complete=completers.files,
    help="Print one JSON value that matches this JSON Schema.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors to stderr.")
@click.pass_context
def command(
    ctx: click.Context,
    prompt: tuple[str, ...],
    *,
    jsonl: bool,
    schema_file: str | None,
    quiet: bool,
    as_json: bool,
    **flags: Any,
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
      segue run -a photo.png "What is on @notes.md and the picture?"
      segue run -c --allow "write_file(docs/**)" "Put that into docs/about.md"
    """
    from segue.cli.reporters import JsonLinesReporter, JsonReporter, TextReporter

    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl can't be combined", ctx)
    if getattr(sys, "stdout", None) is None:
        raise streams.WriteError("can't write to stdout: it is closed")
    run_options = RunOptions.from_flags(ctx, flags)
    schema = None
    if schema_file is not None:
        from segue.cli.structured import AnswerSchema

        schema = AnswerSchema(schema_file)
    content = _build_content(prompt, run_options)
    text_reporter = TextReporter(quiet=quiet, is_streamed=schema is None)
    reporter: Reporter = JsonReporter() if as_json else JsonLinesReporter() if jsonl else text_reporter
    ctx.exit(asyncio.run(_run_exchange(content, run_options, reporter, schema)))


def _build_content(words: tuple[str, ...], run_options: RunOptions) -> str | tuple[Block, ...]:
    """Return the prompt, filled into its template, and the files that are attached or mentioned."""
    from segue.cli.attachments import build_content, read_attachment
    from segue.cli.prompt_files import find_prompt_file

    if not streams.has_working_folder():
        raise streams.BadInputError(streams.FOLDER_GONE)
    folder = Path.cwd()
    template = None if run_options.template is None else find_prompt_file(run_options.template, folder)
    text = _build_prompt(words, required=template is None and not run_options.attached)
    if template is not None:
        text = template.fill(text)
    attached = {Path(name).resolve(): read_attachment(Path(name), name) for name in run_options.attached}
    return build_content(text, attached, folder)


def _build_prompt(words: tuple[str, ...], *, required: bool) -> str:
    """Return the prompt followed by stdin. A `-` as first or last word requires stdin; elsewhere it is a word."""
    reads_stdin = streams.STDIO in (*words[:1], *words[-1:])
    if reads_stdin:
        words = words[1:] if words[0] == streams.STDIO else words[:-1]
    prompt = " ".join(words)
    stdin = getattr(sys, "stdin", None)
    if not prompt.strip() and (required or reads_stdin):
        return _decode_stdin(streams.read(streams.STDIO, expected="a prompt"))
    if not reads_stdin and (stdin is None or stdin.isatty()):
        return prompt
    text = _decode_stdin(streams.read(streams.STDIO, expected="text", required=reads_stdin))
    return "\n\n".join(part for part in (prompt, text) if part.strip())


def _decode_stdin(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise streams.BadInputError(f"stdin is not UTF-8: {error.reason} at byte {error.start:,}") from None


async def _run_exchange(
    content: str | tuple[Block, ...], run_options: RunOptions, reporter: Reporter, schema: AnswerSchema | None
) -> int:
    """Run an exchange and return the exit code."""
    from segue.cli.agent import Agent
    from segue.cli.reporters import RunStarted, RunTotals, guard_writes

    write_errors: list[Exception] = []
    stop = _Canceller()

    def on_write_error(error: Exception) -> None:
        write_errors.append(error)
        stop()

    def on_event(event: Event) -> None:
        totals.on_event(event)
        reporter.on_event(event)

    with _handle_signals(stop) as signalled:
        async with Agent(run_options, on_event=guard_writes(on_event, on_write_error)) as agent:
            totals = RunTotals(agent.price)
            stop.agent = agent
            is_new = not agent.log.messages
            conversation_id = None if is_new and agent.lacks_key else agent.conversation_id
            reporter.on_start(
                RunStarted(
                    model=agent.next_endpoint.name,
                    why=agent.model_reason,
                    conversation=conversation_id,
                    emulated=agent.is_emulated,
                    switch_cost=agent.switch_cost(agent.next_endpoint),
                )
            )
            asking = _ask_for_value(agent, content, schema) if schema else agent.ask(content, is_start=True)
            ended = await asking
            if failure := agent.checkpoints.take_failure():
                streams.print_message(failure)
            if is_new and ended.cause == "key":
                agent.discard_unanswered()
            if write_errors:
                raise write_errors[0]
            reporter.on_end(ended, totals, agent.session.error)
            return _exit_code(ended, signalled)


async def _ask_for_value(agent: Agent, content: str | tuple[Block, ...], schema: AnswerSchema) -> ExchangeEnded:
    """Run exchanges until the answer is a valid JSON value, which becomes the text of the returned event."""
    import msgspec

    from segue.cli.structured import MAX_CORRECTIONS

    if not agent.toolbox.names:
        options = agent.log.chat.options
        agent.log.update_settings(options=msgspec.structs.replace(options, response_format=schema.response_format))
    ended = await agent.ask(schema.add_to(content), is_start=True)
    for attempt in range(MAX_CORRECTIONS + 1):
        if ended.outcome != "answered":
            return ended
        try:
            return msgspec.structs.replace(ended, text=schema.parse(ended.text))
        except InputError as problem:
            if attempt == MAX_CORRECTIONS:
                return msgspec.structs.replace(ended, outcome="failed", text=problem.message)
            ended = await agent.ask(schema.correction(problem))
    return ended


def _exit_code(ended: ExchangeEnded, signalled: list[int]) -> int:
    if ended.outcome == "answered":
        return _ANSWERED
    if ended.outcome == "cancelled":
        return _SIGNALLED + (signalled[0] if signalled else signal.SIGINT)
    return _RETRY if ended.retryable else _FAILED


class _Canceller:
    """Cancels the exchange through its session; before the agent is ready, the whole task."""

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self._task = asyncio.current_task()

    def __call__(self) -> None:
        if self.agent is not None:
            self.agent.session.cancel()
        elif self._task is not None:
            self._task.cancel()


@contextmanager
def _handle_signals(stop: Callable[[], None]) -> Generator[list[int]]:
    """Cancel the exchange at the first signal, exit at once at the second."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            os._exit(_SIGNALLED + number)
        loop.call_soon_threadsafe(stop)

    kinds = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    # Signals that are ignored (nohup) stay ignored.
    previous = {kind: signal.signal(kind, on_signal) for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN}
    try:
        yield seen
    except asyncio.CancelledError:
        if not seen:
            raise
        raise click.exceptions.Exit(_SIGNALLED + seen[0]) from None
    finally:
        for kind, handler in previous.items():
            signal.signal(kind, handler)
