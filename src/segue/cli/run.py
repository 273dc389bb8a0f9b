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
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from segue.cli import options, streams
from segue.cli.options import RunOptions

if TYPE_CHECKING:
    from segue.cli.agent import Agent
    from segue.cli.reporters import Reporter
    from segue.runtime.events import Event, ExchangeEnded

_ANSWERED, _FAILED, _RETRY, _SIGNALLED = 0, 1, 75, 128


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
    from segue.cli.reporters import JsonLinesReporter, JsonReporter, TextReporter

    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl can't be combined", ctx)
    if getattr(sys, "stdout", None) is None:
        raise streams.WriteError("can't write to stdout: it is closed")
    text = _build_prompt(prompt)
    reporter: Reporter = JsonReporter() if as_json else JsonLinesReporter() if jsonl else TextReporter(quiet=quiet)
    ctx.exit(asyncio.run(_run_exchange(text, RunOptions.from_flags(ctx, flags), reporter)))


def _build_prompt(words: tuple[str, ...]) -> str:
    """Return the prompt followed by stdin. A `-` as first or last word requires stdin; elsewhere it is a word."""
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


async def _run_exchange(prompt: str, run_options: RunOptions, reporter: Reporter) -> int:
    """Run an exchange and return the exit code."""
    from segue.cli.agent import Agent
    from segue.cli.reporters import RunTotals, Started, guard_writes

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
                Started(
                    model=agent.model, why=agent.model_reason, conversation=conversation_id, emulated=agent.is_emulated
                )
            )
            ended = await agent.ask(prompt)
            if is_new and ended.cause == "key":
                agent.discard_unanswered()
            if write_errors:
                raise write_errors[0]
            reporter.on_end(ended, totals, agent.session.error)
            return _exit_code(ended, signalled)


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
