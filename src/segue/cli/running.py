"""One exchange, from beginning to end, with what may end it: the answer, a signal, a reader that goes away."""

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
    """An exchange from beginning to end; gives the exit code."""
    return asyncio.run(_exchange(asked, wishes, teller))


async def _exchange(asked: str, wishes: Wishes, teller: Teller) -> int:
    unwritten: list[Exception] = []
    stop = _Stop()

    def give_up(error: Exception) -> None:
        unwritten.append(error)
        stop()

    def hear(event: Event) -> None:
        bill.hear(event)
        teller.hear(event)

    with _signals(stop) as signalled:
        async with Agent(wishes, listen=guarded(hear, give_up)) as agent:
            bill = Bill(agent.price)
            stop.agent = agent
            begun = not agent.book.messages
            kept = None if begun and agent.keyless else agent.conversation
            teller.opened(Opened(model=agent.model, why=agent.why, conversation=kept, emulated=agent.emulated))
            ended = await agent.ask(asked)
            if begun and ended.cause == "key":
                agent.forget()
            if unwritten:
                raise unwritten[0]
            teller.ended(ended, bill)
            return _code(ended, signalled)


def _code(ended: Ended, signalled: list[int]) -> int:
    if ended.how == "answered":
        return _ANSWERED
    if ended.how == "cancelled":
        return _SIGNALLED + (signalled[0] if signalled else signal.SIGINT)
    return _RETRY if ended.retryable else _FAILED


class _Stop:
    """Ends what is under way: the exchange, through its session; before there is one, the whole."""

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
    """The first signal stops in good order, the second leaves at once."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def heard(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            os._exit(_SIGNALLED + number)
        loop.call_soon_threadsafe(stop)

    kinds = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    # Whoever started this to outlive a terminal (nohup) has said so by ignoring them.
    before = {kind: signal.signal(kind, heard) for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN}
    try:
        yield seen
    except asyncio.CancelledError:
        if not seen:
            raise
        raise click.exceptions.Exit(_SIGNALLED + seen[0]) from None
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
