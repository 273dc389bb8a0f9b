"""Runs one exchange until its answer, a signal, or a failed write to stdout."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import click

from segue.cli.agent import Agent
from segue.cli.reporters import Reporter, RunTotals, Started, guard_writes
from segue.cli.run_options import RunOptions
from segue.runtime.events import Event, ExchangeEnded

__all__ = ["run_exchange"]

_ANSWERED, _FAILED, _RETRY, _SIGNALLED = 0, 1, 75, 128


def run_exchange(prompt: str, options: RunOptions, reporter: Reporter) -> int:
    """Run an exchange; returns the exit code."""
    return asyncio.run(_run(prompt, options, reporter))


async def _run(prompt: str, options: RunOptions, reporter: Reporter) -> int:
    write_errors: list[Exception] = []
    stop = _Canceller()

    def give_up(error: Exception) -> None:
        write_errors.append(error)
        stop()

    def on_event(event: Event) -> None:
        totals.on_event(event)
        reporter.on_event(event)

    with _handle_signals(stop) as signalled:
        async with Agent(options, on_event=guard_writes(on_event, give_up)) as agent:
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
            reporter.on_end(ended, totals)
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
    """The first signal cancels the exchange, the second exits at once."""
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
