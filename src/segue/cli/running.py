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
from segue.cli.telling import Bill, Opened, Teller, guarded
from segue.cli.wishes import Wishes
from segue.runtime.events import Ended, Event

__all__ = ["run"]

_ANSWERED, _FAILED, _RETRY, _SIGNALLED = 0, 1, 75, 128


def run(asked: str, wishes: Wishes, teller: Teller) -> int:
    """Run an exchange; returns the exit code."""
    return asyncio.run(_exchange(asked, wishes, teller))


async def _exchange(asked: str, wishes: Wishes, teller: Teller) -> int:
    write_errors: list[Exception] = []
    stop = _Stop()

    def give_up(error: Exception) -> None:
        write_errors.append(error)
        stop()

    def on_event(event: Event) -> None:
        totals.hear(event)
        teller.hear(event)

    with _signals(stop) as signalled:
        async with Agent(wishes, listen=guarded(on_event, give_up)) as agent:
            totals = Bill(agent.price)
            stop.agent = agent
            is_new = not agent.book.messages
            conversation_id = None if is_new and agent.keyless else agent.conversation
            teller.opened(
                Opened(model=agent.model, why=agent.why, conversation=conversation_id, emulated=agent.emulated)
            )
            ended = await agent.ask(asked)
            if is_new and ended.cause == "key":
                agent.forget()
            if write_errors:
                raise write_errors[0]
            teller.ended(ended, totals)
            return _code(ended, signalled)


def _code(ended: Ended, signalled: list[int]) -> int:
    if ended.how == "answered":
        return _ANSWERED
    if ended.how == "cancelled":
        return _SIGNALLED + (signalled[0] if signalled else signal.SIGINT)
    return _RETRY if ended.retryable else _FAILED


class _Stop:
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
def _signals(stop: Callable[[], None]) -> Generator[list[int]]:
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
